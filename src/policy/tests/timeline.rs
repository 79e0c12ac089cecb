//! What happens over time: pods that load, counts that nobody applies, replicas that fall silent.

use std::collections::BTreeMap;

use super::world::{START, Variant, World, at, reason, targets};
use crate::policy::key::{ModelKey, TargetKey, TargetKind, VariantKey};
use crate::policy::learned::Learned;
use crate::policy::moment::WallTime;
use crate::policy::plan::{MetricsState, Outcome, Plan, Why};
use crate::policy::snapshot::{SignalName, TargetView};

/// KV share under which a model lacks spare capacity.
const HIGH: f64 = 0.75;
/// KV share under which it neither grows nor shrinks, as long as it is small.
const EVEN: f64 = 0.65;
/// KV share under which it can do with less.
const LOW: f64 = 0.1;

fn expect(plan: &Plan, expected: &[(&str, u32)]) {
    let expected: BTreeMap<String, u32> = expected
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect();
    assert_eq!(targets(plan), expected);
}

fn created(seconds: i64) -> WallTime {
    WallTime(START + seconds * 1_000)
}

fn said_expired(plan: &Plan, name: &str) -> bool {
    plan.decisions[&VariantKey::new("ns", name)]
        .steps
        .iter()
        .any(|step| matches!(step.why, Why::TransitionExpired { .. }))
}

#[test]
fn a_loading_variant_is_skipped_and_the_next_one_grows() {
    let cheap = |desired| Variant::new("v1").cost("5").desired(Some(desired));
    let dear = |desired| Variant::new("v2").cost("20").desired(Some(desired));

    let world = World::of([
        cheap(2).replicas(2, HIGH, 0.0),
        dear(2).replicas(2, HIGH, 0.0),
    ]);
    let (learned, plan) = world.plan_after(&Learned::default(), at(0));
    expect(&plan, &[("v1", 3), ("v2", 2)]);

    let loading = |variant: Variant, since| {
        variant
            .replicas(2, HIGH, 0.0)
            .loading(created(since))
            .pending_since(at(since.unsigned_abs()))
    };
    let world = World::of([loading(cheap(3), 20), dear(2).replicas(2, HIGH, 0.0)]);
    let (learned, plan) = world.plan_after(&learned, at(30));
    expect(&plan, &[("v1", 3), ("v2", 3)]);
    assert!(reason(&plan, "v1").contains("pending for 10s (2 of 3 replicas ready)"));

    let world = World::of([loading(cheap(3), 20), loading(dear(3), 50)]);
    let (learned, plan) = world.plan_after(&learned, at(60));
    expect(&plan, &[("v1", 3), ("v2", 3)]);

    let world = World::of([cheap(3).replicas(3, HIGH, 0.0), loading(dear(3), 50)]);
    let (_, plan) = world.plan_after(&learned, at(90));
    expect(&plan, &[("v1", 4), ("v2", 3)]);
}

#[test]
fn ten_to_eleven_to_twelve_and_back() {
    let variant = |desired, replicas, kv| {
        World::of([Variant::new("v")
            .desired(Some(desired))
            .replicas(replicas, kv, 0.0)])
    };
    let mut learned = Learned::default();
    let mut now = 0;
    let mut cycle = |world: &World, expected: u32| {
        now += 30;
        let (next, plan) = world.plan_after(&learned, at(now));
        learned = next;
        expect(&plan, &[("v", expected)]);
    };
    let loading = |desired, replicas, kv| {
        let mut world = variant(desired, replicas, kv);
        world.variants[0] = world.variants[0]
            .clone()
            .loading(created(0))
            .pending_since(at(0));
        world
    };
    cycle(&variant(10, 10, HIGH), 11);
    cycle(&variant(11, 10, HIGH), 11);
    cycle(&loading(11, 10, HIGH), 11);
    cycle(&variant(11, 11, HIGH), 12);
    cycle(&variant(12, 11, HIGH), 12);
    cycle(&loading(12, 11, HIGH), 12);
    cycle(&variant(12, 12, EVEN), 12);
    cycle(&variant(12, 12, 0.60), 11);
    cycle(&variant(11, 12, 0.60), 11);
    cycle(&variant(11, 11, EVEN), 11);
}

#[test]
fn pending_holds_growth_for_its_limit_only() {
    let world = World::of([Variant::new("v")
        .replicas(2, HIGH, 0.0)
        .loading(created(0))
        .pending_since(at(0))]);
    let held = world.plan(at(599));
    expect(&held, &[("v", 3)]);
    assert!(!said_expired(&held, "v"));
    let released = world.plan(at(600));
    expect(&released, &[("v", 4)]);
    assert!(said_expired(&released, "v"));
}

