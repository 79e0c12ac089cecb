//! A router played by the test: its metrics page, and the objects that lead to it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::fault::Result;
use super::namespace::Namespace;
use super::web::{PlayedServer, anywhere, response};

/// What a router does with a request for its page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// Requests that it holds, by model.
    pub(crate) held: BTreeMap<String, u32>,
    /// The token that it requires.
    pub(crate) token: Option<String>,
    /// How long it takes to answer.
    pub(crate) delay: Duration,
}

impl Manner {
    /// One that holds so many requests of one model.
    pub(crate) fn holding(model: &str, requests: u32) -> Self {
        Self { held: BTreeMap::from([(model.to_owned(), requests)]), ..Self::default() }
    }
}

/// A page on a loopback port, until it is dropped.
pub(crate) struct Router {
    server: PlayedServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    manner: Manner,
    requests: usize,
    in_flight: usize,
    most: usize,
}

impl Router {
    pub(crate) async fn start(manner: Manner) -> Result<Self> {
        let state = Arc::new(Mutex::new(State { manner, ..State::default() }));
        let shared = Arc::clone(&state);
        let answer = move |request| answer(request, Arc::clone(&shared));
        let server = PlayedServer::start(anywhere(), answer).await?;
        Ok(Self { server, state })
    }

    /// Where its page is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Changes its manner from the next request on.
    pub(crate) fn behave(&self, manner: Manner) {
        self.state.lock().unwrap().manner = manner;
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.state.lock().unwrap().requests
    }

    /// The most requests that were in flight at a time.
    pub(crate) fn most(&self) -> usize {
        self.state.lock().unwrap().most
    }

    /// Puts it in front of the pods of a Deployment: an InferencePool, the Service that this names,
    /// and a ready pod at the address of the test process.
    pub(crate) async fn route(&self, namespace: &Namespace, deployment: &str) -> Result {
        let name = format!("{deployment}-epp");
        let labels = json!({ "router": name });
        namespace
            .apply(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
                "spec": {
                    "clusterIP": "None", "selector": labels,
                    "ports": [
                        { "name": "grpc-ext-proc", "port": 9002 },
                        { "name": "http-metrics", "port": 9090, "targetPort": self.server.address.port() },
                    ],
                },
            }))
            .await?;
        namespace
            .apply(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "name": name, "labels": labels },
                // No scheduler has this name, so that no kubelet gives it another address.
                "spec": {
                    "schedulerName": "none",
                    "containers": [{ "name": "epp", "image": "epp:fake" }],
                },
            }))
            .await?;
        let pods: Api<Pod> = namespace.api();
        let status = Patch::Merge(json!({ "status": {
            "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{ "ip": "127.0.0.1" }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        } }));
        pods.patch_status(&name, &PatchParams::default(), &status).await?;
        namespace.apply(pool(deployment, &name)).await?;
        Ok(())
    }
}

fn pool(deployment: &str, picker: &str) -> Value {
    json!({
        "apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
        "metadata": { "name": deployment },
        "spec": {
            "selector": { "matchLabels": { "app": deployment } },
            "targetPorts": [{ "number": 8000 }],
            "endpointPickerRef": { "name": picker, "port": { "number": 9002 } },
        },
    })
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>> {
    let manner = {
        let mut state = state.lock().unwrap();
        state.requests += 1;
        state.in_flight += 1;
        state.most = state.most.max(state.in_flight);
        state.manner.clone()
    };
    tokio::time::sleep(manner.delay).await;
    let shown = request.headers().get(AUTHORIZATION);
    let is_known = manner.token.is_none_or(|token| {
        let wanted = format!("Bearer {token}");
        shown.is_some_and(|shown| shown.as_bytes() == wanted.as_bytes())
    });
    let (status, text) = if is_known {
        (StatusCode::OK, page(&manner.held))
    } else {
        (StatusCode::UNAUTHORIZED, String::new())
    };
    state.lock().unwrap().in_flight -= 1;
    Ok(response(status, "text/plain; version=0.0.4", text))
}

fn page(held: &BTreeMap<String, u32>) -> String {
    let name = "llm_d_epp_flow_control_queue_size";
    let lines = held.iter().map(|(model, requests)| {
        format!(
            "{name}{{fairness_id=\"default\",priority=\"0\",model_name=\"{model}\",\
             target_model_name=\"{model}\"}} {requests}\n"
        )
    });
    let kind = format!("# TYPE {name} gauge\n");
    std::iter::once(kind).chain(lines).collect()
}
