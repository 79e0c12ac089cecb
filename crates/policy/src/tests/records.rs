//! What is published from views and plans.

use std::sync::Arc;

use crate::accelerator::Accelerator;
use crate::condition::{ConditionReason, ConditionStatus, ConditionType, Hints};
use crate::key::{TargetKey, TargetKind};
use crate::metrics_gap::MetricsGap;
use crate::plan::{Action, Plan};
use crate::record::{AllocationStatus, GaugeValues, PublishedRecord, Troubles};
use crate::scaler::{Input, Published, Scaler, ScalerKind, Scalers};
use crate::signal::SignalName;
use crate::snapshot::{CycleId, TargetPast, TargetView};
use crate::tests::world::{self, Variant, World, at};
use crate::units::Replicas;
use wva_base::moment::Moment;

fn target_key() -> TargetKey {
    TargetKey::new("ns", TargetKind::Deployment, "a")
}

fn values(desired: u32, current: u32, ratio: f64) -> GaugeValues {
    GaugeValues { desired: Replicas(desired), current: Replicas(current), ratio }
}

fn record(
    variant: &Variant,
    plan: Option<&Plan>,
    previous: Option<&PublishedRecord>,
    now: Moment,
) -> PublishedRecord {
    PublishedRecord::of(&variant.view, plan, previous, Troubles::default(), now)
}

fn ready(record: &PublishedRecord) -> (ConditionStatus, ConditionReason) {
    let ready = record.conditions.iter().find(|condition| condition.kind == ConditionType::Ready);
    ready.map(|ready| (ready.status, ready.reason)).unwrap()
}

fn plan_of(variant: &Variant, now: Moment) -> Plan {
    World::of([variant.clone()]).plan(now)
}

#[test]
fn before_the_first_plan_a_resolved_variant_shows_what_is_stored_else_what_exists() {
    let variant = Variant::new("a").replicas(2, 0.1, 0.0);
    assert_eq!(record(&variant, None, None, at(0)).values, Some(values(2, 2, 1.0)));
    let variant = variant.desired(Some(5));
    let record = record(&variant, None, None, at(0));
    assert_eq!(record.values, Some(values(5, 2, 2.5)));
    assert_eq!(ready(&record).0, ConditionStatus::Unknown);
}

#[test]
fn a_decision_is_shown_and_keeps_its_cycle_until_something_that_status_shows_changes() {
    let variant = Variant::new("a").replicas(2, 0.78, 4.0).desired(Some(2));
    let before = record(&variant, None, None, at(0));
    let plan = plan_of(&variant, at(1));
    let grown = record(&variant, Some(&plan), Some(&before), at(1));
    assert_eq!(grown.values, Some(values(3, 2, 1.5)));
    assert_eq!(grown.change_from(Some(&before)), Some(Action::ScaleUp));
    assert_eq!(grown.decided.cycle, Some(plan.cycle));
    assert_eq!(grown.decided.at, at(1).wall);

    // The replica arrives: the gauges move, the decision does not.
    let arrived = Variant::new("a").replicas(3, 0.5, 1.0).desired(Some(3));
    let same = record(&arrived, Some(&plan), Some(&grown), at(9));
    assert_eq!(same.values, Some(values(3, 3, 1.0)));
    assert_eq!((same.decided, same.conditions.clone()), (grown.decided, grown.conditions.clone()));
    assert_eq!(same.change_from(Some(&grown)), None);
}

#[test]
fn a_target_that_goes_takes_the_values_along_and_one_that_is_out_of_sight_keeps_them() {
    let variant = Variant::new("a").replicas(2, 0.1, 0.0).desired(Some(2));
    let shown = record(&variant, None, None, at(0));
    assert!(shown.values.is_some());

    let unseen = variant.clone().target(TargetView::Unknown { target: target_key() });
    assert_eq!(record(&unseen, None, Some(&shown), at(1)).values, shown.values);

    let gone =
        variant.target(TargetView::NotFound { target: target_key(), past: TargetPast::Existed });
    let gone = record(&gone, None, Some(&shown), at(2));
    assert_eq!(gone.values, None);
    assert_eq!(ready(&gone), (ConditionStatus::False, ConditionReason::DeploymentNotFound));
    assert_eq!(gone.change_from(Some(&shown)), None);
}

