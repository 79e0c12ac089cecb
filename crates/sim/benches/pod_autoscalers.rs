//! A thousand PodAutoscalers with three pods each, in real time: whether each decides at its tick, and at what cost.
//!
//! `cargo bench --profile seeds -p wva-sim --bench pod_autoscalers` prints a table. The whole controller runs in this
//! process. API server and pods are another one behind real sockets, so that their work does not count; each pod has
//! an address of its own in 127.0.0.0/8, and those of ten objects accept connections and never answer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark: what is unexpected ends it, and its table goes to the terminal"
)]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use wva::cluster::fingerprint::fingerprint;
use wva::policy::key::ObjectKey;
use wva::policy::pod_autoscaler::decide::AutoscalerOutcome;
use wva::policy::pod_autoscaler::record::AutoscalerRecord;
use wva_sim::apiserver::{ApiServer, Insider};
use wva_sim::socket;
use wva_supervise::{Clock, ExitReason, SeedTree};

mod process;
#[path = "../../../benches/usage.rs"]
mod usage;

use process::{NAMESPACE, cluster, controller, prepare};
use usage::{cpu, peak_memory_kib};

const OBJECTS: usize = 1_000;
const PODS: usize = 3;
/// Objects whose pods hang.
const HANGING: usize = 10;
/// From one tick of an object to the next.
const TICK: Duration = Duration::from_secs(10);
/// Until every object has decided by samples.
const WARM_UP: Duration = Duration::from_secs(30);
const MEASURED: Duration = Duration::from_mins(1);
/// From one look at the records to the next; every record stands for a tick.
const LOOK: Duration = Duration::from_secs(1);
/// Lines of a page besides the one that counts: about as many as vLLM has.
const OTHER_LINES: usize = 300;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(),
        _ => measure(),
    }
}

/// The address of a pod.
fn address(object: usize, pod: usize) -> Ipv4Addr {
    let number = u32::try_from(object * PODS + pod).unwrap();
    // Beyond 127.0.0.1, which is the API server's.
    Ipv4Addr::from_bits(0x7f01_0000 + number)
}

fn hangs(address: IpAddr) -> bool {
    address < IpAddr::V4(self::address(HANGING, 0))
}

fn name(object: usize) -> String {
    format!("model-{object:04}")
}

/// API server and pods. Prints their ports.
#[tokio::main(flavor = "current_thread")]
async fn serve() {
    let server = ApiServer::new(Clock::real(), &SeedTree::new(1));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pages = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = pages.local_addr().unwrap().port();
    create(&Insider::new(server.clone(), "bench"), port).await;
    println!("{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = pages.accept().await.unwrap();
            tokio::spawn(answer(stream));
        }
    });
    socket::serve(listener, server).await;
}

/// The metrics page of the pod that a connection is for.
async fn answer(mut stream: TcpStream) {
    let mut request = [0; 4096];
    let Ok(1..) = stream.read(&mut request).await else {
        return;
    };
    if hangs(stream.local_addr().unwrap().ip()) {
        // Until the reader gives up.
        drop(stream.read(&mut request).await);
        return;
    }
    let others = (0..OTHER_LINES).map(|line| {
        format!(
            "vllm:time_to_first_token_seconds_bucket{{model_name=\"m\",le=\"{line}\"}} 4096.0\n"
        )
    });
    let page = others.collect::<String>() + "vllm:num_requests_running{model_name=\"m\"} 8.0\n";
    let length = page.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    drop(stream.write_all((head + &page).as_bytes()).await);
}

/// Every object with its Deployment, and pods at its target.
async fn create(server: &Insider, port: u16) {
    prepare(server).await;
    let apps = format!("/apis/apps/v1/namespaces/{NAMESPACE}");
    let all = format!("/apis/autoscaling.aibrix.ai/v1alpha1/namespaces/{NAMESPACE}/podautoscalers");
    for object in 0..OBJECTS {
        let name = name(object);
        let labels = json!({"app": name});
        let spec = json!({
            "replicas": PODS, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "server", "image": "vllm"}]}},
        });
        let mut owner = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
        let mut kind = "Deployment";
        for plural in ["deployments", "replicasets"] {
            let made = server.create(&format!("{apps}/{plural}"), &owner).await.unwrap();
            let status = json!({"status": {"replicas": PODS, "readyReplicas": PODS, "observedGeneration": 1}});
            let path = format!("{apps}/{plural}/{name}/status");
            server.merge(&path, &status).await.unwrap();
            let uid = &made["metadata"]["uid"];
            owner["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true,
            }]);
            kind = "ReplicaSet";
        }
        for pod in 0..PODS {
            let pod_name = format!("{name}-{pod}");
            let mut metadata = owner["metadata"].clone();
            metadata["name"] = json!(pod_name);
            create_pod(server, &metadata, address(object, pod)).await;
        }
        let autoscaler = json!({
            "apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler", "metadata": {"name": name},
            "spec": {
                "scalingStrategy": "KPA", "minReplicas": 1, "maxReplicas": 10,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "metricsSources": [{
                    "metricSourceType": "pod", "protocolType": "http", "port": port.to_string(), "path": "/metrics",
                    "targetMetric": "num_requests_running", "targetValue": "8",
                }],
            },
        });
        server.create(&all, &autoscaler).await.unwrap();
    }
}

