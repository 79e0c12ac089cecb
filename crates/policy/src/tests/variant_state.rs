//! The pure state behind a variant's actor: clocks, second looks, bad objects.

use std::sync::Arc;
use std::time::Duration;

use super::world::{START, at};
use crate::accelerator::{Accelerator, Placement};
use crate::key::{TargetKey, TargetKind, VariantKey};
use crate::object::{
    Lifecycle, SpecReading, StoredAllocation, TargetObject, TargetReference, VariantObject,
    VariantSpec,
};
use crate::scaler::Scalers;
use crate::snapshot::{PodView, Readiness, ReplicaTemplate, TargetView, VariantView};
use crate::units::{Cost, Replicas};
use crate::variant::{TargetLookupRef, VariantObjects, VariantState};
use wva_base::moment::{Moment, WallTime};

/// `ns/va`, which names Deployment `d`.
pub(super) fn object() -> VariantObject {
    VariantObject {
        key: VariantKey::new("ns", "va"),
        uid: "va-uid".into(),
        generation: 1,
        lifecycle: Lifecycle::Live,
        accelerator_label: None,
        spec: SpecReading::Read(VariantSpec {
            model_id: "m".into(),
            target: TargetReference {
                api_version: None,
                kind: "Deployment".into(),
                name: "d".into(),
            },
            cost: None,
            min: None,
            max: None,
            policy: crate::snapshot::VariantPolicy::default(),
        }),
        stored: StoredAllocation::default(),
    }
}

/// Deployment `ns/d` in good order.
pub(super) fn deployment(replicas: u32, ready: u32) -> TargetObject {
    TargetObject {
        key: TargetKey::new("ns", TargetKind::Deployment, "d"),
        uid: "d-uid".into(),
        lifecycle: Lifecycle::Live,
        generation: 1,
        observed_generation: 1,
        spec_replicas: None,
        status_replicas: Replicas(replicas),
        outdated_replicas: Replicas::ZERO,
        ready_replicas: Replicas(ready),
        placement: Placement::default(),
        template: ReplicaTemplate::default(),
        pod_labels: None,
        controller: None,
    }
}

/// Facts without pods in sight and without other claimants.
pub(super) fn objects<'a>(
    object: &'a VariantObject,
    target: TargetLookupRef<'a>,
) -> VariantObjects<'a> {
    VariantObjects {
        object,
        target,
        pods: None,
        claimants: &[],
        owner: None,
        yielding: &[],
        published: None,
        scalers: &Scalers::Unknown,
    }
}

pub(super) fn pods(created: &[(u64, Readiness)]) -> Arc<[PodView]> {
    (0..)
        .zip(created)
        .map(|(number, (seconds, readiness))| PodView {
            name: format!("d-{number}").into(),
            readiness: *readiness,
            created: WallTime(START + i64::try_from(*seconds).unwrap() * 1_000),
            ready_since: None,
            node: None,
        })
        .collect()
}

/// Refreshes `ns/va` with these replica counts and pods.
pub(super) fn refresh(
    state: &mut VariantState,
    (current, ready): (u32, u32),
    published: Option<u32>,
    pods: &Arc<[PodView]>,
    now: Moment,
) -> Arc<VariantView> {
    let object = object();
    let target = deployment(current, ready);
    let objects = VariantObjects {
        pods: Some(pods),
        published: published.map(Replicas),
        ..objects(&object, TargetLookupRef::Found(&target))
    };
    state.refresh(&objects, now).view
}

pub(super) fn state() -> VariantState {
    VariantState::new(object().key, None)
}

pub(super) fn pending_for(view: &VariantView, now: Moment) -> Option<u64> {
    view.pending_since.map(|since| since.elapsed(now).as_secs())
}

fn unapplied_for(view: &VariantView, now: Moment) -> Option<u64> {
    view.unapplied_since.map(|since| since.elapsed(now).as_secs())
}

