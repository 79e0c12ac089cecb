//! Which kinds can be named, what is known of one replica, and which pods are a target's.

use std::sync::Arc;

use super::variant_state::{deployment, object, objects};
use super::world::at;
use crate::attribution::{Controlled, OwnerIdentity, pods_of};
use crate::capacity::ServingRole;
use crate::gpu::GpuCount;
use crate::key::TargetKind;
use crate::object::{DeletionCost, Drain, Lifecycle, PodObject, TargetReference};
use crate::snapshot::{Readiness, ReplicaTemplate, TargetView, VariantView};
use crate::units::{Gpus, Replicas};
use crate::variant::{TargetLookupRef, VariantState};
use wva_base::moment::WallTime;

#[test]
fn every_kind_that_says_what_it_is_can_be_named() {
    for (api_version, kind, expected) in wva_base::cases! {
        (None, "", "Deployment ns/d"),
        (Some("apps/v1"), "StatefulSet", "StatefulSet ns/d"),
        (None, "StatefulSet", "StatefulSet ns/d"),
        (None, "LeaderWorkerSet", "LeaderWorkerSet ns/d"),
        (Some("argoproj.io/v1alpha1"), "Deployment", "Deployment ns/d"),
        (Some("v1"), "ReplicationController", "ReplicationController ns/d"),
    } {
        let reference = TargetReference {
            api_version: api_version.map(Into::into),
            kind: kind.into(),
            name: "d".into(),
        };
        let target = reference.resolve(&"ns".into()).unwrap();
        assert_eq!(target.to_string(), expected);
        let is_other = matches!(target.kind, TargetKind::Other(_));
        let foreign = ["argoproj.io/v1alpha1", "v1"];
        assert_eq!(is_other, api_version.is_some_and(|text| foreign.contains(&text)));
    }
}

#[test]
fn a_kind_that_is_not_served_is_named_and_resolves_once_it_is() {
    let object = object();
    let target = deployment(1, 1);
    let mut state = VariantState::new(object.key.clone(), None);
    let why: Arc<str> = "install it".into();
    let view = state.refresh(&objects(&object, TargetLookupRef::Unscalable(&why)), at(0));
    assert!(
        matches!(&view.view.target, TargetView::UnsupportedKind { why, .. } if &**why == "install it")
    );
    let view = state.refresh(&objects(&object, TargetLookupRef::Found(&target)), at(1));
    assert!(view.view.target.resolved().is_some());
}

#[test]
fn one_replica_is_described_by_the_target_and_remembered_without_it() {
    let object = object();
    let mut target = deployment(1, 1);
    target.template.gpus = [("nvidia.com/gpu".into(), Gpus(2))].into();
    let mut state = VariantState::new(object.key.clone(), None);
    let gpus = |view: &VariantView| view.template.gpus_per_replica();
    let view = state.refresh(&objects(&object, TargetLookupRef::Unsynced), at(0)).view;
    assert_eq!(gpus(&view), Gpus(1));
    let found = objects(&object, TargetLookupRef::Found(&target));
    assert_eq!(gpus(&state.refresh(&found, at(1)).view), Gpus(2));
    let lost = objects(&object, TargetLookupRef::Unanswered);
    assert_eq!(gpus(&state.refresh(&lost, at(2)).view), Gpus(2));
}

/// A kind without a watcher shows what a replica holds by its pods alone.
#[test]
fn what_pods_showed_is_remembered_while_their_target_has_none() {
    let object = object();
    let mut target = deployment(1, 1);
    let unknown = ReplicaTemplate { gpu_count: GpuCount::Unknown, ..ReplicaTemplate::default() };
    let shown = ReplicaTemplate {
        role: ServingRole::Decode,
        gpus: [("nvidia.com/gpu".into(), Gpus(16))].into(),
        ..ReplicaTemplate::default()
    };
    let mut state = VariantState::new(object.key.clone(), None);
    for (template, seen) in
        [(unknown.clone(), &unknown), (shown.clone(), &shown), (unknown.clone(), &shown)]
    {
        target.template = template;
        let found = objects(&object, TargetLookupRef::Found(&target));
        assert_eq!(&state.refresh(&found, at(0)).view.template, seen);
    }
}

/// Target `d` controls set `set`, which controls pods; of a group the leader controls the rest.
/// What it was about is gone, and status does not say so yet.
#[test]
fn a_stored_count_counts_again_for_another_object_of_the_name() {
    let mut object = object();
    object.stored.desired = Some(Replicas(20));
    let mut state = VariantState::new(object.key.clone(), None);
    for second in 0..2 {
        state.refresh(&objects(&object, TargetLookupRef::Missing), at(second));
    }
    let target = deployment(20, 20);
    for (uid, stored) in [("va-uid", None), ("other", Some(Replicas(20)))] {
        object.uid = uid.into();
        let found = objects(&object, TargetLookupRef::Found(&target));
        assert_eq!(state.refresh(&found, at(2)).view.desired, stored, "{uid}");
    }
}

#[test]
fn pods_of_a_target_are_alive_its_own_and_sorted() {
    let pod = |name: &str, lifecycle: Lifecycle| {
        Arc::new(PodObject {
            namespace: "ns".into(),
            name: name.into(),
            uid: Arc::from(""),
            controller: None,
            readiness: Readiness::Ready,
            created: WallTime(0),
            ready_since: None,
            node: None,
            labels: Arc::default(),
            address: None,
            lifecycle,
            drain: Drain::None,
            deletion_cost: DeletionCost::None,
            replica: None,
        })
    };
    let owner = |name: &str| OwnerIdentity {
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("{name}-uid").into(),
    };
    let controlled = |of: &OwnerIdentity| match &*of.name {
        "d" => Controlled { pods: vec![pod("b", Lifecycle::Live)], owners: vec![owner("set")] },
        "set" => Controlled {
            pods: vec![pod("a", Lifecycle::Live), pod("c", Lifecycle::Deleting)],
            owners: Vec::new(),
        },
        _ => Controlled::default(),
    };
    let names = |target: &str| -> Vec<String> {
        let pods = pods_of(owner(target), controlled);
        pods.iter().map(|pod| pod.name.to_string()).collect()
    };
    assert_eq!(names("d"), ["a", "b"]);
    assert_eq!(names("other"), [""; 0]);
    // A chain that leads back to itself ends.
    let endless = |_: &OwnerIdentity| Controlled { pods: Vec::new(), owners: vec![owner("d")] };
    assert!(pods_of(owner("d"), endless).is_empty());
}
