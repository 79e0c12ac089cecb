//! Nodes: what they are made of, and what becomes of one that does not answer.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::event::{Volume, event};
use super::kubelet;
use super::object::{Object, Write, pod_path, stamp, wall_time};
use wva_base::moment::WallTime;

const COMPONENT: &str = "node-controller";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Silence after which a node counts as lost: `--node-monitor-grace-period`.
const GRACE: Duration = Duration::from_secs(40);
/// How long pods stay bound to a lost node: the default toleration of the taint.
const TOLERATION: Duration = Duration::from_mins(5);

/// Nodes of one type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// The names are this and a number from 0.
    pub name: String,
    /// How many.
    pub count: u32,
    /// GPUs of each.
    pub gpus: u32,
    /// The label `nvidia.com/gpu.product`.
    pub product: String,
}

impl NodeGroup {
    pub(crate) fn objects(&self, now: WallTime) -> Vec<Value> {
        (0..self.count).map(|number| self.object(number, now)).collect()
    }

    fn object(&self, number: u32, now: WallTime) -> Value {
        let name = format!("{}-{number}", self.name);
        let capacity = json!({
            "cpu": "192", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": self.gpus.to_string(),
        });
        json!({
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "nvidia.com/gpu.product": self.product,
            }},
            "spec": {},
            "status": {
                "capacity": capacity, "allocatable": capacity,
                "conditions": [condition("True", "KubeletReady", now)],
                "nodeInfo": {
                    "architecture": "amd64", "operatingSystem": "linux", "machineID": "",
                    "bootID": "", "systemUUID": "", "kernelVersion": "", "osImage": "simulated",
                    "containerRuntimeVersion": "simulated://1", "kubeletVersion": "v1.33.0",
                    "kubeProxyVersion": "",
                },
            },
        })
    }
}

fn condition(status: &str, reason: &str, now: WallTime) -> Value {
    json!({
        "type": "Ready", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": stamp(now), "lastHeartbeatTime": stamp(now),
    })
}

pub(super) fn path(node: &str) -> String {
    format!("/api/v1/nodes/{node}")
}

/// What the controllers do about a node that has been silent since then, and when next.
pub(super) fn silent(
    node: &Object,
    pods: &[Object],
    since: WallTime,
    now: WallTime,
) -> kubelet::Next {
    let mut next = kubelet::Next::default();
    let lost = since.later(GRACE);
    if now < lost {
        next.due = Some(lost);
        return next;
    }
    let here = pods.iter();
    let here = here.filter(|pod| pod.text("/spec/nodeName") == node.name());
    if node.holds("Ready") {
        let unknown = json!({"status": {"conditions":
            [condition("Unknown", "NodeStatusUnknown", now)]}});
        let taint = json!({"spec": {"taints": [
            {"key": UNREACHABLE, "effect": "NoSchedule"},
            {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": stamp(now)},
        ]}});
        let place = format!("{}/status", path(node.name()));
        next.writes.push(Write::Merge(place, unknown));
        next.writes.push(Write::Merge(path(node.name()), taint));
        let message = format!("Node {} status is now: NodeNotReady", node.name());
        let what = (Volume::Normal, "NodeNotReady");
        let about = ("v1", "Node", node);
        next.writes.push(event(about, COMPONENT, what, &message, now));
        let ready = here.filter(|pod| pod.holds("Ready"));
        next.writes.extend(ready.map(|pod| kubelet::unready(pod, "NodeNotReady", now)));
        return next;
    }
    let ready = node.condition("Ready");
    let tainted = ready.and_then(|ready| wall_time(&ready["lastTransitionTime"]));
    let evicted = tainted.unwrap_or(now).later(TOLERATION);
    if now < evicted {
        next.due = Some(evicted);
        return next;
    }
    let bound = here.filter(|pod| !pod.is_deleted());
    let deletions = bound.map(|pod| {
        let options = json!({"preconditions": {"uid": pod.text("/metadata/uid")}});
        Write::Delete(pod_path(pod), options)
    });
    next.writes.extend(deletions);
    next
}

/// A node answers again. Its pods go on with a fresh container.
pub(super) fn answers(node: &Object, pods: &[Object], now: WallTime) -> Vec<Write> {
    let ready = json!({"status": {"conditions": [condition("True", "KubeletReady", now)]}});
    let mut writes = vec![
        Write::Merge(format!("{}/status", path(node.name())), ready),
        Write::Merge(path(node.name()), json!({"spec": {"taints": null}})),
    ];
    let here = pods.iter();
    let here = here.filter(|pod| pod.text("/spec/nodeName") == node.name() && !pod.is_deleted());
    let death = kubelet::Death { code: 255, reason: "Unknown" };
    for pod in here {
        writes.extend(kubelet::crash(pod, death, now));
    }
    writes
}
