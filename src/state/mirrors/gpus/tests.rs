//! An inventory is known once nodes and pods are, and for a while longer than they are heard of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::PATIENCE;
use crate::api::gpu::{HoldingPod, OfferingNode};
use crate::api::pod::SlimPod;
use crate::api::resource_claim::ResourceClaim;
use crate::api::resource_claim_template::ResourceClaimTemplate;
use crate::api::resource_slice::ResourceSlice;
use crate::cluster::kinds::WatchedKind;
use crate::policy::limit::{GpuCount, Physical, PodPhase, ReplicaClaim};
use crate::policy::params::LabelSelector;
use crate::policy::snapshot::{GpuInventory, ReplicaTemplate};
use crate::policy::units::{Gpus, Replicas};
use crate::roles::Role;
use crate::settings::bundle::read_bundle;
use crate::settings::pool_group::PoolGroup;
use crate::state::mirrors::Mirrors;
use crate::state::mirrors::tests::{TestMirrors, list, mirrors};
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

/// The API server serves no dynamic resource allocation.
fn no_devices(mirrors: &TestMirrors) {
    let epoch = |kind| Epoch::for_test(Role::Watcher(kind), 1);
    let writers = &mirrors.writers;
    let slices = epoch(WatchedKind::ResourceSlice);
    writers.slices.kind_absent(&slices).unwrap();
    let claims = epoch(WatchedKind::ResourceClaim);
    writers.claims.kind_absent(&claims).unwrap();
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
    no_devices(&mirrors);
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
    list::<ResourceClaimTemplate>(mirror, WatchedKind::ResourceClaimTemplate, templates);
    let channel = ("channel", Some("channel"), 4);
    let devices = |resource, count| (resource, Some(resource), count);
    let gpu = "deviceclass.resource.kubernetes.io/gpu.nvidia.com";
    for (claims, by_quotas, by_nodes) in [
        (&two[..], Some(3), None),
        // Of each pod of a group.
        (&[("gpu", Some("two"), 4)], Some(9), None),
        (&[("gpu", Some("two"), 1), channel], Some(3), None),
        // Nodes list all that such a replica holds.
        (&[channel], Some(1), Some(1)),
        (&[("gpu", Some("odd"), 1), channel], None, None),
        (&[("gpu", Some("there"), 1)], None, None),
        (&[("shared", None, 1)], None, None),
        // Of classes that containers request as a resource.
        (&[devices(gpu, 4)], Some(5), None),
        (&[devices(gpu, 4), two[0]], Some(7), None),
        (
            &[devices("deviceclass.resource.kubernetes.io/dranet", 4)],
            Some(1),
            Some(1),
        ),
        (
            &[devices("deviceclass.resource.kubernetes.io/example.com", 1)],
            None,
            None,
        ),
    ] {
        assert_eq!(counted(claims, quotas), by_quotas, "{claims:?}");
        assert_eq!(counted(claims, nodes), by_nodes, "{claims:?}");
        assert_eq!(counted(claims, ""), None, "no limit");
    }
    list::<ResourceSlice>(&mirrors.writers.slices, WatchedKind::ResourceSlice, []);
    assert_eq!(counted(&two, nodes), None);
    list::<ResourceClaim>(&mirrors.writers.claims, WatchedKind::ResourceClaim, []);
    assert_eq!(counted(&two, nodes), Some(3));
    let slices = Epoch::for_test(Role::Watcher(WatchedKind::ResourceSlice), 1);
    mirrors.writers.slices.forbid(&slices).unwrap();
    assert_eq!(counted(&two, nodes), None);
    let gone: [Value; 0] = [];
    list::<ResourceClaimTemplate>(mirror, WatchedKind::ResourceClaimTemplate, gone);
    assert_eq!(counted(&two, quotas), None);
}

const CLASS: &str = "deviceclass.resource.kubernetes.io/gpu.nvidia.com";

/// A slice of the pool of a node, at a generation of so many slices.
fn slice(name: &str, node: &str, generation: (i64, i64), devices: &Value) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "driver": "gpu.nvidia.com", "nodeName": node, "devices": devices,
            "pool": { "name": node, "generation": generation.0, "resourceSliceCount": generation.1 },
        },
    })
}

fn devices(names: &[&str]) -> Value {
    let product = json!({ "productName": { "string": "NVIDIA H100 80GB HBM3" } });
    let names = names.iter();
    names
        .map(|name| json!({ "name": name, "attributes": product }))
        .collect()
}