async fn create_pod(server: &Insider, metadata: &Value, address: Ipv4Addr) {
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "server", "image": "vllm"}]}});
    server.create(&pods, &pod).await.unwrap();
    let since = "2026-01-01T00:00:00Z";
    let status = json!({"status": {
        "phase": "Running", "podIP": address.to_string(), "podIPs": [{"ip": address.to_string()}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
    }});
    let name = metadata["name"].as_str().unwrap();
    server.merge(&format!("{pods}/{name}/status"), &status).await.unwrap();
}

#[tokio::main]
async fn measure() {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let (mut serving, address) = cluster();
    let clock = Clock::real();
    let (controller, _) = controller(&address, clock.clone(), &[]).await;
    let shared = controller.shared();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let controller = tokio::spawn(controller.run(async move { drop(stopped.await) }));
    tokio::time::sleep(WARM_UP).await;
    let (from, before) = (clock.now().monotonic, cpu());
    let mut decided = Decisions::new();
    while clock.now().monotonic < from + MEASURED {
        tokio::time::sleep(LOOK).await;
        for (key, record) in shared.autoscalers.snapshot() {
            let at = record.decided.monotonic;
            if at >= from {
                let (tick, late) = lateness(&key, at);
                // A change of the object is a reason to decide between two ticks, too.
                decided.entry((key, tick)).or_insert((late, record));
            }
        }
    }
    let lasted = clock.now().monotonic.saturating_sub(from);
    let spent = cpu().saturating_sub(before);
    report(&decided, spent.as_secs_f64() / lasted.as_secs_f64());
    stop.send(()).unwrap();
    assert_eq!(controller.await.unwrap(), ExitReason::Shutdown);
    serving.kill().unwrap();
    serving.wait().unwrap();
}

/// The first decision of each object at each tick, with its lateness.
type Decisions = BTreeMap<(ObjectKey, u64), (Duration, Arc<AutoscalerRecord>)>;

fn report(decided: &Decisions, cpu: f64) {
    println!(
        "| PodAutoscalers | pods | decisions | missed | by samples | late p50 | p99 | max ms | CPU | peak RSS MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let first_healthy = name(HANGING);
    for (what, is_healthy) in [("healthy", true), ("hanging", false)] {
        let those = decided
            .iter()
            .filter(|((key, _), _)| (*key.name >= *first_healthy) == is_healthy)
            .map(|(_, decided)| decided);
        let late = those.clone().map(|(late, _)| late.as_millis());
        let mut late: Vec<u128> = late.collect();
        late.sort_unstable();
        let sampled = those.filter(|(_, record)| {
            let decision = record.decision();
            decision.is_some_and(|decision| decision.outcome == AutoscalerOutcome::Decided)
        });
        let objects = if is_healthy { OBJECTS - HANGING } else { HANGING };
        let ticks = decided.keys().filter(|(key, _)| (*key.name >= *first_healthy) == is_healthy);
        let mut spans: BTreeMap<&ObjectKey, (u64, u64)> = BTreeMap::new();
        for (key, tick) in ticks {
            spans.entry(key).or_insert((*tick, *tick)).1 = *tick;
        }
        assert_eq!(spans.len(), objects);
        let due: u64 = spans.values().map(|(first, last)| last - first + 1).sum();
        let due = usize::try_from(due).unwrap();
        println!(
            "| {objects} {what} | {} | {} | {} | {} | {} | {} | {} | {:.0} % | {} |",
            objects * PODS,
            late.len(),
            due.saturating_sub(late.len()),
            sampled.count(),
            late[late.len() / 2],
            late[late.len() * 99 / 100],
            late[late.len() - 1],
            cpu * 100.0,
            peak_memory_kib() / 1024,
        );
    }
}

/// The tick that an object decided for, and how long after it. Its ticks keep the phase that its name sets.
fn lateness(key: &ObjectKey, at: Duration) -> (u64, Duration) {
    let period = u64::try_from(TICK.as_millis()).unwrap();
    let phase = fingerprint(&[&key.namespace, &key.name]) % period;
    let since = u64::try_from(at.as_millis()).unwrap() + period - phase;
    (since / period, Duration::from_millis(since % period))
}
