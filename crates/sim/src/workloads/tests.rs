//! Tests of the simulated controllers, on the simulated server.

mod groups;
mod sleepers;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::object::Object;
use super::*;
use crate::apiserver::ApiServer;

const START: WallTime = WallTime(1_767_225_600_000);

struct Stage {
    server: Insider,
    workloads: Workloads,
}

/// A cluster with these nodes, whose controllers run.
async fn stage(groups: &[NodeGroup]) -> Stage {
    let clock = Clock::at(START);
    let seed = SeedTree::new(1);
    let server = ApiServer::new(clock.clone(), &seed);
    let workloads = Workloads::new(server.clone(), clock, seed);
    let server = Insider::new(server, "test");
    for node in groups.iter().flat_map(|group| group.objects(START)) {
        server.create("/api/v1/nodes", &node).await.unwrap();
    }
    tokio::spawn(workloads.clone().run());
    Stage { server, workloads }
}

fn h100(count: u32) -> NodeGroup {
    NodeGroup {
        name: "h100".to_owned(),
        count,
        gpus: 2,
        product: "NVIDIA-H100-80GB-HBM3".to_owned(),
    }
}

fn deployment(replicas: u32) -> Value {
    json!({"metadata": {"name": "d"}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}, "annotations": {
                START_UP: "60", START_UP_P95: "80", IMAGE_PULL: "10",
            }},
            "spec": {
                "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
                "containers": [{
                    "name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }],
            },
        },
    }})
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

impl Stage {
    async fn deploy(&self, replicas: u32) {
        let object = deployment(replicas);
        self.server.create(DEPLOYMENTS, &object).await.unwrap();
    }

    async fn scale(&self, replicas: u32) {
        let change = json!({"spec": {"replicas": replicas}});
        let path = format!("{DEPLOYMENTS}/d");
        self.server.merge(&path, &change).await.unwrap();
    }

    fn pods(&self) -> Vec<Object> {
        let pods = self.server.list("pods.");
        pods.into_iter().map(Object).collect()
    }

    fn status(&self, field: &str) -> i64 {
        let found = self.server.get("deployments.apps", "default", "d").unwrap();
        found["status"][field].as_i64().unwrap_or(0)
    }

    fn reasons(&self) -> Vec<String> {
        let events = self.server.list("events");
        let reason = |event: &Value| event["reason"].as_str().unwrap().to_owned();
        events.iter().map(|event| reason(event)).collect()
    }
}

