//! What slices offer and claims hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::tests::why;
use crate::api::gpu::{HoldingPod, OfferingNode};
use crate::api::pod::SlimPod;
use crate::api::resource_claim::ResourceClaim;
use crate::api::resource_slice::ResourceSlice;
use crate::cluster::kinds::WatchedKind;
use crate::policy::gpu::{Physical, PodPhase};
use crate::policy::params::LabelSelector;
use crate::policy::snapshot::GpuInventory;
use crate::policy::units::Gpus;
use crate::roles::Role;
use crate::settings::pool_group::PoolGroup;
use crate::state::mirrors::Mirrors;
use crate::state::mirrors::tests::{TestMirrors, at, list, mirrors};
use wva_supervise::Epoch;

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
    names.map(|name| json!({ "name": name, "attributes": product })).collect()
}

/// Parts of a GPU and the whole, all of which take from its counters.
fn split(name: &str) -> Value {
    let device = |suffix: &str, kind: &str| {
        json!({
            "name": format!("{name}{suffix}"), "attributes": { "type": { "string": kind } },
            "consumesCounters": [{ "counterSet": name, "counters": {} }],
        })
    };
    json!([device("", "gpu"), device("-mig-0", "mig"), device("-mig-1", "mig")])
}

fn claim(name: &str, held: &[(&str, &str)], pods: &[&str]) -> Value {
    let result = |(pool, device): &(&str, &str)| json!({ "driver": "gpu.nvidia.com", "pool": pool, "device": device });
    let results: Vec<Value> = held.iter().map(result).collect();
    let pods = pods.iter();
    let pods: Vec<Value> = pods.map(|pod| json!({ "resource": "pods", "name": pod })).collect();
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
    list::<OfferingNode>(&writers.nodes, ["n", "o"].map(bare));
    list::<HoldingPod>(&writers.holding_pods, []);
    list::<ResourceSlice>(&writers.slices, slices);
    list::<ResourceClaim>(&writers.claims, claims);
    mirrors
}