#[test]
fn pending_begins_when_it_appears_and_anew_with_every_added_replica() {
    let mut state = state();
    let none = pods(&[]);
    let view = refresh(&mut state, (2, 2), None, &none, at(0));
    assert_eq!(pending_for(&view, at(0)), None);
    let view = refresh(&mut state, (3, 2), None, &none, at(10));
    assert_eq!(pending_for(&view, at(15)), Some(5));
    let view = refresh(&mut state, (3, 1), None, &none, at(20));
    assert_eq!(pending_for(&view, at(25)), Some(15), "the same replicas");
    let view = refresh(&mut state, (4, 1), None, &none, at(30));
    assert_eq!(pending_for(&view, at(35)), Some(5), "one was added");
    let view = refresh(&mut state, (3, 1), None, &none, at(40));
    assert_eq!(pending_for(&view, at(45)), Some(15), "one was taken away");
    let view = refresh(&mut state, (3, 3), None, &none, at(50));
    assert_eq!(pending_for(&view, at(50)), None);
}

#[test]
fn a_status_behind_its_specification_is_pending() {
    let object = object();
    let mut target = deployment(2, 2);
    let mut state = state();
    let view = state.refresh(&objects(&object, TargetLookupRef::Found(&target)), at(0)).view;
    assert!(!view.target.resolved().unwrap().is_pending());
    target.generation = 2;
    let view = state.refresh(&objects(&object, TargetLookupRef::Found(&target)), at(1)).view;
    assert!(view.target.resolved().unwrap().is_pending());
}

#[test]
fn unapplied_begins_anew_when_either_count_moves() {
    let mut state = state();
    let none = pods(&[]);
    let view = refresh(&mut state, (2, 2), Some(2), &none, at(0));
    assert_eq!(unapplied_for(&view, at(0)), None);
    let view = refresh(&mut state, (2, 2), Some(4), &none, at(10));
    assert_eq!(unapplied_for(&view, at(18)), Some(8));
    let view = refresh(&mut state, (2, 2), Some(5), &none, at(20));
    assert_eq!(unapplied_for(&view, at(23)), Some(3), "another count");
    let view = refresh(&mut state, (3, 3), Some(5), &none, at(30));
    assert_eq!(unapplied_for(&view, at(34)), Some(4), "it is being applied");
    let view = refresh(&mut state, (5, 5), Some(5), &none, at(40));
    assert_eq!(unapplied_for(&view, at(40)), None);
}

#[test]
fn after_a_process_start_clocks_begin_with_the_oldest_pod_that_is_not_ready() {
    use Readiness::{NotReady, Ready};
    let mut state = state();
    let now = at(600);
    let object = object();
    let target = deployment(3, 1);
    let view = state.refresh(&objects(&object, TargetLookupRef::Found(&target)), now).view;
    assert_eq!(view.pending_since, None, "no pods in sight, no beginning");
    let seen = pods(&[(0, Ready), (480, NotReady), (540, NotReady)]);
    let view = refresh(&mut state, (3, 1), Some(4), &seen, now);
    assert_eq!(pending_for(&view, now), Some(120));
    assert_eq!(unapplied_for(&view, now), Some(120));

    let mut ahead = VariantState::new(object.key.clone(), None);
    let view = refresh(&mut ahead, (1, 0), None, &pods(&[(900, NotReady)]), now);
    assert_eq!(pending_for(&view, now), Some(0), "a clock ahead of ours");
}

#[test]
fn another_life_in_the_same_process_goes_on_with_the_same_clocks() {
    let mut first = state();
    let seen = pods(&[(0, Readiness::NotReady)]);
    refresh(&mut first, (2, 2), Some(2), &seen, at(10));
    let before = refresh(&mut first, (3, 2), Some(4), &seen, at(20));
    let mut second = VariantState::new(object().key, Some(Arc::clone(&before)));
    let after = refresh(&mut second, (3, 2), Some(4), &seen, at(50));
    assert!(Arc::ptr_eq(&before, &after), "{after:?}");
}

