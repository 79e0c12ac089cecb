//! Every invariant catches what it is for.

use super::world::{START, Variant, World, at, key, settings};
use crate::invariant::{PlanViolation, check_plan};
use crate::plan::{Decision, Plan, PlanStage, Step};
use crate::reason::Reason;
use crate::units::Replicas;
use wva_base::moment::WallTime;

/// Plans a world, lets `spoil` at the plan, and returns what is found before and after.
fn spoiled(world: &World, spoil: impl FnOnce(&mut Plan)) -> PlanViolation {
    let snapshot = world.snapshot(at(0));
    let mut plan = world.plan(at(0));
    assert_eq!(check_plan(&snapshot, &settings(), &plan), Ok(()));
    spoil(&mut plan);
    check_plan(&snapshot, &settings(), &plan).unwrap_err()
}

fn decision<'a>(plan: &'a mut Plan, name: &str) -> &'a mut Decision {
    plan.decisions.get_mut(&key(name)).unwrap()
}

/// Makes the record say that an analyzer moved the variant there.
fn move_to(decision: &mut Decision, to: u32) {
    let from = decision.steps[0].from;
    let to = Replicas(to);
    let step = |stage, from, why| Step { stage, from, to, why };
    decision.steps = vec![
        step(PlanStage::Saturation, from, Reason::NoReplicas),
        step(PlanStage::Bounds, to, Reason::NoReplicas),
    ];
    decision.target = Some(to);
}

fn two() -> World {
    World::of([
        Variant::new("cheap").cost("5").replicas(2, 0.75, 0.0),
        Variant::new("dear").cost("20").replicas(2, 0.75, 0.0),
    ])
}

#[test]
fn d1_growth_while_pending() {
    let world = World::of([Variant::new("v").replicas(2, 0.75, 0.0).loading(WallTime(START))]);
    let found = spoiled(&world, |plan| move_to(decision(plan, "v"), 4));
    assert_eq!(found.to_string(), "D1: ns/v was grown to 4 while replicas of it are pending");
}

#[test]
fn d2_target_outside_the_bounds() {
    let world = World::of([Variant::new("v").bounds(Some(1), Some(2)).replicas(2, 0.5, 1.0)]);
    let found = spoiled(&world, |plan| move_to(decision(plan, "v"), 3));
    assert_eq!(found.to_string(), "D2: ns/v has target 3, and its bounds allow 2");
}

#[test]
fn d3_every_variant_exactly_once() {
    let missing = spoiled(&two(), |plan| {
        plan.decisions.remove(&key("dear"));
    });
    assert_eq!(missing, PlanViolation::NotDecided { key: key("dear") });
    let extra = spoiled(&two(), |plan| {
        let decision = decision(plan, "dear").clone();
        plan.decisions.insert(key("ghost"), decision);
    });
    assert_eq!(extra, PlanViolation::NotInSnapshot { key: key("ghost") });
}

#[test]
fn d4_movement_without_metrics() {
    let mut variant = Variant::new("v").replicas(2, 0.5, 1.0);
    for pod in &mut variant.pods {
        (pod.kv, pod.queue) = (None, None);
    }
    let world = World::of([variant]);
    for target in [1, 3] {
        let found = spoiled(&world, |plan| move_to(decision(plan, "v"), target));
        assert_eq!(
            found.to_string(),
            format!("D4: ns/v has no usable metrics, and its target is {target} instead of 2")
        );
    }
}

#[test]
fn d5_a_record_that_does_not_follow_from_the_snapshot() {
    type Spoil = fn(&mut Decision);
    let spoilers: [(Spoil, &str); 5] = wva_base::cases! {
        (|decision| decision.model.model = "x".into(), "key or model"),
        (|decision| decision.cost = crate::units::Cost::DEFAULT, "accelerator or cost"),
        (|decision| decision.current = Some(Replicas(7)), "current"),
        (|decision| decision.target = Some(Replicas(7)), "steps"),
        (|decision| decision.outcome = crate::plan::DecisionOutcome::Unmanaged, "outcome"),
    };
    for (spoil, part) in spoilers {
        let found = spoiled(&two(), |plan| spoil(decision(plan, "cheap")));
        let key = key("cheap");
        assert_eq!(found, PlanViolation::RecordDiffers { key, part });
    }
}

#[test]
fn d6_one_step_and_the_right_one() {
    let second = spoiled(&two(), |plan| move_to(decision(plan, "dear"), 3));
    assert!(matches!(second, PlanViolation::SecondStep { .. }), "{second}");

    let double = spoiled(&two(), |plan| move_to(decision(plan, "cheap"), 4));
    assert!(matches!(double, PlanViolation::SecondStep { .. }), "{double}");

    let swap = |plan: &mut Plan, from: &str, to: &str, count: u32| {
        let passed_over = decision(plan, to).steps.clone();
        decision(plan, from).steps = passed_over;
        decision(plan, from).target = Some(Replicas(2));
        move_to(decision(plan, to), count);
    };
    let dear = spoiled(&two(), |plan| swap(plan, "cheap", "dear", 3));
    assert_eq!(
        dear.to_string(),
        "D6: ns/dear takes the step of m|ns, and ns/cheap was eligible at a better cost"
    );
    let calm = World::of([
        Variant::new("cheap").cost("5").replicas(2, 0.1, 0.0),
        Variant::new("dear").cost("20").replicas(2, 0.1, 0.0),
    ]);
    let cheap = spoiled(&calm, |plan| swap(plan, "dear", "cheap", 1));
    assert_eq!(
        cheap.to_string(),
        "D6: ns/cheap takes the step of m|ns, and ns/dear was eligible at a better cost"
    );
}

#[test]
fn d10_growth_during_a_release_that_is_not_applied() {
    let world = World::of([
        Variant::new("cheap").cost("5").replicas(2, 0.5, 1.0),
        Variant::new("warm")
            .cost("20")
            .desired(Some(1))
            .replicas(2, 0.5, 1.0)
            .unapplied_since(at(0)),
    ]);
    let grow = |stage| {
        move |plan: &mut Plan| {
            let cheap = decision(plan, "cheap");
            move_to(cheap, 3);
            cheap.steps[0].stage = stage;
        }
    };
    let found = spoiled(&world, grow(PlanStage::Optimizer));
    assert_eq!(
        found.to_string(),
        "D10: ns/cheap was grown to 3 while the release of ns/warm to 1 is not applied"
    );
    // A minimum requires its replicas whatever else is on its way.
    let snapshot = world.snapshot(at(0));
    let mut plan = world.plan(at(0));
    grow(PlanStage::Zero)(&mut plan);
    assert_eq!(check_plan(&snapshot, &settings(), &plan), Ok(()));
}
