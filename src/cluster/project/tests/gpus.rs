use serde_json::{Value, json};

use super::project;
use crate::api::gpu::{HoldingPod, OfferingNode};
use crate::cluster::project::gpu::holds_gpus;
use crate::policy::gpu::{PodPhase, Scheduling, pod_gpus};
use crate::policy::units::Gpus;

fn node(fields: &Value) -> Value {
    let mut node = json!({
        "metadata": { "name": "n", "labels": { "amd.com/gpu.product": "MI300X", "zone": "a" } },
        "spec": {},
        "status": {
            "allocatable": { "amd.com/gpu": "8", "cpu": "64", "memory": "1Ti" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    for (pointer, value) in fields.as_object().unwrap() {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        node.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    node
}

#[test]
fn a_node_offers_whole_gpus_and_is_known_by_all_of_its_labels() {
    let view = project::<OfferingNode>(&node(&json!({})));
    assert!(view.has_gpus());
    assert_eq!(view.allocatable, [("amd.com/gpu".into(), 8)].into());
    assert_eq!(view.labels.len(), 2);
    let plain = node(&json!({ "/metadata/labels": {}, "/status/allocatable": { "cpu": "64" } }));
    assert!(!project::<OfferingNode>(&plain).has_gpus());
}

#[test]
fn a_node_is_closed_by_what_keeps_every_pod_off() {
    let taint =
        |key: &str, effect: &str| json!({ "/spec/taints": [{ "key": key, "effect": effect }] });
    for (fields, expected) in wva_base::cases! {
        (json!({}), Scheduling::Open),
        (json!({ "/spec/unschedulable": true }), Scheduling::Closed),
        (json!({ "/status/conditions": [{ "type": "Ready", "status": "Unknown" }] }), Scheduling::Closed),
        (json!({ "/metadata/deletionTimestamp": "2026-01-01T00:00:00Z" }), Scheduling::Closed),
        (taint("node.kubernetes.io/disk-pressure", "NoSchedule"), Scheduling::Closed),
        (taint("node.kubernetes.io/disk-pressure", "PreferNoSchedule"), Scheduling::Open),
        (taint("ToBeDeletedByClusterAutoscaler", "NoSchedule"), Scheduling::Closed),
        // GPU nodes keep pods off that want no GPU.
        (taint("nvidia.com/gpu", "NoSchedule"), Scheduling::Open),
    } {
        let view = project::<OfferingNode>(&node(&fields));
        assert_eq!(view.scheduling, expected, "{fields}");
    }
}

#[test]
fn a_pod_holds_what_its_containers_ask_for_together_or_one_by_one() {
    let gpus = |count: &str| json!({ "requests": { "nvidia.com/gpu": count } });
    let pod = |phase: &str, node: Option<&str>| {
        json!({
            "metadata": { "namespace": "a", "name": "p" },
            "spec": {
                "nodeName": node,
                "containers": [
                    { "resources": gpus("2") },
                    { "resources": { "limits": { "nvidia.com/gpu": "1" } } },
                    { "resources": { "requests": { "cpu": "2" } } },
                ],
                "initContainers": [
                    { "resources": gpus("5") },
                    { "resources": gpus("1"), "restartPolicy": "Always" },
                ],
            },
            "status": { "phase": phase },
        })
    };
    let view = project::<HoldingPod>(&pod("Running", Some("n")));
    assert!(holds_gpus(&view));
    assert_eq!(view.containers.len(), 3);
    assert_eq!(pod_gpus(&view, "nvidia.com/gpu"), Gpus(5));
    let is_held = |pod: &Value| holds_gpus(&project::<HoldingPod>(pod));
    assert!(is_held(&pod("Pending", Some("n"))) && !is_held(&pod("Pending", None)));
    let mut deleted = pod("Running", Some("n"));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let leaving = project::<HoldingPod>(&deleted);
    assert_eq!(leaving.phase, PodPhase::Leaving);
    assert!(holds_gpus(&leaving));
    let finished = project::<HoldingPod>(&pod("Succeeded", Some("n")));
    assert_eq!(finished.phase, PodPhase::Finished);
    assert!(!holds_gpus(&finished));
}
