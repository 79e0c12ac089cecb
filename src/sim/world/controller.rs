//! The controller inside the world, unmodified, and what the world reads of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt;

use super::WorldError;
use super::objects::SYSTEM;
use crate::actors::facts::Facts;
use crate::app::{Controller, Env, Startup};
use crate::env::{Clock, SeedTree};
use crate::kit::{Census, Kit};
use crate::serve::connection::Routes;
use crate::serve::routes::MetricsRoutes;
use crate::settings::{Findings, Sources, start};
use crate::signals::{HeldRequests, PromApi, RouterApi, RouterError};
use crate::sim::apiserver::ApiServer;

/// The name of the controller's pod.
pub(super) const POD: &str = "wva-controller-0";

/// What the world reads of a running controller.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) facts: Facts,
    routes: MetricsRoutes,
}

impl Door {
    /// What the controller shows at `/metrics`.
    pub(super) async fn metrics(&self) -> Option<String> {
        let (head, ()) = Request::builder()
            .uri("/metrics")
            .body(())
            .ok()?
            .into_parts();
        let answer = self.routes.answer(&head);
        if !answer.status().is_success() {
            return None;
        }
        let body = match answer.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(never) => match never {},
        };
        String::from_utf8(body.to_vec()).ok()
    }
}

/// The routers of the world, which only Prometheus reaches.
#[derive(Debug)]
struct Unreachable;

impl RouterApi for Unreachable {
    fn held(
        &self,
        _router: SocketAddr,
        _deadline: Duration,
    ) -> BoxFuture<'_, Result<HeldRequests, RouterError>> {
        let cause = "no route to host".to_owned();
        Box::pin(async { Err(RouterError::Unreachable { cause }) })
    }
}

/// Puts a controller together that uses this server and this Prometheus.
pub(super) fn controller(
    server: &ApiServer,
    prometheus: Arc<dyn PromApi>,
    (clock, seed): (&Clock, &SeedTree),
    interval: Duration,
) -> Result<(Controller, Door), WorldError> {
    let fixed = Sources {
        environment: environment(interval),
        ..Sources::default()
    };
    let generation = start(&fixed)
        .map_err(|errors| {
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            WorldError::Controller(texts.join("; "))
        })?
        .generation;
    let census = Census::new();
    let env = Env {
        kit: Kit {
            clock: clock.clone(),
            seed: SeedTree::new(seed.child("controller").next_u64()),
            census: census.clone(),
        },
        kube: server.client(),
        prometheus,
        routers: Arc::new(Unreachable),
        identity: Arc::from(format!("{POD}_simulated")),
        levels: None,
    };
    let startup = Startup {
        generation,
        fixed,
        findings: Findings::default(),
    };
    let controller =
        Controller::new(env, startup).map_err(|error| WorldError::Controller(error.to_string()))?;
    let facts = controller.facts();
    let routes = MetricsRoutes::new(facts.clone(), census);
    Ok((controller, Door { facts, routes }))
}

fn environment(interval: Duration) -> BTreeMap<String, String> {
    let interval = format!("{}s", interval.as_secs());
    let pairs = [
        ("POD_NAMESPACE", SYSTEM),
        ("POD_NAME", POD),
        // Asked in this process, whatever the address says.
        ("PROMETHEUS_BASE_URL", "http://prometheus.monitoring:9090"),
        ("PROMETHEUS_ALLOW_HTTP", "true"),
        ("LEADER_ELECT", "true"),
        ("METRICS_BIND_ADDRESS", "0"),
        ("HEALTH_PROBE_BIND_ADDRESS", "0"),
        ("GLOBAL_OPT_INTERVAL", &interval),
    ];
    let owned = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    owned.into()
}
