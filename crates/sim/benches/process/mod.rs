//! The whole controller in this process, and an API server in another one.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use serde_json::{Value, json};
use wva::app::{Controller, Env, Startup};
use wva::cluster::{KubeconfigSource, connect};
use wva::hooks::NoHooks;
use wva::settings::endpoint_hosts::EndpointHosts;
use wva::settings::problem::Diagnostics;
use wva::settings::{Sources, start};
use wva::signals::router_client::HttpRouters;
use wva::signals::{HttpPods, PromAnswer, PromApi, QueryResult};
use wva_sim::apiserver::{Insider, kubeconfig};
use wva_supervise::{ActorRegistry, Clock, Kit, SeedTree};

pub(crate) const NAMESPACE: &str = "bench";

/// A Prometheus that knows of nothing.
#[derive(Debug)]
struct NoPrometheus;

impl PromApi for NoPrometheus {
    fn query<'a>(&'a self, _: &'a str, _: Duration) -> PromAnswer<'a> {
        async { Ok(QueryResult::default()) }.boxed()
    }
}

/// This program again with the argument `serve`, and the address of its API server.
pub(crate) fn cluster() -> (Child, String) {
    let this = std::env::current_exe().unwrap();
    let mut serving = Command::new(this).arg("serve").stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    let mut lines = BufReader::new(serving.stdout.take().unwrap());
    lines.read_line(&mut address).unwrap();
    (serving, address.trim().to_owned())
}

pub(crate) async fn controller(
    address: &str,
    clock: Clock,
    settings: &[(&str, &str)],
) -> (Controller, Client) {
    let file = std::env::temp_dir().join(format!("wva-bench-{}", std::process::id()));
    std::fs::write(&file, kubeconfig(address.parse().unwrap())).unwrap();
    let source = KubeconfigSource::File { path: file.clone(), context: None };
    let kube = connect(&source).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let mut fixed = Sources::default();
    let common = [
        ("POD_NAMESPACE", NAMESPACE),
        ("POD_NAME", "wva"),
        ("PROMETHEUS_BASE_URL", "http://prometheus:9090"),
        ("PROMETHEUS_ALLOW_HTTP", "true"),
        ("LEADER_ELECT", "false"),
        ("METRICS_BIND_ADDRESS", "0"),
        ("HEALTH_PROBE_BIND_ADDRESS", "0"),
    ];
    for (name, text) in common.iter().chain(settings) {
        fixed.environment.insert((*name).to_owned(), (*text).to_owned());
    }
    let generation = start(&fixed).unwrap().generation;
    let actors = ActorRegistry::new();
    let env = Env {
        kit: Kit { clock, seed: SeedTree::new(1), actors },
        kube: kube.clone(),
        prometheus: Arc::new(NoPrometheus),
        routers: Arc::new(HttpRouters::new(None).unwrap()),
        pods: Arc::new(HttpPods::new(None, EndpointHosts::default()).unwrap()),
        identity: "wva".into(),
        levels: None,
        hooks: Arc::new(NoHooks),
    };
    let startup = Startup { generation, fixed, diagnostics: Diagnostics::default() };
    (Controller::new(env, startup).unwrap(), kube)
}

/// The namespace with the definitions of our kinds.
pub(crate) async fn prepare(server: &Insider) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for file in [
        include_str!("../../../../config/crd/bases/autoscaling.aibrix.ai_podautoscalers.yaml"),
        include_str!("../../../../config/crd/bases/llmd.ai_variantautoscalings.yaml"),
    ] {
        let definition: Value = serde_yaml::from_str(file).unwrap();
        server.create(definitions, &definition).await.unwrap();
    }
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    server.create("/api/v1/namespaces", &namespace).await.unwrap();
}
