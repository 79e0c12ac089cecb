//! From a decision to the message on the stream of KEDA that says so, over a status that is stored in between.
//!
//! `cargo bench --profile seeds -p wva-sim --bench push` prints a table. The whole controller runs in this process, which
//! is KEDA, too. The API server is another one behind a real socket.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark: what is unexpected ends it, and its table goes to the terminal"
)]

use std::net::SocketAddr;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use wva::api::variant_autoscaling::VariantAutoscaling;
use wva::policy::key::VariantKey;
use wva::policy::units::Replicas;
use wva::state::Readers;
use wva_sim::apiserver::{ApiServer, Insider};
use wva_sim::socket;
use wva_supervise::{Clock, ExitReason, SeedTree};

mod process;

use process::{NAMESPACE, cluster, controller, prepare};

/// One push each.
const VARIANTS: usize = 200;
/// Decided in one cycle.
const AT_ONCE: usize = 4;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(),
        _ => measure(),
    }
}

fn name(variant: usize) -> String {
    format!("variant-{variant:03}")
}

/// An API server with variants at zero. Prints its port.
#[tokio::main(flavor = "current_thread")]
async fn serve() {
    let server = ApiServer::new(Clock::real(), &SeedTree::new(1));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let insider = Insider::new(server.clone(), "bench");
    prepare(&insider).await;
    let deployments = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    let variants = format!("/apis/llmd.ai/v1alpha1/namespaces/{NAMESPACE}/variantautoscalings");
    for variant in 0..VARIANTS {
        let name = name(variant);
        let labels = json!({"app": name});
        let deployment = json!({"metadata": {"name": name}, "spec": {
            "replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "server", "image": "vllm"}]}},
        }});
        insider.create(&deployments, &deployment).await.unwrap();
        let status = json!({"status": {"replicas": 0, "observedGeneration": 1}});
        let path = format!("{deployments}/{name}/status");
        insider.merge(&path, &status).await.unwrap();
        let object = json!({"metadata": {"name": name}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "modelID": name, "minReplicas": 0, "maxReplicas": 2,
        }});
        insider.create(&variants, &object).await.unwrap();
    }
    println!("{}", listener.local_addr().unwrap());
    socket::serve(listener, server).await;
}

/// An address that nothing listens on.
async fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// A connection to the external scaler, once it is there.
async fn dial(address: SocketAddr) -> SendRequest<Full<Bytes>> {
    loop {
        if let Ok(stream) = TcpStream::connect(address).await {
            let io = TokioIo::new(stream);
            let (sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            return sender;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A field of a message: a text or a message within.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    [&[(tag << 3) | 2, length], content].concat()
}

/// The stream `StreamIsActive` of a trigger that names a variant.
async fn open(connection: &mut SendRequest<Full<Bytes>>, variant: &str) -> Incoming {
    let named = [field(1, b"variantName"), field(2, variant.as_bytes())].concat();
    let reference =
        [field(1, variant.as_bytes()), field(2, NAMESPACE.as_bytes()), field(3, &named)];
    let reference = reference.concat();
    let length = u32::try_from(reference.len()).unwrap().to_be_bytes();
    let body = [&[0], &length[..], &reference].concat();
    let request = Request::post("http://scaler/externalscaler.ExternalScaler/StreamIsActive")
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    connection.ready().await.unwrap();
    connection.send_request(request).await.unwrap().into_body()
}

/// The next message: a flag, a length of four bytes, and a message that is empty for false.
async fn next(stream: &mut Incoming) -> bool {
    loop {
        let frame = stream.frame().await.unwrap().unwrap();
        if let Some(data) = frame.data_ref()
            && !data.is_empty()
        {
            assert!(data.len() >= 5, "a message in parts: {data:?}");
            return data.len() > 5;
        }
    }
}

/// The time at which the count of a variant became one, as its record has it.
async fn decided(shared: &Readers, key: &VariantKey) -> i64 {
    loop {
        if let Some(record) = shared.records.get(key)
            && record.values.is_some_and(|values| values.desired > Replicas::ZERO)
        {
            return record.decided.at.0;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::main]
async fn measure() {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let (mut serving, address) = cluster();
    let (clock, scaler) = (Clock::real(), free().await);
    let at = scaler.to_string();
    let settings = [
        ("EXTERNAL_SCALER_BIND_ADDRESS", &*at),
        ("EXTERNAL_SCALER_SECURE", "false"),
        ("GLOBAL_OPT_INTERVAL", "1s"),
        ("WVA_SCALE_TO_ZERO", "true"),
    ];
    let (controller, kube) = controller(&address, clock.clone(), &settings).await;
    let shared = controller.shared();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let controller = tokio::spawn(controller.run(async move { drop(stopped.await) }));
    let mut connection = dial(scaler).await;
    let mut streams = Vec::new();
    for variant in 0..VARIANTS {
        let mut stream = open(&mut connection, &name(variant)).await;
        assert!(!next(&mut stream).await, "a variant at zero is not active");
        streams.push((variant, stream));
    }
    let objects: Api<VariantAutoscaling> = Api::namespaced(kube, NAMESPACE);
    let mut took = Vec::new();
    while !streams.is_empty() {
        let several = streams.split_off(streams.len().saturating_sub(AT_ONCE));
        let pushed = several.into_iter().map(|(variant, mut stream)| {
            let (objects, shared, clock) = (objects.clone(), shared.clone(), clock.clone());
            tokio::spawn(async move {
                let raised = Patch::Merge(json!({"spec": {"minReplicas": 1}}));
                let parameters = PatchParams::default();
                let name = name(variant);
                let patched = objects.patch(&name, &parameters, &raised);
                patched.await.unwrap();
                let key = VariantKey::new(NAMESPACE, name);
                let arrival = async {
                    assert!(next(&mut stream).await);
                    clock.now().wall.0
                };
                let (decided, arrived) = tokio::join!(decided(&shared, &key), arrival);
                arrived - decided
            })
        });
        for pushed in pushed.collect::<Vec<_>>() {
            took.push(pushed.await.unwrap());
        }
    }
    took.sort_unstable();
    let (p50, p99) = (took[took.len() / 2], took[took.len() * 99 / 100]);
    println!("| pushes | p50 ms | p99 | max |");
    println!("|---|---|---|---|");
    println!("| {} | {p50} | {p99} | {} |", took.len(), took[took.len() - 1]);
    stop.send(()).unwrap();
    assert_eq!(controller.await.unwrap(), ExitReason::Shutdown);
    serving.kill().unwrap();
    serving.wait().unwrap();
}