#[test]
fn an_unapplied_count_holds_growth_for_its_limit_and_steps_then_add_up() {
    let world = |desired| {
        World::of([Variant::new("v")
            .desired(Some(desired))
            .replicas(10, HIGH, 0.0)
            .unapplied_since(at(0))])
    };
    let held = world(11).plan(at(599));
    expect(&held, &[("v", 11)]);
    assert!(!said_expired(&held, "v"));
    let released = world(11).plan(at(600));
    expect(&released, &[("v", 12)]);
    assert!(said_expired(&released, "v"));
    expect(&world(12).plan(at(600)), &[("v", 13)]);
}

/// A variant of three ready replicas of which the last does not report.
fn one_silent(name: &str, kv: f64) -> Variant {
    let mut variant = Variant::new(name).replicas(3, kv, 0.0);
    let last = variant.pods.last_mut().unwrap();
    (last.kv, last.queue) = (None, None);
    variant
}

#[test]
fn silence_holds_growth_for_its_limit_only() {
    let world = World::of([one_silent("v", HIGH)]);
    let (learned, _) = world.plan_after(&Learned::default(), at(0));
    let (learned, held) = world.plan_after(&learned, at(599));
    expect(&held, &[("v", 3)]);
    assert!(reason(&held, "v").contains("metrics(2)!=current(3)"));
    let (_, released) = world.plan_after(&learned, at(600));
    expect(&released, &[("v", 4)]);
    assert!(said_expired(&released, "v"));
}

#[test]
fn silence_begins_anew_with_an_added_replica_and_ends_when_all_report() {
    let quiet = World::of([one_silent("v", HIGH)]);
    let (learned, _) = quiet.plan_after(&Learned::default(), at(0));
    let grown = World::of([one_silent("v", HIGH).loading(created(590))]);
    let (learned, _) = grown.plan_after(&learned, at(600));
    let (learned, plan) = quiet.plan_after(&learned, at(700));
    expect(&plan, &[("v", 3)]);
    assert!(
        reason(&plan, "v").contains("silent for 100s"),
        "{}",
        reason(&plan, "v")
    );

    let heard = World::of([Variant::new("v").replicas(3, HIGH, 0.0)]);
    let (learned, plan) = heard.plan_after(&learned, at(710));
    expect(&plan, &[("v", 4)]);
    let (_, plan) = quiet.plan_after(&learned, at(720));
    assert!(
        reason(&plan, "v").contains("silent for 0s"),
        "{}",
        reason(&plan, "v")
    );
}

#[test]
fn at_the_first_collection_silence_began_with_the_oldest_pod_that_is_not_ready() {
    let world = World::of([Variant::new("v")
        .replicas(2, HIGH, 0.0)
        .loading(created(-1_000))
        .loading(created(-500))
        .pending_since(at(0))]);
    let (_, plan) = world.plan_after(&Learned::default(), at(0));
    let steps = &plan.decisions[&VariantKey::new("ns", "v")].steps;
    let texts: Vec<String> = steps.iter().map(|step| step.why.to_string()).collect();
    assert!(
        texts.iter().any(|text| text.contains("silent for 1000s")),
        "{texts:?}"
    );
}

#[test]
fn a_failed_query_neither_begins_nor_ends_silence() {
    let quiet = World::of([one_silent("v", HIGH)]);
    let (first, _) = quiet.plan_after(&Learned::default(), at(0));
    let mut failed = quiet.clone();
    failed.failed = vec![SignalName::KvUsage];
    let (after, _) = failed.plan_after(&first, at(100));
    assert_eq!(after, first);
    let (never, _) = failed.plan_after(&Learned::default(), at(100));
    assert_eq!(never, Learned::default());
}

