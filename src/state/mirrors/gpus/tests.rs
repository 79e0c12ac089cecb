//! An inventory is known once nodes and pods are, and for a while after the last answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::PATIENCE;
use crate::api::gpu::{HoldingPod, OfferingNode};
use crate::api::resource_claim::ResourceClaim;
use crate::api::resource_claim_template::ResourceClaimTemplate;
use crate::api::resource_slice::ResourceSlice;
use crate::cluster::kinds::WatchedKind;
use crate::policy::gpu::{GpuCount, Physical, ReplicaClaim};
use crate::policy::params::LabelSelector;
use crate::policy::snapshot::{GpuInventory, ReplicaTemplate};
use crate::policy::units::{Gpus, Replicas};
use crate::roles::Role;
use crate::settings::bundle::read_bundle;
use crate::settings::pool_group::PoolGroup;
use crate::state::mirrors::Mirrors;
use crate::state::mirrors::tests::{TestMirrors, at, list, mirrors};
use wva_base::moment::Moment;
use wva_supervise::Epoch;

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

/// The API server serves no dynamic resource allocation.
fn no_devices(mirrors: &TestMirrors) {
    let epoch = |kind| Epoch::for_test(Role::Watcher(kind), 1);
    let writers = &mirrors.writers;
    let slices = epoch(WatchedKind::ResourceSlice);
    writers.slices.kind_absent(&slices).unwrap();
    let claims = epoch(WatchedKind::ResourceClaim);
    writers.claims.kind_absent(&claims).unwrap();
}

pub(super) fn why(mirrors: &Mirrors, now: Moment) -> Option<String> {
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
    list::<OfferingNode>(&mirrors.writers.nodes, [node(false)]);
    let pods = "pods of all namespaces have not been listed yet";
    assert_eq!(why(&mirrors, at(0)).as_deref(), Some(pods));
    list::<HoldingPod>(&mirrors.writers.holding_pods, [pod()]);
    let slices = "resource slices have not been listed yet";
    assert_eq!(why(&mirrors, at(0)).as_deref(), Some(slices));
    no_devices(&mirrors);
    let sums =
        |mirrors: &Mirrors| match mirrors.inventory(at(0)).physical(&LabelSelector::default()) {
            Physical::Known { limits, used, .. } => {
                (limits.get("H100").copied(), used.get("H100").copied())
            }
            Physical::Unlimited | Physical::Unknown => panic!("it is not known"),
        };
    assert_eq!(sums(&mirrors), (Some(Gpus(8)), Some(Gpus(3))));
    list::<OfferingNode>(&mirrors.writers.nodes, [node(true)]);
    assert_eq!(sums(&mirrors), (None, None));
}

#[test]
fn silence_is_borne_for_a_minute_and_a_missing_right_is_named_at_once() {
    let mirrors = mirrors(PoolGroup::default());
    let epoch = Epoch::for_test(Role::Watcher(WatchedKind::Node), 1);
    mirrors.writers.nodes.fail(&epoch, "nodes is forbidden").unwrap();
    let text = why(&mirrors, at(0)).unwrap();
    assert!(text.contains("nodes is forbidden; allow"), "{text}");

    list::<OfferingNode>(&mirrors.writers.nodes, [node(false)]);
    list::<HoldingPod>(&mirrors.writers.holding_pods, []);
    no_devices(&mirrors);
    mirrors.writers.nodes.touch(&epoch, at(1)).unwrap();
    mirrors.writers.nodes.fail(&epoch, "no answer").unwrap();
    assert_eq!(why(&mirrors, at(1 + PATIENCE.as_secs())), None);
    assert!(why(&mirrors, at(2 + PATIENCE.as_secs())).is_some());
    mirrors.writers.nodes.forget(&epoch).unwrap();
    assert_eq!(why(&mirrors, at(2)).as_deref(), Some("nodes have not been listed yet"));
}