#[test]
fn a_decision_on_another_state_of_the_target_is_not_used() {
    let missing = Variant::new("a")
        .target(TargetView::NotFound { target: target_key(), past: TargetPast::Existed });
    let plan = plan_of(&missing, at(0));
    let found = Variant::new("a").replicas(4, 0.1, 0.0);
    assert_eq!(record(&found, Some(&plan), None, at(1)).values, Some(values(4, 4, 1.0)));
}

/// A VariantAutoscaling with five goes, and a scaler with twenty takes its name over.
#[test]
fn nothing_passes_to_another_object_of_the_same_name() {
    let mut first = Variant::new("a").replicas(5, 0.5, 0.0).desired(Some(5));
    first.view.uid = "first".into();
    let plan = plan_of(&first, at(0));
    let shown = record(&first, Some(&plan), None, at(0));
    assert!(!shown.awaits_decision());
    assert_eq!(shown.values.map(|values| values.current), Some(Replicas(5)));

    let mut second = Variant::new("a").replicas(20, 0.5, 0.0).desired(Some(20));
    second.view.uid = "second".into();
    for previous in [None, Some(&shown)] {
        let next = record(&second, Some(&plan), previous, at(1));
        assert_eq!(next.values, Some(values(20, 20, 1.0)));
        assert!(next.awaits_decision());
        assert_eq!(next.change_from(previous), None);
    }
    second.view.target = TargetView::Malformed { why: "no".into() };
    let unreadable = record(&second, Some(&plan), Some(&shown), at(1));
    assert_eq!(unreadable.values, None);
    assert_eq!(unreadable.allocation, AllocationStatus::Kept);
}

#[test]
fn a_contested_target_shows_nothing_and_a_new_accelerator_is_a_new_decision() {
    let variant = Variant::new("a").replicas(2, 0.1, 0.0).desired(Some(2));
    let shown = record(&variant, None, None, at(0));
    let claimants = [variant.view.key.clone()].into();
    let contested = variant.clone().target(TargetView::Contested {
        target: target_key(),
        claimants,
        owner: None,
    });
    assert_eq!(record(&contested, None, Some(&shown), at(1)).values, None);

    let mut moved = variant;
    moved.view.accelerator = Accelerator::Named("L40S".into());
    let moved = record(&moved, None, Some(&shown), at(7));
    assert_eq!((moved.accelerator.label(), moved.decided.at), ("L40S", at(7).wall));
}

#[test]
fn a_quarantined_variant_keeps_its_count_and_says_so() {
    let variant = Variant::new("a").replicas(2, 0.1, 0.0).desired(Some(2));
    let fine = record(&variant, None, None, at(0));
    assert_ne!(ready(&fine).1, ConditionReason::VariantQuarantined);
    let panicking = Troubles { quarantine: Some("panic"), ..Troubles::default() };
    let ill = PublishedRecord::of(&variant.view, None, Some(&fine), panicking, at(1));
    assert_eq!(ill.values, fine.values);
    assert_eq!(ready(&ill), (ConditionStatus::False, ConditionReason::VariantQuarantined));
}

#[test]
fn an_error_whose_figures_alone_change_keeps_its_words() {
    let mut world = World::of([Variant::new("a").replicas(2, 0.1, 0.0)]);
    world.failed = vec![SignalName::KvUsage];
    let plan = world.plan(at(0));
    let after = |previous: Option<&PublishedRecord>, error: &str| {
        let gap = MetricsGap::QueryFailed { error: error.into() };
        let troubles = Troubles {
            hints: Hints { gap: Some(&gap), ..Hints::default() },
            ..Troubles::default()
        };
        let view = &world.variants[0].view;
        let record = PublishedRecord::of(view, Some(&plan), previous, troubles, at(1));
        let [_, metrics, _, _, ready] = &record.conditions;
        assert_eq!(metrics.message, ready.message);
        record
    };
    let message = |record: &PublishedRecord| record.conditions[1].message.clone();
    let first = after(None, "no answer within 5s");
    assert_eq!(
        message(&first),
        "Prometheus did not answer the saturation queries - no answer within 5s"
    );
    let second = after(Some(&first), "no answer within 14s");
    assert_eq!(message(&second), message(&first));
    let third = after(Some(&second), "connection refused");
    assert!(message(&third).ends_with("connection refused"), "{third:?}");
}

