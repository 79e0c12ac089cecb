//! One cycle on one world: what is decided, and what is said about it.

use std::time::Duration;

use super::world::{EVEN, HIGH, LOW, Variant, World, at, created, expect, reason, targets};
use crate::key::{ModelKey, TargetKey, TargetKind, VariantKey};
use crate::learned::Learned;
use crate::params::DynamicSettings;
use crate::plan::{DecisionOutcome, Plan};
use crate::reason::MetricsState;
use crate::reuse::Reuse;
use crate::signal::SignalName;
use crate::snapshot::{TargetPast, TargetView};

#[test]
fn nothing_shrinks_on_samples_that_are_old_or_incomplete_but_growth_goes_on() {
    let aged = |kv: f64, age: u64| {
        let mut variant = Variant::new("v").replicas(3, kv, 0.0);
        variant.pods[0].kv = Some((kv, age));
        World::of([variant]).plan(at(0))
    };
    expect(&aged(LOW, 59), &[("v", 2)]);
    let stale = aged(LOW, 60);
    expect(&stale, &[("v", 3)]);
    assert!(reason(&stale, "v").contains("replicas concerned 1"), "{}", reason(&stale, "v"));
    expect(&aged(HIGH, 60), &[("v", 4)]);
    let held = aged(HIGH, 120);
    expect(&held, &[("v", 3)]);
    assert!(reason(&held, "v").contains("metrics(2)!=current(3)"));

    // A replica without a sample is not idle: the others, at 0.75, have 0.05 to spare.
    let mut variant = Variant::new("v").replicas(3, HIGH, 0.0);
    expect(&World::of([variant.clone()]).plan(at(0)), &[("v", 4)]);
    variant.pods[0].kv = None;
    expect(&World::of([variant.clone()]).plan(at(0)), &[("v", 4)]);
    // Nor where all others are full.
    for pod in &mut variant.pods[1..] {
        pod.kv = Some((0.95, 0));
    }
    expect(&World::of([variant]).plan(at(0)), &[("v", 4)]);

    let mut variant = Variant::new("v").replicas(3, LOW, 0.0);
    variant.pods[0].kv = None;
    let partial = World::of([variant]).plan(at(0));
    expect(&partial, &[("v", 3)]);
    assert!(reason(&partial, "v").contains("without KV sample 1"), "{}", reason(&partial, "v"));
    let figures = partial.models[&ModelKey::new("ns", "m")].percentage.unwrap();
    assert_eq!((figures.without_kv, figures.replicas), (1, 3));
}

#[test]
fn load_spills_over_to_a_variant_at_zero() {
    let zero = Variant::new("zero").cost("20").bounds(Some(0), None);
    let full = |max| Variant::new("full").bounds(None, Some(max)).replicas(2, HIGH, 0.0);
    let room = World::of([zero.clone(), full(3)]).plan(at(0));
    expect(&room, &[("full", 3), ("zero", 0)]);
    let spill = World::of([zero.clone(), full(2)]).plan(at(0));
    expect(&spill, &[("full", 2), ("zero", 1)]);
    let calm = World::of([zero, Variant::new("full").replicas(2, EVEN, 0.0)]).plan(at(0));
    expect(&calm, &[("full", 2), ("zero", 0)]);
}

#[test]
fn cost_ties_go_to_the_variant_with_most_free_capacity() {
    let busy = |name: &str| Variant::new(name).replicas(2, 0.79, 0.0);
    let freer = |name: &str| Variant::new(name).replicas(2, 0.74, 0.0);
    expect(&World::of([busy("a"), freer("b")]).plan(at(0)), &[("a", 2), ("b", 3)]);
    expect(&World::of([freer("a"), busy("b")]).plan(at(0)), &[("a", 3), ("b", 2)]);
    expect(&World::of([busy("a"), busy("b")]).plan(at(0)), &[("a", 3), ("b", 2)]);

    let calm = |name: &str, kv| Variant::new(name).replicas(2, kv, 0.0);
    let plan = World::of([calm("a", 0.1), calm("b", 0.2)]).plan(at(0));
    expect(&plan, &[("a", 1), ("b", 2)]);
}

#[test]
fn a_variant_at_zero_is_steady_and_no_failure() {
    let world = World::of([Variant::new("v").bounds(Some(0), None).desired(Some(0))]);
    for mut world in [world.clone(), world] {
        world.failed = vec![SignalName::KvUsage];
        let plan = world.plan(at(0));
        expect(&plan, &[("v", 0)]);
        let decision = &plan.decisions[&VariantKey::new("ns", "v")];
        assert_eq!(
            (decision.outcome, decision.metrics),
            (DecisionOutcome::Analyzed, MetricsState::NoReplicas)
        );
        world.failed.clear();
    }
}