#[test]
fn a_re_created_target_has_clocks_of_its_own() {
    let mut state = state();
    let seen = pods(&[]);
    refresh(&mut state, (2, 2), None, &seen, at(0));
    let view = refresh(&mut state, (2, 1), None, &seen, at(10));
    assert_eq!(pending_for(&view, at(40)), Some(30));
    let object = object();
    let mut target = deployment(2, 1);
    target.uid = "another".into();
    let young = pods(&[(35, Readiness::NotReady)]);
    let objects =
        VariantObjects { pods: Some(&young), ..objects(&object, TargetLookupRef::Found(&target)) };
    let view = state.refresh(&objects, at(40)).view;
    assert_eq!(pending_for(&view, at(40)), Some(5));
}

#[test]
fn a_missing_target_is_said_at_the_second_look() {
    let object = VariantObject {
        stored: StoredAllocation { desired: Some(Replicas(3)), accelerator: Some("H100".into()) },
        ..object()
    };
    let mut state = state();
    let unsynced = state.refresh(&objects(&object, TargetLookupRef::Unsynced), at(0));
    assert!(matches!(unsynced.view.target, TargetView::Unknown { .. }));
    assert_eq!(unsynced.look_again, None, "the mirror will ring");

    let first = state.refresh(&objects(&object, TargetLookupRef::Missing), at(1));
    assert!(matches!(first.view.target, TargetView::Unknown { .. }));
    assert_eq!(first.view.desired, Some(Replicas(3)));
    assert_eq!(first.view.accelerator, Accelerator::Named("H100".into()));
    assert_eq!(first.look_again, Some(Duration::from_millis(250)));

    let second = state.refresh(&objects(&object, TargetLookupRef::Missing), at(2));
    assert!(matches!(second.view.target, TargetView::NotFound { .. }));
    assert_eq!((second.view.desired, second.look_again), (None, None));

    let mut next_life = VariantState::new(object.key.clone(), Some(Arc::clone(&second.view)));
    let again = next_life.refresh(&objects(&object, TargetLookupRef::Missing), at(3));
    assert!(Arc::ptr_eq(&again.view, &second.view));

    let target = deployment(1, 1);
    let back = state.refresh(&objects(&object, TargetLookupRef::Found(&target)), at(4));
    assert!(back.view.target.resolved().is_some());
    let gone = state.refresh(&objects(&object, TargetLookupRef::Missing), at(5));
    assert!(matches!(gone.view.target, TargetView::Unknown { .. }));

    let deleting = TargetObject { lifecycle: Lifecycle::Deleting, ..target };
    let leaving = state.refresh(&objects(&object, TargetLookupRef::Found(&deleting)), at(6));
    assert!(matches!(leaving.view.target, TargetView::NotFound { .. }));
}

#[test]
fn nothing_is_concluded_from_a_mirror_without_answers() {
    let object = object();
    let mut state = state();
    for second in 0..3 {
        let unanswered = state.refresh(&objects(&object, TargetLookupRef::Unanswered), at(second));
        assert!(matches!(unanswered.view.target, TargetView::Unknown { .. }));
        assert_eq!(unanswered.look_again, Some(Duration::from_secs(1)));
    }
    // What was concluded before stays.
    state.refresh(&objects(&object, TargetLookupRef::Missing), at(4));
    let gone = state.refresh(&objects(&object, TargetLookupRef::Missing), at(5));
    assert!(matches!(gone.view.target, TargetView::NotFound { .. }));
    let still = state.refresh(&objects(&object, TargetLookupRef::Unanswered), at(6));
    assert!(Arc::ptr_eq(&gone.view, &still.view));
    let target = deployment(1, 1);
    let back = state.refresh(&objects(&object, TargetLookupRef::Found(&target)), at(7));
    assert!(back.view.target.resolved().is_some());
}