/// Parts of a GPU and the whole, all of which take from its counters.
fn split(name: &str) -> Value {
    let device = |suffix: &str, kind: &str| {
        json!({
            "name": format!("{name}{suffix}"), "attributes": { "type": { "string": kind } },
            "consumesCounters": [{ "counterSet": name, "counters": {} }],
        })
    };
    json!([
        device("", "gpu"),
        device("-mig-0", "mig"),
        device("-mig-1", "mig")
    ])
}

fn claim(name: &str, held: &[(&str, &str)], pods: &[&str]) -> Value {
    let result = |(pool, device): &(&str, &str)| json!({ "driver": "gpu.nvidia.com", "pool": pool, "device": device });
    let results: Vec<Value> = held.iter().map(result).collect();
    let pods = pods.iter();
    let pods: Vec<Value> = pods
        .map(|pod| json!({ "resource": "pods", "name": pod }))
        .collect();
    json!({
        "metadata": { "namespace": "ns", "name": name }, "spec": {},
        "status": { "allocation": { "devices": { "results": results } }, "reservedFor": pods },
    })
}

/// What nodes `n` and `o` offer, whose status lists no GPU, and pods hold.
fn seen(slices: Vec<Value>, claims: Vec<Value>) -> TestMirrors {
    let bare = |name: &str| {
        json!({
            "metadata": { "name": name },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        })
    };
    let mirrors = mirrors(PoolGroup::default());
    let writers = &mirrors.writers;
    list::<OfferingNode>(&writers.nodes, WatchedKind::Node, ["n", "o"].map(bare));
    list::<HoldingPod>(&writers.holding_pods, WatchedKind::HoldingPod, []);
    list::<ResourceSlice>(&writers.slices, WatchedKind::ResourceSlice, slices);
    list::<ResourceClaim>(&writers.claims, WatchedKind::ResourceClaim, claims);
    mirrors
}

/// Limit and use of H100; `None` where they are not known.
fn h100(mirrors: &Mirrors) -> Option<(u32, u32)> {
    let physical = mirrors.inventory(at(0)).physical(&LabelSelector::default());
    let Physical::Known {
        limits,
        used,
        unlisted,
    } = physical
    else {
        return None;
    };
    let sum = |sums: &BTreeMap<Arc<str>, Gpus>| sums.get("H100").map_or(0, |gpus| gpus.0);
    (!unlisted.contains("H100")).then(|| (sum(&limits), sum(&used)))
}

#[test]
fn nodes_offer_the_devices_of_complete_pools_and_claims_hold_them() {
    let two = || slice("a", "n", (1, 1), &devices(&["g0", "g1"]));
    let other = || slice("b", "o", (1, 1), &devices(&["g0"]));
    let mut odd = devices(&["g0"]);
    odd[0]["attributes"]["type"] = json!({ "string": "quantum" });
    for (slices, claims, expected) in [
        (vec![], vec![], Some((0, 0))),
        (vec![two()], vec![], Some((2, 0))),
        (vec![two(), other()], vec![], Some((3, 0))),
        (
            vec![two(), other()],
            vec![claim("c", &[("n", "g1"), ("o", "g0")], &["p"])],
            Some((3, 2)),
        ),
        // Shared by two claims, one of which no pod uses yet.
        (
            vec![two()],
            vec![
                claim("c", &[("n", "g1")], &["p", "q"]),
                claim("d", &[("n", "g1")], &[]),
            ],
            Some((2, 1)),
        ),
        // A device that its pool no longer has.
        (
            vec![two()],
            vec![claim("c", &[("n", "g7")], &["p"])],
            Some((2, 0)),
        ),
        // An older generation no longer counts.
        (
            vec![
                two(),
                slice("x", "n", (2, 1), &devices(&["g0", "g1", "g2"])),
            ],
            vec![],
            Some((3, 0)),
        ),
        (
            vec![
                slice("x", "n", (2, 2), &devices(&["g0"])),
                slice("y", "n", (2, 2), &devices(&["g1"])),
            ],
            vec![],
            Some((2, 0)),
        ),
        // The newest is not complete, and another node names the type.
        (
            vec![two(), slice("x", "n", (2, 2), &devices(&["g0"])), other()],
            vec![],
            None,
        ),
        (vec![slice("x", "n", (1, 1), &odd), other()], vec![], None),
        // A node that is not known.
        (
            vec![slice("x", "gone", (1, 1), &devices(&["g0"]))],
            vec![],
            Some((0, 0)),
        ),
    ] {
        let text = format!("{slices:?} {claims:?}");
        assert_eq!(h100(&seen(slices, claims)), expected, "{text}");
    }
}