#[test]
fn the_safety_net_keeps_a_desired_zero_and_everything_else() {
    let mut world = World::of([
        Variant::new("zero").bounds(Some(0), None).desired(Some(0)).replicas(2, HIGH, 0.0),
        Variant::new("kept").desired(Some(5)).replicas(2, HIGH, 0.0),
        Variant::new("bare").replicas(4, LOW, 0.0),
        Variant::new("over").bounds(None, Some(3)).replicas(4, LOW, 0.0),
    ]);
    world.failed = vec![SignalName::QueueLength];
    let plan = world.plan(at(0));
    expect(&plan, &[("bare", 4), ("kept", 5), ("over", 3), ("zero", 0)]);
    assert!(plan.models.is_empty());
    for decision in plan.decisions.values() {
        assert_eq!(
            (decision.outcome, decision.metrics),
            (DecisionOutcome::SafetyNet, MetricsState::QueryFailed),
            "{}",
            decision.key
        );
    }
}

/// Targets and metrics so many seconds after the only collection.
fn without_collections(settings: &DynamicSettings, looks: &[(u64, u32, MetricsState)]) {
    let world = World::of([Variant::new("v").replicas(3, LOW, 0.0)]);
    let snapshot = world.snapshot(at(0));
    for (seconds, target, metrics) in looks {
        let plan = crate::plan(&snapshot, &Learned::default(), settings, 1, at(*seconds));
        expect(&plan, &[("v", *target)]);
        let decision = &plan.decisions[&VariantKey::new("ns", "v")];
        assert_eq!(decision.metrics, *metrics, "after {seconds} s");
    }
}

#[test]
fn samples_age_while_no_collection_succeeds() {
    let mut settings = super::world::settings();
    settings.cache.reuse = Reuse::within(Duration::from_hours(1));
    let looks = [
        (59, 2, MetricsState::Available),
        (119, 3, MetricsState::Available),
        (120, 3, MetricsState::Stale),
        (299, 3, MetricsState::Stale),
        // Beyond the unavailable threshold a sample is none.
        (300, 3, MetricsState::Missing),
    ];
    without_collections(&settings, &looks);
}

#[test]
fn a_collection_that_may_not_be_used_again_holds_everything() {
    let looks = [(30, 2, MetricsState::Available), (31, 3, MetricsState::Stale)];
    without_collections(&super::world::settings(), &looks);
}

#[test]
fn a_target_out_of_sight_keeps_its_count_and_keeps_the_model_from_shrinking() {
    let name = || TargetKey::new("ns", TargetKind::Deployment, "d");
    let with = |target: TargetView| {
        World::of([
            Variant::new("odd").desired(Some(4)).target(target),
            Variant::new("v").replicas(3, LOW, 0.0),
        ])
        .plan(at(0))
    };
    let unknown = with(TargetView::Unknown { target: name() });
    expect(&unknown, &[("odd", 4), ("v", 3)]);
    assert!(reason(&unknown, "v").ends_with("shrinking waits for ns/odd"));
    let malformed = with(TargetView::Malformed { why: "bad".into() });
    expect(&malformed, &[("odd", 4), ("v", 3)]);
    expect(&with(TargetView::NotFound { target: name(), past: TargetPast::Existed }), &[("v", 2)]);
    expect(
        &with(TargetView::Contested {
            target: name(),
            claimants: [VariantKey::new("ns", "odd"), VariantKey::new("ns", "x")].into(),
            owner: None,
        }),
        &[("v", 2)],
    );
}

#[test]
fn samples_under_another_model_or_of_unknown_pods_do_not_count() {
    let mut stranger = Variant::new("stranger").model("other").replicas(2, HIGH, 0.0);
    for pod in &mut stranger.pods {
        pod.mirrored = false;
    }
    let plan = World::of([stranger, Variant::new("v").replicas(2, EVEN, 0.0)]).plan(at(0));
    expect(&plan, &[("stranger", 2), ("v", 2)]);
    let decision = &plan.decisions[&VariantKey::new("ns", "stranger")];
    assert_eq!(decision.metrics, MetricsState::Missing);
    assert_eq!(plan.models.len(), 1);
}

#[test]
fn everything_that_is_shown_or_stored_survives_json() {
    let world = World::of([
        Variant::new("a").replicas(2, HIGH, 0.0),
        Variant::new("b").model("n").replicas(2, LOW, 0.0).loading(created(0)),
    ]);
    let (learned, plan) = world.plan_after(&Learned::default(), at(0));
    let text = serde_json::to_string(&(&learned, &plan)).unwrap();
    let back: (Learned, Plan) = serde_json::from_str(&text).unwrap();
    assert_eq!(back.0, learned);
    // Quotients may differ in their last digit; what was decided may not.
    assert_eq!(targets(&back.1), targets(&plan));
}