#[test]
fn a_silent_variant_never_shrinks_limit_or_not() {
    let world = World::of([
        one_silent("quiet", LOW),
        Variant::new("v").cost("20").replicas(3, LOW, 0.0),
    ]);
    let (learned, plan) = world.plan_after(&Learned::default(), at(0));
    expect(&plan, &[("quiet", 3), ("v", 3)]);
    let (_, plan) = world.plan_after(&learned, at(100_000));
    expect(&plan, &[("quiet", 3), ("v", 3)]);
    assert!(reason(&plan, "v").ends_with("shrinking waits for ns/quiet"));

    // A replica that is not even ready carries no load: beyond the limits it holds itself only.
    let broken = World::of([
        Variant::new("broken")
            .cost("30")
            .replicas(3, LOW, 0.0)
            .loading(created(0))
            .pending_since(at(0)),
        Variant::new("v").cost("20").replicas(3, LOW, 0.0),
    ]);
    let (learned, plan) = broken.plan_after(&Learned::default(), at(0));
    expect(&plan, &[("broken", 4), ("v", 3)]);
    let (_, plan) = broken.plan_after(&learned, at(600));
    expect(&plan, &[("broken", 4), ("v", 2)]);
}

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
    assert!(
        reason(&stale, "v").contains("1 replicas report such"),
        "{}",
        reason(&stale, "v")
    );
    expect(&aged(HIGH, 60), &[("v", 4)]);
    let held = aged(HIGH, 120);
    expect(&held, &[("v", 3)]);
    assert!(reason(&held, "v").contains("metrics(2)!=current(3)"));

    let mut variant = Variant::new("v").replicas(3, LOW, 0.0);
    variant.pods[0].kv = None;
    let partial = World::of([variant]).plan(at(0));
    expect(&partial, &[("v", 3)]);
    assert!(
        reason(&partial, "v").contains("without KV sample 1"),
        "{}",
        reason(&partial, "v")
    );
    let figures = partial.models[&ModelKey::new("ns", "m")];
    assert_eq!((figures.without_kv, figures.replicas), (1, 3));
}

#[test]
fn load_spills_over_to_a_variant_at_zero() {
    let zero = Variant::new("zero").cost("20").bounds(Some(0), None);
    let full = |max| {
        Variant::new("full")
            .bounds(None, Some(max))
            .replicas(2, HIGH, 0.0)
    };
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
    expect(
        &World::of([busy("a"), freer("b")]).plan(at(0)),
        &[("a", 2), ("b", 3)],
    );
    expect(
        &World::of([freer("a"), busy("b")]).plan(at(0)),
        &[("a", 3), ("b", 2)],
    );
    expect(
        &World::of([busy("a"), busy("b")]).plan(at(0)),
        &[("a", 3), ("b", 2)],
    );

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
            (Outcome::Analyzed, MetricsState::NoReplicas)
        );
        world.failed.clear();
    }
}

#[test]
fn the_safety_net_keeps_a_desired_zero_and_everything_else() {
    let mut world = World::of([
        Variant::new("zero")
            .bounds(Some(0), None)
            .desired(Some(0))
            .replicas(2, HIGH, 0.0),
        Variant::new("kept").desired(Some(5)).replicas(2, HIGH, 0.0),
        Variant::new("bare").replicas(4, LOW, 0.0),
        Variant::new("over")
            .bounds(None, Some(3))
            .replicas(4, LOW, 0.0),
    ]);
    world.failed = vec![SignalName::QueueLength];
    let plan = world.plan(at(0));
    expect(&plan, &[("bare", 4), ("kept", 5), ("over", 3), ("zero", 0)]);
    assert!(plan.models.is_empty());
    for decision in plan.decisions.values() {
        assert_eq!(
            (decision.outcome, decision.metrics),
            (Outcome::SafetyNet, MetricsState::QueryFailed),
            "{}",
            decision.key
        );
    }
}

#[test]
fn samples_age_while_no_collection_succeeds() {
    let world = World::of([Variant::new("v").replicas(3, LOW, 0.0)]);
    let snapshot = world.snapshot(at(0));
    let settings = super::world::settings();
    for (seconds, target, metrics) in [
        (59, 2, MetricsState::Available),
        (119, 3, MetricsState::Available),
        (120, 3, MetricsState::Stale),
        (301, 3, MetricsState::Stale),
    ] {
        let plan = crate::policy::plan(&snapshot, &Learned::default(), &settings, 1, at(seconds));
        expect(&plan, &[("v", target)]);
        let decision = &plan.decisions[&VariantKey::new("ns", "v")];
        assert_eq!(decision.metrics, metrics, "after {seconds} s");
    }
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
    expect(&with(TargetView::NotFound { target: name() }), &[("v", 2)]);
    expect(
        &with(TargetView::Contested {
            target: name(),
            claimants: [VariantKey::new("ns", "odd"), VariantKey::new("ns", "x")].into(),
        }),
        &[("v", 2)],
    );
}

#[test]
fn samples_under_another_model_or_of_unknown_pods_do_not_count() {
    let mut stranger = Variant::new("stranger")
        .model("other")
        .replicas(2, HIGH, 0.0);
    for pod in &mut stranger.pods {
        pod.mirrored = false;
    }
    let plan = World::of([stranger, Variant::new("v").replicas(2, EVEN, 0.0)]).plan(at(0));
    expect(&plan, &[("stranger", 2), ("v", 2)]);
    let decision = &plan.decisions[&VariantKey::new("ns", "stranger")];
    assert_eq!(decision.metrics, MetricsState::Missing);
    assert_eq!(plan.models.len(), 1);
}