async fn pass(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

/// The deployment on so many nodes and with so many replicas, after so many seconds.
async fn deployed(nodes: u32, replicas: u32, seconds: u64) -> Stage {
    let stage = stage(&[h100(nodes)]).await;
    stage.deploy(replicas).await;
    pass(seconds).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn pods_become_ready_after_their_start_up() {
    let stage = deployed(1, 2, 1).await;
    let pods = stage.pods();
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        assert_eq!(pod.text("/status/phase"), "Pending");
        assert_eq!(pod.text("/spec/nodeName"), "h100-0");
        assert!(pod.holds("PodScheduled") && !pod.holds("Ready"));
    }
    assert_eq!((stage.status("replicas"), stage.status("readyReplicas")), (2, 0));
    pass(11).await;
    assert!(stage.pods().iter().all(|pod| pod.text("/status/phase") == "Running"));
    assert_eq!(stage.status("readyReplicas"), 0);
    pass(150).await;
    assert_eq!(stage.status("readyReplicas"), 2);
    assert_eq!(stage.status("availableReplicas"), 2);
    let ready: Vec<_> = stage
        .pods()
        .iter()
        .map(|pod| pod.condition("Ready").unwrap()["lastTransitionTime"].clone())
        .collect();
    assert_ne!(ready[0], ready[1], "each draws its own start-up");
    for reason in ["ScalingReplicaSet", "SuccessfulCreate", "Scheduled", "Started"] {
        assert!(stage.reasons().contains(&reason.to_owned()), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_gpu_waits_and_says_why() {
    let stage = deployed(1, 3, 200).await;
    assert_eq!(stage.status("readyReplicas"), 2);
    let pods = stage.pods();
    let waiting = pods.iter().find(|pod| !pod.holds("PodScheduled")).unwrap();
    let condition = waiting.condition("PodScheduled").unwrap();
    assert_eq!(condition["reason"], "Unschedulable");
    assert_eq!(condition["message"], "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
    let waiting = waiting.name().to_owned();
    stage.scale(2).await;
    pass(1).await;
    assert!(stage.pods().iter().all(|pod| pod.name() != waiting), "not the ready ones");
    let more = h100(2).objects(START).pop().unwrap();
    stage.server.create("/api/v1/nodes", &more).await.unwrap();
    stage.scale(3).await;
    pass(200).await;
    assert_eq!(stage.status("readyReplicas"), 3);
}

#[tokio::test(start_paused = true)]
async fn the_youngest_goes_first_and_ends_after_its_grace() {
    let stage = deployed(2, 1, 600).await;
    let old = stage.pods()[0].name().to_owned();
    stage.scale(2).await;
    pass(200).await;
    assert_eq!(stage.status("readyReplicas"), 2);
    stage.scale(1).await;
    pass(1).await;
    let pods = stage.pods();
    let going: Vec<_> = pods.iter().filter(|pod| pod.is_deleted()).collect();
    assert_eq!(going.len(), 1);
    assert_ne!(going[0].name(), old);
    assert_eq!(stage.status("replicas"), 1);
    pass(31).await;
    assert_eq!(stage.pods().len(), 1);
    let path = format!("{DEPLOYMENTS}/d");
    stage.server.delete(&path, &json!({})).await.unwrap();
    pass(31).await;
    assert!(stage.pods().is_empty() && stage.server.list("replicasets.apps").is_empty());
}

fn one_pod() -> StruckPods {
    StruckPods { namespace: "default".to_owned(), deployment: "d".to_owned(), pods: 1 }
}

#[tokio::test(start_paused = true)]
async fn a_crashed_container_starts_again() {
    let stage = deployed(1, 1, 200).await;
    let crash = WorkloadFault::Crash(one_pod());
    stage.workloads.strike(&crash).await.unwrap();
    pass(1).await;
    assert_eq!(stage.status("readyReplicas"), 0);
    let reason = "/status/containerStatuses/0/state/waiting/reason";
    assert_eq!(stage.pods()[0].text(reason), "CrashLoopBackOff");
    pass(200).await;
    assert_eq!(stage.status("readyReplicas"), 1);
    assert_eq!(stage.pods()[0].number("/status/containerStatuses/0/restartCount"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_stays_as_failed_and_is_replaced() {
    let stage = deployed(1, 1, 200).await;
    let evict = WorkloadFault::Evict(one_pod());
    stage.workloads.strike(&evict).await.unwrap();
    pass(200).await;
    let pods = stage.pods();
    assert_eq!(pods.len(), 2);
    let failed = pods.iter().filter(|pod| pod.text("/status/phase") == "Failed");
    assert_eq!(failed.count(), 1);
    assert_eq!(stage.status("readyReplicas"), 1);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_lost_node_move_after_five_minutes() {
    let stage = deployed(2, 1, 200).await;
    let lost = stage.pods()[0].text("/spec/nodeName").to_owned();
    let node = lost.clone();
    stage.workloads.strike(&WorkloadFault::NodeLost { node }).await.unwrap();
    pass(30).await;
    assert_eq!(stage.status("readyReplicas"), 1, "not noticed yet");
    pass(30).await;
    assert_eq!(stage.status("readyReplicas"), 0);
    assert_eq!(stage.pods().len(), 1);
    pass(600).await;
    assert_eq!(stage.status("readyReplicas"), 1);
    let pods = stage.pods();
    assert_eq!(pods.len(), 2, "whether the lost one has ended is unknown");
    let node = lost.clone();
    stage.workloads.strike(&WorkloadFault::NodeBack { node }).await.unwrap();
    pass(60).await;
    assert_eq!(stage.pods().len(), 1);
    assert_ne!(stage.pods()[0].text("/spec/nodeName"), lost);
}

#[tokio::test(start_paused = true)]
async fn a_new_template_rolls_out_without_losing_availability() {
    let stage = deployed(3, 4, 300).await;
    assert_eq!(stage.status("availableReplicas"), 4);
    let change = json!({"spec": {"template": {"metadata": {"labels": {"release": "2"}}}}});
    let path = format!("{DEPLOYMENTS}/d");
    stage.server.merge(&path, &change).await.unwrap();
    let mut least = i64::MAX;
    for _ in 0..900 {
        pass(1).await;
        least = least.min(stage.status("availableReplicas"));
    }
    assert_eq!(least, 3, "a quarter may be unavailable");
    assert_eq!((stage.status("updatedReplicas"), stage.status("replicas")), (4, 4));
    assert!(stage.pods().iter().all(|pod| pod.label("release") == Some("2")));
}

/// Pods of a StatefulSet have numbers, come one after the other, and go in the reverse order.
#[tokio::test(start_paused = true)]
async fn a_stateful_set_counts_its_pods() {
    let stage = stage(&[h100(2)]).await;
    let mut set = deployment(3);
    set["spec"]["serviceName"] = "d".into();
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    stage.server.create(sets, &set).await.unwrap();
    let names = || -> Vec<String> {
        let pods = stage.pods();
        pods.iter().map(|pod| pod.name().to_owned()).collect()
    };
    pass(5).await;
    assert_eq!(names(), ["d-0"], "the next one waits until this one is ready");
    pass(600).await;
    assert_eq!(names(), ["d-0", "d-1", "d-2"]);
    let status =
        || stage.server.get("statefulsets.apps", "default", "d").unwrap()["status"].clone();
    assert_eq!(status()["readyReplicas"], 3);
    assert_eq!(status()["currentRevision"], status()["updateRevision"]);

    let scale = json!({"spec": {"replicas": 1}});
    let path = format!("{sets}/d/scale");
    stage.server.merge(&path, &scale).await.unwrap();
    pass(1).await;
    let leaving: Vec<String> = stage
        .pods()
        .iter()
        .filter(|pod| pod.is_deleted())
        .map(|pod| pod.name().to_owned())
        .collect();
    assert_eq!(leaving, ["d-2"], "the last one goes first, and alone");
    pass(120).await;
    assert_eq!(names(), ["d-0"]);

    let before = stage.pods()[0].uid().to_owned();
    let image = json!({"spec": {"template": {"metadata": {"labels": {"more": "x"}}}}});
    stage.server.merge(&format!("{sets}/d"), &image).await.unwrap();
    pass(300).await;
    let pods = stage.pods();
    assert_ne!(pods[0].uid(), before, "replaced by one of the new template");
    assert_eq!(pods[0].label("more"), Some("x"));
    assert_eq!(status()["readyReplicas"], 1);
}
