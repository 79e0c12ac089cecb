//! What the controller writes to a target itself.

use std::sync::Arc;

use crate::condition::{ConditionReason, ConditionStatus, ConditionType};
use crate::direct_step::DirectStep;
use crate::learned::Learned;
use crate::params::{ActuationMode, DynamicSettings, SaturationEntry};
use crate::plan::{DecisionOutcome, Plan};
use crate::record::{PublishedRecord, Troubles};
use crate::scaler::{Scaler, ScalerKind, Scalers};
use crate::snapshot::{CycleId, TargetView};
use crate::tests::world::{self, Variant, World, at, settings};
use crate::units::Replicas;

/// Three are wanted of two replicas, of none that is attached.
fn grows() -> Variant {
    let mut variant = Variant::new("a").replicas(2, 0.78, 4.0).desired(Some(2));
    variant.view.scalers = Scalers::Known(Arc::from([]));
    variant
}

fn scaler() -> Scaler {
    world::scaler(ScalerKind::HorizontalPodAutoscaler, Vec::new())
}

fn stating(actuation: Option<ActuationMode>) -> DynamicSettings {
    let entry = SaturationEntry { actuation, ..SaturationEntry::default() };
    let mut settings = settings();
    settings.saturation.entries.global.default = Some(entry);
    settings
}

fn direct() -> DynamicSettings {
    stating(Some(ActuationMode::Direct))
}

fn decided(variant: &Variant, actuation: Option<ActuationMode>) -> PublishedRecord {
    let snapshot = World::of([variant.clone()]).snapshot(at(1));
    let settings = stating(actuation);
    let plan = crate::plan(&snapshot, &Learned::default(), &settings, 1, at(1));
    PublishedRecord::of(&variant.view, Some(&plan), None, Troubles::default(), at(1))
}

fn actuation_ready(record: &PublishedRecord) -> (ConditionStatus, ConditionReason, &str) {
    let mut conditions = record.conditions.iter();
    let found = conditions.find(|one| one.kind == ConditionType::ActuationReady);
    let found = found.unwrap();
    (found.status, found.reason, &found.message)
}

/// The step after some seconds, of a target that states a count.
fn step(
    record: &PublishedRecord,
    variant: &Variant,
    stated: u32,
    stored: Option<u32>,
    seconds: u64,
) -> Option<(u32, u32)> {
    let now = at(1 + seconds).wall;
    let stored = stored.map(Replicas);
    let due = DirectStep::due(record, &variant.view, Replicas(stated), stored, now);
    due.map(|step| (step.from.0, step.to.0))
}

#[test]
fn a_raise_is_written_once_it_is_stored_or_was_waited_for() {
    let variant = grows();
    let record = decided(&variant, Some(ActuationMode::Direct));
    assert_eq!(step(&record, &variant, 2, Some(2), 0), None);
    assert_eq!(step(&record, &variant, 2, Some(3), 0), Some((2, 3)));
    assert_eq!(step(&record, &variant, 2, None, 1), None);
    assert_eq!(step(&record, &variant, 2, None, 2), Some((2, 3)));
    assert_eq!(step(&record, &variant, 3, Some(3), 60), None);
}

#[test]
fn a_reduction_waits_for_the_marks_of_pods() {
    let variant = grows();
    let record = decided(&variant, Some(ActuationMode::Direct));
    assert_eq!(step(&record, &variant, 7, Some(3), 4), None);
    assert_eq!(step(&record, &variant, 7, Some(3), 5), Some((7, 3)));
    // What was only kept may be an old status.
    let kept = PublishedRecord { outcome: Some(DecisionOutcome::SafetyNet), ..record };
    assert_eq!(step(&kept, &variant, 7, Some(3), 60), None);
    assert_eq!(step(&kept, &variant, 2, Some(3), 60), Some((2, 3)));
}

#[test]
fn another_target_waits_for_a_decision_of_its_own() {
    let mut variant = grows();
    let (snapshot, settings) = (World::of([variant.clone()]).snapshot(at(1)), direct());
    let plan = crate::plan(&snapshot, &Learned::default(), &settings, 1, at(1));
    let first = PublishedRecord::of(&variant.view, Some(&plan), None, Troubles::default(), at(1));
    assert_eq!(step(&first, &variant, 10, Some(3), 60), Some((10, 3)));
    if let TargetView::Resolved(target) = &mut variant.view.target {
        target.key.name = "other".into();
    }
    let of = |plan, previous| {
        PublishedRecord::of(&variant.view, Some(plan), Some(previous), Troubles::default(), at(2))
    };
    let second = of(&plan, &first);
    assert!(second.awaits_decision());
    assert_eq!(step(&second, &variant, 10, Some(3), 60), None);
    let later = Plan { cycle: CycleId(plan.cycle.0 + 1), ..plan.clone() };
    let third = of(&later, &second);
    assert_eq!(step(&third, &variant, 10, Some(3), 60), Some((10, 3)));
}

#[test]
fn only_what_a_cycle_has_decided_is_written_and_only_where_no_scaler_is_attached() {
    let variant = grows();
    let record = decided(&variant, Some(ActuationMode::Direct));
    assert_eq!(step(&record, &variant, 2, Some(3), 60), Some((2, 3)));
    for other in [None, Some(ActuationMode::Scaler)] {
        let record = decided(&variant, other);
        assert_eq!(step(&record, &variant, 2, Some(3), 60), None, "{other:?}");
    }
    let mut undecided = record.clone();
    let first = PublishedRecord::of(&variant.view, None, None, Troubles::default(), at(1));
    undecided.conditions = first.conditions;
    assert_eq!(step(&undecided, &variant, 2, Some(3), 60), None);

    let mut attached = variant.clone();
    for scalers in [Scalers::Unknown, Scalers::Known(Arc::from([scaler()]))] {
        attached.view.scalers = scalers;
        assert_eq!(step(&record, &attached, 2, Some(3), 60), None);
    }
    let mut other = variant;
    other.view.uid = Arc::from("another");
    assert_eq!(step(&record, &other, 2, Some(3), 60), None);
}

#[test]
fn the_condition_says_who_scales() {
    let mut variant = grows();
    let by_scaler = decided(&variant, None);
    let (status, reason, _) = actuation_ready(&by_scaler);
    assert_eq!((status, reason), (ConditionStatus::False, ConditionReason::NoScaler));
    let direct = decided(&variant, Some(ActuationMode::Direct));
    assert_eq!(
        actuation_ready(&direct),
        (
            ConditionStatus::True,
            ConditionReason::ScaledDirectly,
            "The controller scales Deployment a itself"
        )
    );
    variant.view.scalers = Scalers::Known(Arc::from([scaler()]));
    let attached = decided(&variant, Some(ActuationMode::Direct));
    let (status, reason, message) = actuation_ready(&attached);
    assert_eq!((status, reason), (ConditionStatus::False, ConditionReason::CountNotRead));
    let rests = ". Also the setting actuation: direct rests while a scaler is attached";
    assert!(message.ends_with(rests), "{message}");
}
