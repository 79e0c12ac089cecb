//! What happens over time: pods that load, counts that are not applied, replicas that fall silent.

use super::world::{EVEN, HIGH, LOW, Variant, World, at, created, expect, key, reason};
use crate::condition::{ConditionReason, ConditionStatus, ConditionType, Hints, conditions};
use crate::learned::Learned;
use crate::plan::Plan;
use crate::reason::Reason;
use crate::signal::SignalName;

fn said_expired(plan: &Plan, name: &str) -> bool {
    plan.decisions[&key(name)]
        .steps
        .iter()
        .any(|step| matches!(step.why, Reason::TransitionExpired { .. }))
}

#[test]
fn a_loading_variant_is_skipped_and_the_next_one_grows() {
    let cheap = |desired| Variant::new("v1").cost("5").desired(Some(desired));
    let dear = |desired| Variant::new("v2").cost("20").desired(Some(desired));

    let world = World::of([cheap(2).replicas(2, HIGH, 0.0), dear(2).replicas(2, HIGH, 0.0)]);
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
        World::of([Variant::new("v").desired(Some(desired)).replicas(replicas, kv, 0.0)])
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
        world.variants[0] = world.variants[0].clone().loading(created(0)).pending_since(at(0));
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

/// A dear variant with an idle replica to spare, one more that never gets ready, and a cheap variant.
fn stuck(dear: Variant) -> World {
    World::of([
        Variant::new("cheap").cost("5").replicas(1, LOW, 0.0),
        dear.cost("20").loading(created(0)).pending_since(at(0)),
    ])
}

#[test]
fn pending_holds_shrinking_for_its_limit_only() {
    let world = stuck(Variant::new("dear").replicas(3, LOW, 0.0));
    let held = world.plan(at(599));
    expect(&held, &[("cheap", 1), ("dear", 4)]);
    assert!(!said_expired(&held, "dear"));
    let released = world.plan(at(600));
    expect(&released, &[("cheap", 1), ("dear", 3)]);
    assert!(said_expired(&released, "dear"));
}

#[test]
fn a_ready_replica_that_is_silent_holds_shrinking_whatever_else_is_pending() {
    let world = stuck(one_silent("dear", LOW));
    let (learned, _) = world.plan_after(&Learned::default(), at(0));
    for later in [599, 600, 6_000] {
        let (_, plan) = world.plan_after(&learned, at(later));
        expect(&plan, &[("cheap", 1), ("dear", 4)]);
    }
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
    // The load of ten fits on twelve, which no usual tolerance swallows: more would not be applied
    // either.
    expect(&world(12).plan(at(600)), &[("v", 12)]);
    let fuller = World::of([Variant::new("v")
        .desired(Some(12))
        .replicas(10, 0.95, 0.0)
        .unapplied_since(at(0))]);
    expect(&fuller.plan(at(600)), &[("v", 13)]);
}

/// No count is applied, for as long as it takes.
fn abandoned(kv: f64, from: u32) -> u32 {
    let mut desired = from;
    for _ in 0..50 {
        let world = World::of([Variant::new("v")
            .desired(Some(desired))
            .replicas(4, kv, 0.0)
            .unapplied_since(at(0))]);
        desired = world.plan(at(600)).decisions[&key("v")].target.unwrap().0;
    }
    desired
}

#[test]
fn a_count_that_is_not_applied_ends_where_the_load_would_fit() {
    // A load of 2.0 leaves enough on three replicas, and not on two.
    assert_eq!(abandoned(0.5, 6), 3);
    assert_eq!(abandoned(0.5, 3), 3);
    // A load of 3.8 fits on six.
    assert_eq!(abandoned(0.95, 4), 6);
    assert_eq!(abandoned(0.95, 1), 6);
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
    assert!(reason(&plan, "v").contains("silent for 100s"), "{}", reason(&plan, "v"));

    let reporting = World::of([Variant::new("v").replicas(3, HIGH, 0.0)]);
    let (learned, plan) = reporting.plan_after(&learned, at(710));
    expect(&plan, &[("v", 4)]);
    let (_, plan) = quiet.plan_after(&learned, at(720));
    assert!(reason(&plan, "v").contains("silent for 0s"), "{}", reason(&plan, "v"));
}

#[test]
fn at_the_first_collection_silence_began_with_the_oldest_pod_that_is_not_ready() {
    let world = World::of([Variant::new("v")
        .replicas(2, HIGH, 0.0)
        .loading(created(-1_000))
        .loading(created(-500))
        .pending_since(at(0))]);
    let (_, plan) = world.plan_after(&Learned::default(), at(0));
    let steps = &plan.decisions[&key("v")].steps;
    let texts: Vec<String> = steps.iter().map(|step| step.why.to_string()).collect();
    assert!(texts.iter().any(|text| text.contains("silent for 1000s")), "{texts:?}");
}

#[test]
fn a_failed_query_neither_begins_nor_ends_silence() {
    let quiet = World::of([one_silent("v", HIGH)]);
    let (first, _) = quiet.plan_after(&Learned::default(), at(0));
    let mut failed = quiet.clone();
    failed.failed = vec![SignalName::KvUsage];
    let (after, _) = failed.plan_after(&first, at(100));
    assert_eq!(after.reporting, first.reporting);
    let (never, _) = failed.plan_after(&Learned::default(), at(100));
    assert_eq!(never.reporting, Learned::default().reporting);
}

#[test]
fn a_silent_variant_never_shrinks_limit_or_not() {
    let world =
        World::of([one_silent("quiet", LOW), Variant::new("v").cost("20").replicas(3, LOW, 0.0)]);
    let (learned, plan) = world.plan_after(&Learned::default(), at(0));
    expect(&plan, &[("quiet", 3), ("v", 3)]);
    let (_, plan) = world.plan_after(&learned, at(100_000));
    expect(&plan, &[("quiet", 3), ("v", 3)]);
    assert!(reason(&plan, "v").ends_with("shrinking waits for ns/quiet"));

    let mut unseen = Variant::new("unseen").replicas(3, LOW, 0.0);
    unseen.pods.pop();
    let world = World::of([unseen, Variant::new("v").cost("20").replicas(3, LOW, 0.0)]);
    let (learned, _) = world.plan_after(&Learned::default(), at(0));
    let (_, plan) = world.plan_after(&learned, at(100_000));
    expect(&plan, &[("unseen", 3), ("v", 3)]);

    // A replica that is not even ready carries no load: beyond the limit of those that are pending it
    // holds no variant.
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
    expect(&plan, &[("broken", 3), ("v", 3)]);
}

/// A release that the scaler holds back for its window, with a load that came back meanwhile.
#[test]
fn growth_first_cancels_a_release_that_is_not_applied() {
    let released =
        |kv| Variant::new("v").desired(Some(1)).replicas(2, kv, 0.0).unapplied_since(at(0));
    // While the load stays low, the release stands.
    expect(&World::of([released(LOW)]).plan(at(30)), &[("v", 1)]);
    expect(&World::of([released(EVEN)]).plan(at(30)), &[("v", 1)]);
    let cancelled = World::of([released(HIGH)]).plan(at(30));
    expect(&cancelled, &[("v", 2)]);
    assert_eq!(
        reason(&cancelled, "v"),
        "more is needed: the release from 2 to 1 is cancelled before it is applied"
    );
    // Nothing is in transition then, and the next cycle grows.
    let kept = World::of([Variant::new("v").desired(Some(2)).replicas(2, HIGH, 0.0)]);
    expect(&kept.plan(at(60)), &[("v", 3)]);
}

#[test]
fn no_variant_grows_before_the_release_of_another_is_cancelled() {
    let cheap = || Variant::new("cheap").cost("5");
    let released = |model: &str| {
        Variant::new("warm")
            .model(model)
            .cost("20")
            .desired(Some(1))
            .replicas(2, HIGH, 0.0)
            .unapplied_since(at(0))
    };
    let alone = World::of([cheap().replicas(1, HIGH, 0.0), released("n")]);
    expect(&alone.plan(at(30)), &[("cheap", 2), ("warm", 2)]);
    let together = World::of([cheap().replicas(1, HIGH, 0.0), released("m")]);
    expect(&together.plan(at(30)), &[("cheap", 1), ("warm", 2)]);
    // A maximum that was lowered is no release.
    let mut capped = released("m").bounds(None, Some(1));
    capped.view.unapplied_since = None;
    let bound = World::of([cheap().replicas(1, HIGH, 0.0), capped]);
    expect(&bound.plan(at(30)), &[("cheap", 2), ("warm", 1)]);
}

/// Two replicas under a load that a third one was started for, which is ready since `ready` and has
/// hardly any yet.
fn landing(began: i64, ready: i64) -> Variant {
    let loads = [(0.79, 4.0), (0.79, 4.0), (0.2, 1.0)];
    let mut variant = Variant::new("v").desired(Some(3)).loads(&loads);
    variant.pods[2].created = created(began);
    variant.pods[2].ready_since = Some(created(ready));
    variant
}

#[test]
fn peaks_from_before_the_last_start_order_nothing() {
    let world = World::of([landing(0, 150)]);
    let early = world.plan(at(209));
    expect(&early, &[("v", 3)]);
    assert!(
        reason(&early, "v").ends_with("a replica of ns/v is ready for 59s"),
        "{}",
        reason(&early, "v")
    );
    expect(&world.plan(at(210)), &[("v", 4)]);

    // Nor do they where another variant of the model would grow.
    let partnered = World::of([landing(0, 150), Variant::new("w").replicas(1, HIGH, 0.0)]);
    expect(&partnered.plan(at(209)), &[("v", 3), ("w", 1)]);

    // Where the new replica is short of capacity as well, that is the load of now.
    let mut short = landing(0, 150);
    short.pods[2].kv = Some((HIGH, 0));
    expect(&World::of([short]).plan(at(160)), &[("v", 4)]);

    // A fleet that is new as a whole has no older peaks.
    let mut first = landing(0, 150);
    for pod in &mut first.pods {
        pod.ready_since = Some(created(150));
    }
    expect(&World::of([first]).plan(at(160)), &[("v", 4)]);

    // A replica that is ready once more did not start, and while one is on its way another rule holds.
    expect(&World::of([landing(-600, 150)]).plan(at(160)), &[("v", 4)]);
    let loading = landing(0, 150).desired(Some(4)).loading(created(140)).pending_since(at(140));
    let spill = World::of([loading, Variant::new("w").replicas(1, HIGH, 0.0)]);
    expect(&spill.plan(at(160)), &[("v", 4), ("w", 2)]);
}

#[test]
fn who_does_not_grow_while_requests_wait_says_why() {
    // One replica is full and counts no more; the others could not do with one less.
    let loads = [(0.1, 40.0), (0.1, 1.5), (0.1, 1.5), (0.1, 1.5)];
    let waiting =
        |max| World::of([Variant::new("v").bounds(None, max).desired(Some(4)).loads(&loads)]);
    let after = |world: &World, seconds: u64| {
        let (known, first) = world.plan_after(&Learned::default(), at(0));
        assert!(!reason(&first, "v").contains("waited"), "{first:#?}");
        world.plan_after(&known, at(seconds)).1
    };
    let unserved = |plan: &Plan| {
        let decision = &plan.decisions[&key("v")];
        decision.unserved().cloned()
    };
    let early = after(&waiting(None), 119);
    assert_eq!(unserved(&early), None);
    let late = after(&waiting(None), 120);
    let because = unserved(&late).unwrap();
    expect(&late, &[("v", 4)]);
    assert_eq!(
        reason(&late, "v"),
        format!("requests have waited for 120s and nothing grows: {because}")
    );
    let snapshot = waiting(None).snapshot(at(120));
    let shown = |plan: &Plan| {
        let key = key("v");
        let decision = plan.decisions.get(&key);
        conditions(&snapshot.variants[&key], decision, Hints::default())
            .iter()
            .filter(|one| one.reason == ConditionReason::RequestsWaiting)
            .map(|one| (one.kind, one.status, one.message.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(&early), []);
    let message = "Requests have waited for 2 minutes, and nothing grows: neither more nor fewer \
                   replicas are due (target: 4 replicas)";
    let of = |kind| (kind, ConditionStatus::False, message.to_owned());
    let [optimization, ready] = [ConditionType::OptimizationReady, ConditionType::Ready];
    assert_eq!(shown(&late), [of(optimization), of(ready)]);
    // At its maximum there is nothing to be done, and what grows is on its way.
    assert_eq!(unserved(&after(&waiting(Some(4)), 120)), None);
    let mut asked = waiting(None);
    asked.variants[0] = asked.variants[0].clone().desired(Some(5));
    assert_eq!(unserved(&after(&asked, 120)), None);
}