#[test]
fn a_gpu_is_held_by_its_parts_once() {
    let mut whole = split("g0");
    for device in whole.as_array_mut().unwrap() {
        device["attributes"]["productName"] = json!({ "string": "NVIDIA H100 80GB HBM3" });
    }
    let pool = || vec![slice("x", "n", (1, 1), &whole)];
    assert_eq!(h100(&seen(pool(), vec![])), Some((1, 0)));
    let parts = claim("c", &[("n", "g0-mig-0"), ("n", "g0-mig-1")], &["p"]);
    assert_eq!(h100(&seen(pool(), vec![parts])), Some((1, 1)));
}

#[test]
fn devices_of_no_single_node_leave_the_inventory_unknown() {
    let mut shared = slice("x", "n", (1, 1), &devices(&["g0"]));
    shared["spec"]["nodeName"] = Value::Null;
    shared["spec"]["allNodes"] = json!(true);
    let mirrors = seen(vec![shared], vec![]);
    let expected = format!("devices of {CLASS} in pool n belong to no single node");
    assert_eq!(why(&mirrors, at(0)), Some(expected));
    // They are no longer looked at where they may not be.
    let epoch = Epoch::for_test(Role::Watcher(WatchedKind::ResourceSlice), 1);
    mirrors.writers.slices.forbid(&epoch).unwrap();
    assert_eq!(why(&mirrors, at(0)), None);
}

#[test]
fn gpus_of_a_claim_are_on_their_way_out_once_all_of_its_pods_are() {
    let pod = |name: &str, deleted: bool| {
        let deleted = deleted.then_some("2026-01-01T00:00:00Z");
        json!({
            "metadata": { "namespace": "ns", "name": name, "deletionTimestamp": deleted },
            "spec": {}, "status": {},
        })
    };
    for (deleted, users, expected) in [
        ([false, false], &["p", "q"][..], PodPhase::Active),
        ([true, false], &["p", "q"], PodPhase::Active),
        ([true, true], &["p", "q"], PodPhase::Leaving),
        ([true, true], &["p", "elsewhere"], PodPhase::Active),
        ([true, true], &[], PodPhase::Active),
    ] {
        let slices = vec![slice("a", "n", (1, 1), &devices(&["g0"]))];
        let mirrors = seen(slices, vec![claim("c", &[("n", "g0")], users)]);
        let pods = [pod("p", deleted[0]), pod("q", deleted[1])];
        list::<SlimPod>(&mirrors.writers.pods, WatchedKind::Pod, pods);
        let GpuInventory::Nodes { pods, .. } = mirrors.inventory(at(0)) else {
            panic!("it is not known");
        };
        let phases: Vec<PodPhase> = pods.iter().map(|pod| pod.phase).collect();
        assert!(
            phases.iter().all(|phase| *phase == expected),
            "{deleted:?} {users:?} {phases:?}"
        );
    }
}

#[test]
fn a_kind_that_is_not_served_is_no_reason_to_stop() {
    let mirrors = seen(vec![], vec![]);
    assert_eq!(why(&mirrors, at(0)), None);
    let slices = Epoch::for_test(Role::Watcher(WatchedKind::ResourceSlice), 1);
    let mirror = &mirrors.writers.slices;
    mirror.fail(&slices, "no answer").unwrap();
    assert!(why(&mirrors, at(120)).is_some());
    mirror.kind_absent(&slices).unwrap();
    mirror.fail(&slices, "no answer").unwrap();
    assert_eq!(why(&mirrors, at(120)), None);
}

/// Pods of variants of which none is missed are not charged twice.
#[test]
fn every_pod_that_uses_a_claim_is_named() {
    let slices = vec![slice("a", "n", (1, 1), &devices(&["g0", "g1"]))];
    let claims = vec![
        claim("c", &[("n", "g0"), ("n", "g1")], &["p", "q"]),
        claim("d", &[("n", "g1")], &["r"]),
    ];
    let GpuInventory::Nodes { pods, .. } = seen(slices, claims).inventory(at(0)) else {
        panic!("it is not known");
    };
    let mut named: Vec<(String, u32)> = pods
        .iter()
        .map(|pod| {
            let name = pod.named.as_ref().unwrap().1.to_string();
            let gpus = pod.containers.iter().map(|one| one[CLASS]).sum();
            (name, gpus)
        })
        .collect();
    named.sort_unstable();
    let expected = [("p", 2), ("q", 0), ("r", 0)];
    assert_eq!(named, expected.map(|(name, gpus)| (name.to_owned(), gpus)));
}