fn replica(claims: &[(&str, Option<&str>, u32)]) -> ReplicaTemplate {
    let claims = claims.iter().map(|(name, template, pods)| ReplicaClaim {
        name: (*name).into(),
        template: template.map(Into::into),
        pods: Replicas(*pods),
    });
    ReplicaTemplate {
        gpus: BTreeMap::from([("nvidia.com/gpu".into(), Gpus(1))]),
        gpu_count: GpuCount::of(claims.collect()),
        ..ReplicaTemplate::default()
    }
}

#[test]
fn claims_are_counted_where_quotas_alone_limit_growth_or_devices_are_seen() {
    let nodes = "WVA_LIMITED_MODE: true";
    let quotas = "saturation: {default: {enableLimiter: true, limiters: [{name: q, type: quota, scope: cluster, \
                  quotas: {H100: 9}}]}}";
    let mirrors = mirrors(PoolGroup::default());
    let counted = |claims: &[(&str, Option<&str>, u32)], settings: &str| {
        let settings = read_bundle(settings).unwrap();
        let counted = mirrors.counted(&"ns".into(), &replica(claims), &settings)?;
        assert!(counted.gpu_count.is_counted());
        Some(counted.gpus_per_replica().0)
    };
    let two = [("gpu", Some("two"), 1)];
    // Not seen yet.
    assert_eq!(counted(&two, quotas), None);
    let template = |namespace: &str, name: &str, class: &str, count: u32| {
        json!({
            "metadata": { "namespace": namespace, "name": name },
            "spec": { "spec": { "devices": { "requests": [
                { "name": "r", "exactly": { "deviceClassName": class, "count": count } },
            ]}}},
        })
    };
    let channels = "compute-domain-default-channel.nvidia.com";
    let templates = [
        template("ns", "two", "gpu.nvidia.com", 2),
        template("ns", "channel", channels, 1),
        template("ns", "odd", "example.com", 1),
        template("other", "there", "gpu.nvidia.com", 1),
    ];
    let mirror = &mirrors.writers.claim_templates;
    list::<ResourceClaimTemplate>(mirror, templates);
    let channel = ("channel", Some("channel"), 4);
    let devices = |resource, count| (resource, Some(resource), count);
    let gpu = "deviceclass.resource.kubernetes.io/gpu.nvidia.com";
    for (claims, by_quotas, by_nodes) in wva_base::cases! {
        (&two[..], Some(3), None),
        // Of each pod of a group.
        (&[("gpu", Some("two"), 4)], Some(9), None),
        (&[("gpu", Some("two"), 1), channel], Some(3), None),
        // Nodes list all that this replica holds.
        (&[channel], Some(1), Some(1)),
        (&[("gpu", Some("odd"), 1), channel], None, None),
        (&[("gpu", Some("there"), 1)], None, None),
        (&[("shared", None, 1)], None, None),
        // Of classes that containers request as a resource.
        (&[devices(gpu, 4)], Some(5), None),
        (&[devices(gpu, 4), two[0]], Some(7), None),
        (&[devices("deviceclass.resource.kubernetes.io/dranet", 4)], Some(1), Some(1)),
        (&[devices("deviceclass.resource.kubernetes.io/example.com", 1)], None, None),
    } {
        assert_eq!(counted(claims, quotas), by_quotas, "{claims:?}");
        assert_eq!(counted(claims, nodes), by_nodes, "{claims:?}");
        assert_eq!(counted(claims, ""), None, "no limit");
    }
    list::<ResourceSlice>(&mirrors.writers.slices, []);
    assert_eq!(counted(&two, nodes), None);
    list::<ResourceClaim>(&mirrors.writers.claims, []);
    assert_eq!(counted(&two, nodes), Some(3));
    let slices = Epoch::for_test(Role::Watcher(WatchedKind::ResourceSlice), 1);
    mirrors.writers.slices.forbid(&slices).unwrap();
    assert_eq!(counted(&two, nodes), None);
    let gone: [Value; 0] = [];
    list::<ResourceClaimTemplate>(mirror, gone);
    assert_eq!(counted(&two, quotas), None);
}
