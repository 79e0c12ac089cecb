//! An inventory is known once nodes and pods are, and for a while longer than they are heard of.

use std::time::Duration;

use serde_json::{Value, json};

use super::PATIENCE;
use crate::api::gpu::{HoldingPod, OfferingNode};
use crate::cluster::kinds::WatchedKind;
use crate::policy::limit::Physical;
use crate::policy::params::LabelSelector;
use crate::policy::snapshot::GpuInventory;
use crate::policy::units::Gpus;
use crate::roles::Role;
use crate::settings::pool_group::PoolGroup;
use crate::state::mirrors::Mirrors;
use crate::state::mirrors::tests::{list, mirrors};
use wva_base::moment::{Moment, WallTime};
use wva_supervise::Epoch;

fn at(seconds: u64) -> Moment {
    Moment {
        monotonic: Duration::from_secs(seconds),
        wall: WallTime(0),
    }
}

fn node(cordoned: bool) -> Value {
    json!({
        "metadata": { "name": "n", "labels": { "nvidia.com/gpu.product": "NVIDIA-H100-80GB" } },
        "spec": { "unschedulable": cordoned },
        "status": {
            "allocatable": { "nvidia.com/gpu": "8", "memory": "1Ti" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

fn pod() -> Value {
    json!({
        "metadata": { "namespace": "other", "name": "p" },
        "spec": { "nodeName": "n", "containers": [
            { "name": "c", "resources": { "requests": { "nvidia.com/gpu": "3", "cpu": "1" } } },
        ]},
        "status": { "phase": "Running" },
    })
}

fn why(mirrors: &Mirrors, now: Moment) -> Option<String> {
    match mirrors.inventory(now) {
        GpuInventory::Unknown { why } => Some(why.to_string()),
        GpuInventory::Nodes { .. } | GpuInventory::Types { .. } => None,
    }
}

#[test]
fn it_is_known_when_nodes_and_pods_are_listed() {
    let mirrors = mirrors(PoolGroup::default());
    let nodes = "nodes have not been listed yet";
    assert_eq!(why(&mirrors, at(0)).as_deref(), Some(nodes));
    list::<OfferingNode>(&mirrors.writers.nodes, WatchedKind::Node, [node(false)]);
    let pods = "pods of all namespaces have not been listed yet";
    assert_eq!(why(&mirrors, at(0)).as_deref(), Some(pods));
    list::<HoldingPod>(
        &mirrors.writers.holding_pods,
        WatchedKind::HoldingPod,
        [pod()],
    );
    let sums =
        |mirrors: &Mirrors| match mirrors.inventory(at(0)).physical(&LabelSelector::default()) {
            Physical::Known { limits, used } => {
                (limits.get("H100").copied(), used.get("H100").copied())
            }
            Physical::Unlimited | Physical::Unknown => panic!("it is not known"),
        };
    assert_eq!(sums(&mirrors), (Some(Gpus(8)), Some(Gpus(3))));
    list::<OfferingNode>(&mirrors.writers.nodes, WatchedKind::Node, [node(true)]);
    assert_eq!(sums(&mirrors), (None, None));
}

#[test]
fn silence_is_borne_for_a_minute_and_a_missing_right_is_named_at_once() {
    let mirrors = mirrors(PoolGroup::default());
    let epoch = Epoch::for_test(Role::Watcher(WatchedKind::Node), 1);
    mirrors
        .writers
        .nodes
        .fail(&epoch, "nodes is forbidden")
        .unwrap();
    let text = why(&mirrors, at(0)).unwrap();
    assert!(text.contains("nodes is forbidden; allow"), "{text}");

    list::<OfferingNode>(&mirrors.writers.nodes, WatchedKind::Node, [node(false)]);
    list::<HoldingPod>(&mirrors.writers.holding_pods, WatchedKind::HoldingPod, []);
    mirrors.writers.nodes.touch(&epoch, at(1)).unwrap();
    mirrors.writers.nodes.fail(&epoch, "no answer").unwrap();
    assert_eq!(why(&mirrors, at(1 + PATIENCE.as_secs())), None);
    assert!(why(&mirrors, at(2 + PATIENCE.as_secs())).is_some());
    mirrors.writers.nodes.forget(&epoch).unwrap();
    assert_eq!(
        why(&mirrors, at(2)).as_deref(),
        Some("nodes have not been listed yet")
    );
}