#[test]
fn a_model_that_no_series_can_name_is_said() {
    let named = |model: &str| {
        let mut object = object();
        let SpecReading::Read(spec) = &mut object.spec else {
            unreachable!("the object can be read")
        };
        spec.model_id = model.into();
        let target = deployment(1, 1);
        let view = state().refresh(&objects(&object, TargetLookupRef::Found(&target)), at(0)).view;
        match &view.target {
            TargetView::Malformed { why } => Some(why.to_string()),
            _ => None,
        }
    };
    assert_eq!(named("meta-llama/\"8B\" {x}"), None);
    let why = named("two\nlines").unwrap();
    assert!(why.contains("spec.modelID \"two\\nlines\" contains a control character"), "{why}");
}

#[test]
fn a_stored_count_is_not_taken_over_by_a_re_created_target() {
    let mut state = state();
    let (first, second) = (deployment(2, 2), deployment(3, 3));
    let mut object = object();
    object.stored.desired = Some(Replicas(2));
    let desired =
        |state: &mut VariantState, object: &VariantObject, target: TargetLookupRef<'_>| {
            let objects = objects(object, target);
            state.refresh(&objects, at(0)).view.desired
        };
    let found = desired(&mut state, &object, TargetLookupRef::Found(&first));
    assert_eq!(found, Some(Replicas(2)));
    desired(&mut state, &object, TargetLookupRef::Missing);
    let gone = desired(&mut state, &object, TargetLookupRef::Missing);
    assert_eq!(gone, None);

    // Status has not been cleared yet.
    let back = desired(&mut state, &object, TargetLookupRef::Found(&second));
    assert_eq!(back, None);
    object.stored.desired = None;
    desired(&mut state, &object, TargetLookupRef::Found(&second));
    object.stored.desired = Some(Replicas(3));
    let stored = desired(&mut state, &object, TargetLookupRef::Found(&second));
    assert_eq!(stored, Some(Replicas(3)));
}

#[test]
fn two_claimants_and_foreign_kinds_differ_from_a_missing_target() {
    let object = object();
    let target = deployment(1, 1);
    let claimants = [VariantKey::new("ns", "other"), object.key.clone()];
    let contested = VariantObjects {
        claimants: &claimants,
        owner: None,
        ..objects(&object, TargetLookupRef::Found(&target))
    };
    let mut state = state();
    let view = state.refresh(&contested, at(0)).view;
    assert!(
        matches!(&view.target, TargetView::Contested { claimants: found, .. } if **found == claimants)
    );

    for (api_version, kind, expected) in [
        (None, "Rollout", "Rollout"),
        (Some("v1/../v1"), "Deployment", "Deployment (v1/../v1)"),
        (Some("apps/v1"), "Stateful Set", "Stateful Set (apps/v1)"),
    ] {
        let mut foreign = object.clone();
        if let SpecReading::Read(spec) = &mut foreign.spec {
            spec.target.kind = kind.into();
            spec.target.api_version = api_version.map(Into::into);
        }
        let view = state.refresh(&objects(&foreign, TargetLookupRef::Missing), at(1)).view;
        assert!(
            matches!(&view.target, TargetView::UnsupportedKind { kind, .. } if **kind == *expected),
            "{:?}",
            view.target
        );
    }
}

#[test]
fn the_variant_that_scales_names_the_objects_that_give_way() {
    let (object, target, mut state) = (object(), deployment(1, 1), state());
    let alone = objects(&object, TargetLookupRef::Found(&target));
    assert!(state.refresh(&alone, at(0)).view.notes.is_empty());
    let yielding = &["PodAutoscaler ns/a", "PodAutoscaler ns/b"].map(Arc::from);
    let shared = VariantObjects { yielding, ..alone };
    let note = "scale target Deployment d is also named by PodAutoscaler ns/a, PodAutoscaler ns/b; this object scales it, remove the others";
    assert_eq!(*state.refresh(&shared, at(1)).view.notes, [Arc::from(note)]);
    assert!(state.refresh(&alone, at(2)).view.notes.is_empty());
}