#[test]
fn a_decision_about_a_target_that_is_gone_is_not_published_again() {
    let before = Variant::new("a").replicas(2, 0.5, 0.0);
    let mut plan = World::of([before.clone()]).plan(at(0));
    let gone = before.clone().target(TargetView::NotFound {
        target: TargetKey::new("ns", TargetKind::Deployment, "a"),
        past: TargetPast::Existed,
    });
    let back = Variant::new("a").counts(3, 0);
    let desired = |record: &PublishedRecord| record.values.map(|values| values.desired);

    let first = PublishedRecord::of(&before.view, Some(&plan), None, Troubles::default(), at(1));
    assert_eq!(desired(&first), Some(Replicas(2)));
    let down =
        PublishedRecord::of(&gone.view, Some(&plan), Some(&first), Troubles::default(), at(2));
    assert_eq!(desired(&down), None);

    // The old plan stays the newest one for a while.
    let mut record = down;
    for seconds in [3, 4] {
        record = PublishedRecord::of(
            &back.view,
            Some(&plan),
            Some(&record),
            Troubles::default(),
            at(seconds),
        );
        assert_eq!(desired(&record), Some(Replicas(3)), "at {seconds} s");
    }
    plan.cycle = CycleId(2);
    let decided =
        PublishedRecord::of(&back.view, Some(&plan), Some(&record), Troubles::default(), at(5));
    assert_eq!(desired(&decided), Some(Replicas(2)));
}

#[test]
fn trouble_is_news_when_it_begins_changes_and_ends() {
    let reasons =
        |record: &PublishedRecord, previous: Option<&PublishedRecord>| -> Vec<&'static str> {
            record.news(previous).map(|said| said.reason.as_str()).collect()
        };
    let state = |scalers: Scalers| {
        let world = World::of([Variant::new("d").replicas(2, 0.75, 0.0)]);
        let plan = world.plan(at(0));
        let mut view = world.variants[0].view.clone();
        view.scalers = scalers;
        PublishedRecord::of(&view, Some(&plan), None, Troubles::default(), at(0))
    };
    let unknown = state(Scalers::Unknown);
    assert_eq!(reasons(&unknown, None), Vec::<&str>::new(), "not known is no trouble");
    let none = state(Scalers::Known(Arc::from([])));
    assert_eq!(reasons(&none, None), ["NoScaler"]);
    let world = World::of([Variant::new("d").replicas(2, 0.75, 0.0)]);
    let mut undecided = world.variants[0].view.clone();
    undecided.scalers = Scalers::Known(Arc::from([]));
    let undecided = PublishedRecord::of(&undecided, None, None, Troubles::default(), at(0));
    assert_eq!(
        reasons(&undecided, None),
        Vec::<&str>::new(),
        "the controller itself may be to scale it"
    );
    assert_eq!(reasons(&none, Some(&unknown)), ["NoScaler"]);
    assert_eq!(reasons(&none, Some(&none)), Vec::<&str>::new());
    let scaler =
        |inputs| Scaler { max: Replicas(9), ..world::scaler(ScalerKind::ScaledObject, inputs) };
    let foreign = state(Scalers::Known(Arc::from([scaler(vec![Input::Other])])));
    assert_eq!(reasons(&foreign, Some(&none)), ["CountNotRead"]);
    let published = Published { namespace: None, ..world::published("d") };
    let follows = state(Scalers::Known(Arc::from([scaler(vec![Input::Published(published)])])));
    assert_eq!(reasons(&follows, Some(&foreign)), ["ScalerFollows"]);
    assert_eq!(reasons(&follows, Some(&unknown)), Vec::<&str>::new());
    assert_eq!(reasons(&unknown, Some(&foreign)), Vec::<&str>::new());
}