/// Limit and use of H100; `None` where they are not known.
fn h100(mirrors: &Mirrors) -> Option<(u32, u32)> {
    let physical = mirrors.inventory(at(0)).physical(&LabelSelector::default());
    let Physical::Known { limits, used, unlisted } = physical else {
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
    for (slices, claims, expected) in wva_base::cases! {
        (vec![], vec![], Some((0, 0))),
        (vec![two()], vec![], Some((2, 0))),
        (vec![two(), other()], vec![], Some((3, 0))),
        (vec![two(), other()], vec![claim("c", &[("n", "g1"), ("o", "g0")], &["p"])], Some((3, 2))),
        // Shared by two claims, one of which no pod uses yet.
        (vec![two()], vec![claim("c", &[("n", "g1")], &["p", "q"]), claim("d", &[("n", "g1")], &[])], Some((2, 1))),
        // A device that its pool no longer has.
        (vec![two()], vec![claim("c", &[("n", "g7")], &["p"])], Some((2, 0))),
        // An older generation no longer counts.
        (vec![two(), slice("x", "n", (2, 1), &devices(&["g0", "g1", "g2"]))], vec![], Some((3, 0))),
        (vec![slice("x", "n", (2, 2), &devices(&["g0"])), slice("y", "n", (2, 2), &devices(&["g1"]))], vec![],
         Some((2, 0))),
        // The newest is not complete, and another node names the type.
        (vec![two(), slice("x", "n", (2, 2), &devices(&["g0"])), other()], vec![], None),
        (vec![slice("x", "n", (1, 1), &odd), other()], vec![], None),
        // A node that is not known.
        (vec![slice("x", "gone", (1, 1), &devices(&["g0"]))], vec![], Some((0, 0))),
    } {
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

/// A slice of a pool of its own, whose devices are at a place.
fn placed(place: &Value, devices: &Value) -> Value {
    let mut slice = slice("x", "shared", (1, 1), devices);
    slice["spec"]["nodeName"] = Value::Null;
    for (field, value) in place.as_object().unwrap() {
        slice["spec"][field] = value.clone();
    }
    slice
}

#[test]
fn devices_that_several_nodes_reach_leave_their_type_unknown_and_no_other() {
    let selector = |key: &str, values: Value| {
        let required = json!({ "key": key, "operator": "In", "values": values });
        let terms = json!([{ "matchFields": [required] }]);
        json!({ "nodeSelector": { "nodeSelectorTerms": terms } })
    };
    let (mine, one) = (devices(&["g0"]), devices(&["g1"]));
    let mut each = devices(&["g1", "g2"]);
    each[0]["nodeName"] = json!("o");
    each[1]["allNodes"] = json!(true);
    let mut first = each.clone();
    first.as_array_mut().unwrap().pop();
    let mut other = one.clone();
    other[0]["attributes"]["productName"]["string"] = json!("NVIDIA A100 40GB");
    let mut bare = one.clone();
    bare[0]["attributes"] = json!({});
    let mut part = one.clone();
    part[0]["attributes"]["type"] = json!({ "string": "mig" });
    let all = json!({ "allNodes": true });
    let per_device = json!({ "perDeviceNodeSelection": true });
    let name = "metadata.name";
    for (place, devices, expected) in [
        (&selector(name, json!(["o"])), &one, Some(2)),
        (&selector(name, json!(["gone"])), &one, Some(1)),
        (&selector(name, json!(["n", "o"])), &one, None),
        (&all, &one, None),
        // Of another type, or none that can be had.
        (&all, &other, Some(1)),
        (&all, &part, Some(1)),
        // Of no type that is known: each node may have it.
        (&all, &bare, None),
        (&selector(name, json!(["gone"])), &bare, Some(1)),
        (&per_device, &first, Some(2)),
        (&per_device, &each, None),
    ] {
        let known = slice("a", "n", (1, 1), &mine);
        let mirrors = seen(vec![known, placed(place, devices)], vec![]);
        let found = h100(&mirrors).map(|(limit, _)| limit);
        assert_eq!(found, expected, "{place} {devices}");
        assert_eq!(why(&mirrors, at(0)), None);
    }
    // It is named.
    let mirrors = seen(vec![placed(&all, &one)], vec![]);
    let named = |mirrors: &TestMirrors| match mirrors.inventory(at(0)) {
        GpuInventory::Nodes { nodes, .. } => nodes.keys().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    assert_eq!(named(&mirrors), ["NVIDIA H100 80GB HBM3 of pool shared"]);
    // They are no longer looked at where they may not be.
    let epoch = Epoch::for_test(Role::Watcher(WatchedKind::ResourceSlice), 1);
    mirrors.writers.slices.forbid(&epoch).unwrap();
    assert_eq!(named(&mirrors), Vec::<String>::new());
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
        list::<SlimPod>(&mirrors.writers.pods, pods);
        let GpuInventory::Nodes { pods, .. } = mirrors.inventory(at(0)) else {
            panic!("it is not known");
        };
        let phases: Vec<PodPhase> = pods.iter().map(|pod| pod.phase).collect();
        assert!(phases.iter().all(|phase| *phase == expected), "{deleted:?} {users:?} {phases:?}");
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

#[test]
fn a_claim_that_no_pod_uses_yet_is_of_the_pod_that_it_was_made_for() {
    let named = |owners: Value, users: &[&str]| {
        let mut claim = claim("c", &[("n", "g0")], users);
        claim["metadata"]["ownerReferences"] = owners;
        let slices = vec![slice("a", "n", (1, 1), &devices(&["g0"]))];
        let GpuInventory::Nodes { pods, .. } = seen(slices, vec![claim]).inventory(at(0)) else {
            panic!("it is not known");
        };
        let names = pods.iter().map(|pod| pod.named.as_ref());
        names.map(|named| named.map(|(_, name)| name.to_string())).collect::<Vec<_>>()
    };
    let owner = |kind: &str| json!([{ "apiVersion": "v1", "kind": kind, "name": "p", "uid": "u", "controller": true }]);
    let (p, q) = (Some("p".to_owned()), Some("q".to_owned()));
    assert_eq!(named(json!([]), &[]), [None]);
    assert_eq!(named(owner("Service"), &[]), [None]);
    assert_eq!(named(owner("Pod"), &[]), [p]);
    assert_eq!(named(owner("Pod"), &["q"]), [q]);
}