#[test]
fn a_malformed_object_keeps_what_it_last_said_in_good_order() {
    let mut good = object();
    if let SpecReading::Read(spec) = &mut good.spec {
        spec.cost = Some("5".into());
        spec.max = Some(4);
    }
    let target = deployment(2, 2);
    let mut state = state();
    let published = VariantObjects {
        published: Some(Replicas(3)),
        ..objects(&good, TargetLookupRef::Found(&target))
    };
    let before = state.refresh(&published, at(0)).view;
    assert_eq!(before.desired, Some(Replicas(3)));

    for (spoil, part) in wva_base::cases! {
        (spoil(|spec| spec.model_id = "".into()), "spec.modelID is empty"),
        (spoil(|spec| spec.target.name = "".into()), "spec.scaleTargetRef.name is empty"),
        (spoil(|spec| spec.min = Some(-1)), "spec.minReplicas is -1"),
        (spoil(|spec| spec.max = Some(0)), "spec.maxReplicas is 0"),
    } {
        let bad = spoil(good.clone());
        let objects = VariantObjects { object: &bad, ..published };
        let view = state.refresh(&objects, at(1)).view;
        let TargetView::Malformed { why } = &view.target else {
            panic!("{part}: {:?}", view.target);
        };
        assert!(why.starts_with("ns/va: ") && why.contains(part), "{why}");
        assert_eq!(view.model, before.model, "{part}");
        assert_eq!(view.desired, Some(Replicas(3)), "{part}");
    }
    let back = state.refresh(&published, at(2)).view;
    assert_eq!(back, before);
}

#[test]
fn a_malformed_object_without_a_past_shows_its_status() {
    let object = VariantObject {
        spec: SpecReading::Malformed { why: "ns/va: spec.modelID is a number".into() },
        stored: StoredAllocation { desired: Some(Replicas(3)), accelerator: Some("H100".into()) },
        ..object()
    };
    let refreshed = state().refresh(&objects(&object, TargetLookupRef::Unsynced), at(0));
    assert!(matches!(refreshed.view.target, TargetView::Malformed { .. }));
    assert_eq!(refreshed.view.desired, Some(Replicas(3)));
    let accelerator = Accelerator::Named("H100".into());
    assert_eq!(refreshed.view.accelerator, accelerator);
}

fn spoil(change: fn(&mut VariantSpec)) -> impl Fn(VariantObject) -> VariantObject {
    move |mut object| {
        if let SpecReading::Read(spec) = &mut object.spec {
            change(spec);
        }
        object
    }
}

#[test]
fn a_cost_that_is_no_number_is_replaced_and_said() {
    let mut object = object();
    if let SpecReading::Read(spec) = &mut object.spec {
        spec.cost = Some("cheap".into());
    }
    let view = state().refresh(&objects(&object, TargetLookupRef::Unsynced), at(0)).view;
    assert_eq!(view.cost, Cost::DEFAULT);
    assert!(view.notes[0].contains("variantCost \"cheap\""), "{:?}", view.notes);
}

/// A rollout has one replica beyond what is asked for, for as long as it lasts: it is applied all the same.
#[test]
fn surplus_of_a_rollout_does_not_make_a_count_unapplied() {
    let (object, none) = (object(), pods(&[]));
    let look = |asked: u32, outdated: u32| {
        let target = TargetObject {
            spec_replicas: Some(Replicas(asked)),
            outdated_replicas: Replicas(outdated),
            ..deployment(2, 1)
        };
        let objects = VariantObjects {
            pods: Some(&none),
            published: Some(Replicas(1)),
            ..objects(&object, TargetLookupRef::Found(&target))
        };
        let mut state = state();
        unapplied_for(&state.refresh(&objects, at(10)).view, at(15))
    };
    assert_eq!(look(2, 1), Some(5), "two are asked for");
    assert_eq!(look(1, 0), Some(5), "no rollout: one is still to go");
    assert_eq!(look(1, 1), None);
}
