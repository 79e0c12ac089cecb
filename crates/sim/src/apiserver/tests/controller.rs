//! The whole controller, unmodified, on this server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{ask, server};
use wva::app::{self, Env, Startup};
use wva::hooks::NoHooks;
use wva::settings::{Diagnostics, Sources, start};
use wva::signals::{
    HeldRequests, MetricFamilies, PageReadError, PageUrl, PodPages, PromApi, QueryError,
    QueryResult, RouterApi, RouterError,
};
use wva_base::moment::WallTime;
use wva_supervise::{ActorRegistry, Clock, Kit, SeedTree};

/// Cannot be reached.
#[derive(Debug)]
struct Nobody;

impl PromApi for Nobody {
    fn query<'a>(
        &'a self,
        _promql: &'a str,
        _deadline: Duration,
    ) -> BoxFuture<'a, Result<QueryResult, QueryError>> {
        let cause = "nobody is there".to_owned();
        async { Err(QueryError::Unreachable { cause }) }.boxed()
    }
}

impl RouterApi for Nobody {
    fn held(
        &self,
        _router: SocketAddr,
        _deadline: Duration,
    ) -> BoxFuture<'_, Result<HeldRequests, RouterError>> {
        let cause = "nobody is there".to_owned();
        async { Err(RouterError::Unreachable { cause }) }.boxed()
    }
}

impl PodPages for Nobody {
    fn read(
        &self,
        _page: PageUrl,
        _wanted: Vec<Arc<str>>,
        _deadline: Duration,
    ) -> BoxFuture<'static, Result<MetricFamilies, PageReadError>> {
        let cause = "nobody is there".to_owned();
        async { Err(PageReadError::Unreachable { cause }) }.boxed()
    }
}

fn sources() -> Sources {
    let environment = [
        ("POD_NAMESPACE", "ns"),
        ("PROMETHEUS_BASE_URL", "http://127.0.0.1:9"),
        ("PROMETHEUS_ALLOW_HTTP", "true"),
        ("LEADER_ELECT", "true"),
        ("METRICS_BIND_ADDRESS", "0"),
        ("HEALTH_PROBE_BIND_ADDRESS", "0"),
    ];
    Sources {
        environment: environment
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect::<BTreeMap<_, _>>(),
        ..Sources::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_takes_the_lease_and_writes_status() {
    let server = server().await;
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }});
    let made = ask(
        &server,
        "POST",
        "/apis/apps/v1/namespaces/ns/deployments",
        &deployment,
    )
    .await;
    assert_eq!(made.0, 201, "{}", made.1);
    let variants = "/apis/llmd.ai/v1alpha1/namespaces/ns/variantautoscalings";
    let variant = json!({"metadata": {"name": "v"}, "spec": {
        "modelID": "m", "scaleTargetRef": {"name": "d"},
    }});
    let (code, made) = ask(&server, "POST", variants, &variant).await;
    assert_eq!((code, made.get("status")), (201, None), "{made}");

    let fixed = sources();
    let generation = start(&fixed).unwrap().generation;
    let env = Env {
        kit: Kit {
            clock: Clock::at(WallTime(1_767_225_600_000)),
            seed: SeedTree::new(1),
            actors: ActorRegistry::new(),
        },
        kube: server.client(),
        prometheus: Arc::new(Nobody),
        routers: Arc::new(Nobody),
        pods: Arc::new(Nobody),
        identity: Arc::from("me"),
        levels: None,
        hooks: Arc::new(NoHooks),
    };
    let controller = tokio::spawn(app::run(
        env,
        Startup {
            generation,
            fixed,
            diagnostics: Diagnostics::default(),
        },
        sleep(Duration::from_mins(5)),
    ));
    controller.await.unwrap().unwrap();

    let leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
    let (_, leases) = ask(&server, "GET", leases, &Value::Null).await;
    assert_eq!(leases["items"].as_array().unwrap().len(), 1, "{leases}");
    let (_, variant) = ask(&server, "GET", &format!("{variants}/v"), &Value::Null).await;
    let conditions = variant["status"]["conditions"].as_array().unwrap();
    let resolved = conditions
        .iter()
        .find(|one| one["type"] == "TargetResolved")
        .unwrap();
    assert_eq!(resolved["status"], "True", "{variant}");
    let manager = variant["metadata"]["managedFields"][0]["manager"]
        .as_str()
        .unwrap();
    assert!(manager.starts_with("wva-"), "{manager}");
}
