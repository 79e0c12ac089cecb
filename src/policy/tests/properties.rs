//! What holds for every world.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::world::{START, Variant, World, at, settings, targets};
use crate::policy::bounds::{Bounds, ZeroPolicy};
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::learned::{Learned, Reporting};
use crate::policy::moment::{Since, WallTime};
use crate::policy::plan::{Plan, Why};
use crate::policy::snapshot::{Readiness, SignalName, TargetView};
use crate::policy::units::Replicas;
use crate::policy::{check_plan, learn, plan};

/// The moment of every plan, long enough after the start that limits can have expired.
const NOW: u64 = 2_000;

/// Samples on both sides of every threshold, and such as are no usable numbers.
fn kv() -> impl Strategy<Value = Option<(f64, u64)>> {
    let values = prop::sample::select(vec![
        0.0,
        0.1,
        0.5,
        0.65,
        0.7,
        0.75,
        0.8,
        0.9,
        1.0,
        1.5,
        -0.1,
        f64::NAN,
        f64::INFINITY,
    ]);
    prop::option::weighted(0.85, (values, age()))
}

fn queue() -> impl Strategy<Value = Option<(f64, u64)>> {
    let values = prop::sample::select(vec![0.0, 1.0, 2.0, 3.0, 5.0, 40.0, -1.0, f64::NAN]);
    prop::option::weighted(0.85, (values, age()))
}

fn age() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(5), 1 => prop::sample::select(vec![59, 60, 119, 120, 299, 300])]
}

/// A resolved variant with at most as many pods as replicas, and no more ready pods than its status
/// says.
fn variant(name: &'static str) -> impl Strategy<Value = Variant> {
    let pod = (prop::bool::weighted(0.9), kv(), queue());
    let scale = (
        prop::collection::vec(pod, 0..5),
        0..2_u32,
        prop::bool::weighted(0.1),
    );
    let object = (
        prop::sample::select(vec!["5", "10", "20"]),
        prop::option::of(0..4_u32),
        prop::option::of(1..6_u32),
        prop::option::of(0..7_u32),
        prop::sample::select(vec!["m", "m", "n"]),
    );
    let clocks = (
        prop::option::of(0..NOW),
        prop::option::of(0..NOW),
        0..12_u32,
    );
    (scale, object, clocks).prop_map(move |(scale, object, clocks)| {
        let (pods, unseen, lagging) = scale;
        let (cost, min, max, desired, model) = object;
        let (pending, unapplied, oddity) = clocks;
        let mut variant = Variant::new(name)
            .model(model)
            .cost(cost)
            .bounds(min, max)
            .desired(desired)
            .replicas(u32::try_from(pods.len()).unwrap(), 0.0, 0.0);
        let mut ready = 0;
        for (pod, (is_ready, kv, queue)) in variant.pods.iter_mut().zip(pods) {
            (pod.kv, pod.queue) = (kv, queue);
            if is_ready {
                ready += 1;
            } else {
                pod.readiness = Readiness::NotReady;
            }
        }
        let current = variant.scale().current.0 + unseen;
        variant.set_counts(current, ready);
        if lagging && let TargetView::Resolved(target) = &mut variant.view.target {
            target.generation = crate::policy::snapshot::GenerationState::Lagging;
        }
        variant.view.pending_since = pending.map(|seconds| Since::at(at(seconds)));
        variant.view.unapplied_since = unapplied.map(|seconds| Since::at(at(seconds)));
        odd_target(variant, oddity)
    })
}

/// Now and then the target is not resolved.
fn odd_target(variant: Variant, oddity: u32) -> Variant {
    let target = TargetKey::new("ns", TargetKind::Deployment, "d");
    match oddity {
        0 => variant.target(TargetView::Unknown { target }),
        1 => variant.target(TargetView::NotFound { target }),
        2 => variant.target(TargetView::Malformed { why: "bad".into() }),
        _ => variant,
    }
}

fn world() -> impl Strategy<Value = World> {
    let variants = (
        variant("a"),
        variant("b"),
        prop::option::of(variant("c")),
        prop::option::of(variant("d")),
    );
    (variants, 0..12_u32).prop_map(|((a, b, c, d), failure)| {
        let mut world = World::of([a, b]);
        world.variants.extend(c);
        world.variants.extend(d);
        match failure {
            0 => world.failed.push(SignalName::KvUsage),
            1 => world.failed.push(SignalName::QueueLength),
            _ => {}
        }
        world
    })
}

/// What was known before: some variants have been silent for a while, others complete.
fn learned(world: &World, seconds: u64) -> Learned {
    let mut learned = Learned::default();
    for (position, variant) in world.variants.iter().enumerate() {
        let state = if position % 2 == 0 {
            Reporting::Complete
        } else {
            Reporting::Silent {
                since: Since::at(at(seconds)),
                current: Replicas(6),
            }
        };
        learned.reporting.insert(variant.view.key.clone(), state);
    }
    learned
}

/// One thing that goes missing.
#[derive(Debug, Clone)]
enum Loss {
    Kv(usize),
    Queue(usize),
    Both(usize),
    Pod(usize),
    Query(SignalName),
    Everything,
    Freshness(u64),
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        (0..20_usize).prop_map(Loss::Kv),
        (0..20_usize).prop_map(Loss::Queue),
        (0..20_usize).prop_map(Loss::Both),
        (0..20_usize).prop_map(Loss::Pod),
        prop::sample::select(vec![SignalName::KvUsage, SignalName::QueueLength])
            .prop_map(Loss::Query),
        Just(Loss::Everything),
        prop::sample::select(vec![30, 60, 120, 300]).prop_map(Loss::Freshness),
    ]
}

impl Loss {
    fn strike(&self, world: &mut World) {
        let mut pods: Vec<_> = world
            .variants
            .iter_mut()
            .flat_map(|variant| &mut variant.pods)
            .collect();
        let count = pods.len().max(1);
        match self {
            Self::Query(signal) => world.failed.push(*signal),
            Self::Everything => pods
                .iter_mut()
                .for_each(|pod| (pod.kv, pod.queue) = (None, None)),
            Self::Freshness(seconds) => {
                for sample in pods
                    .iter_mut()
                    .flat_map(|pod| [&mut pod.kv, &mut pod.queue])
                {
                    *sample = sample.map(|(value, age)| (value, age + seconds));
                }
            }
            Self::Kv(index) | Self::Queue(index) | Self::Both(index) | Self::Pod(index) => {
                if let Some(pod) = pods.get_mut(index % count) {
                    match self {
                        Self::Kv(_) => pod.kv = None,
                        Self::Queue(_) => pod.queue = None,
                        Self::Pod(_) => pod.mirrored = false,
                        _ => (pod.kv, pod.queue) = (None, None),
                    }
                }
            }
        }
    }
}

fn steps_of(plan: &Plan, model: &str) -> (usize, usize) {
    plan.decisions
        .values()
        .filter(|decision| &*decision.model.model == model)
        .flat_map(|decision| &decision.steps)
        .fold((0, 0), |(up, down), step| match step.why {
            Why::Grown { .. } => (up + 1, down),
            Why::Shrunk { .. } => (up, down + 1),
            _ => (up, down),
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_sound_bounded_and_repeatable(world in world(), silent in 0..NOW) {
        let snapshot = world.snapshot(at(NOW));
        let known = learn(&snapshot, &learned(&world, silent), &settings(), at(NOW));
        let made = plan(&snapshot, &known, &settings(), 7, at(NOW));
        prop_assert_eq!(check_plan(&snapshot, &settings(), &made), Ok(()));
        prop_assert_eq!(&made, &plan(&snapshot.clone(), &known.clone(), &settings(), 7, at(NOW)));
        prop_assert_eq!(&known, &learn(&snapshot, &known, &settings(), at(NOW)));
        for model in ["m", "n"] {
            let (up, down) = steps_of(&made, model);
            prop_assert!(up + down <= 1, "{} takes {} steps up and {} down", model, up, down);
        }
        for decision in made.decisions.values() {
            let view = &snapshot.variants[&decision.key];
            let bounds = Bounds::effective(&view.bounds, ZeroPolicy::Disabled);
            if let (Some(target), TargetView::Resolved(_)) = (decision.target, &view.target) {
                prop_assert_eq!(bounds.clamp(target).0, target);
            }
        }
    }

    #[test]
    fn missing_input_never_lowers_a_target(
        world in world(),
        losses in prop::collection::vec(loss(), 1..6),
        silent in 0..NOW,
    ) {
        let whole = world.snapshot(at(NOW));
        let known = learn(&whole, &learned(&world, silent), &settings(), at(NOW));
        let informed = plan(&whole, &known, &settings(), 1, at(NOW));
        let mut poorer = world.clone();
        for loss in &losses {
            loss.strike(&mut poorer);
        }
        let (_, blind) = poorer.plan_after(&known, at(NOW));
        for (key, decision) in &blind.decisions {
            let view = &whole.variants[key];
            let bounds = Bounds::effective(&view.bounds, ZeroPolicy::Disabled);
            let (Some(base), TargetView::Resolved(_)) = (view.base(), &view.target) else { continue };
            let least = informed.decisions[key].target.min(Some(bounds.clamp(base).0));
            prop_assert!(decision.target >= least, "{}: {:?} < {:?}: {}", key, decision.target, least, decision.reason());
        }
    }

    #[test]
    fn names_do_not_matter_where_costs_differ(world in world(), silent in 0..NOW) {
        let costs = ["1", "2", "3", "4"];
        let mut straight = world;
        for (variant, cost) in straight.variants.iter_mut().zip(costs) {
            *variant = variant.clone().cost(cost);
        }
        let renamed = |name: &str| match name { "a" => "z", "b" => "y", "c" => "x", _ => "w" };
        let mut turned = straight.clone();
        for variant in &mut turned.variants {
            variant.view.key.name = renamed(&variant.view.key.name).into();
        }
        turned.variants.reverse();
        let outcome = |world: &World| {
            let mut known = learned(world, silent);
            known.reporting.clear();
            world.plan_after(&known, at(NOW)).1
        };
        let expected: BTreeMap<String, u32> = targets(&outcome(&straight))
            .into_iter()
            .map(|(name, target)| (renamed(&name).to_owned(), target))
            .collect();
        prop_assert_eq!(targets(&outcome(&turned)), expected);
    }

    #[test]
    fn models_do_not_know_each_other(world in world(), silent in 0..NOW) {
        let known = learned(&world, silent);
        let (_, together) = world.plan_after(&known, at(NOW));
        for model in ["m", "n"] {
            let mut alone = world.clone();
            alone.variants.retain(|variant| &*variant.view.model.model == model);
            let (_, plan) = alone.plan_after(&known, at(NOW));
            for (key, decision) in &plan.decisions {
                prop_assert_eq!(decision, &together.decisions[key]);
            }
        }
    }

    #[test]
    fn an_applied_plan_is_not_changed_while_the_world_stands_still(world in world()) {
        let mut world = world;
        world.failed.clear();
        for variant in &mut world.variants {
            settle(variant, 0.69);
        }
        let (known, first) = world.plan_after(&Learned::default(), at(NOW));
        apply(&mut world, &first, |_| 0.69);
        let (known, second) = world.plan_after(&known, at(NOW + 30));
        prop_assert_eq!(targets(&second), targets(&first));
        apply(&mut world, &second, |_| 0.69);
        let (_, third) = world.plan_after(&known, at(NOW + 60));
        prop_assert_eq!(targets(&third), targets(&first));
    }

    #[test]
    fn a_constant_load_is_met_and_then_nothing_moves(
        world in world(),
        percent in 0..900_u32,
    ) {
        let mut world = world;
        world.failed.clear();
        let share = |replicas: u32| (f64::from(percent) / 100.0 / f64::from(replicas.max(1))).min(1.0);
        for variant in &mut world.variants {
            *variant = variant.clone().model("m");
            settle(variant, 0.0);
        }
        let mut known = Learned::default();
        let mut history = Vec::new();
        for cycle in 0..60 {
            let (next, made) = world.plan_after(&known, at(NOW + cycle * 30));
            known = next;
            apply(&mut world, &made, share);
            history.push(targets(&made));
        }
        let end = history.split_off(50);
        prop_assert!(end.iter().all(|targets| *targets == end[0]), "{:?}", end);
    }
}

/// Makes a variant stand still: everything ready, reporting, applied.
fn settle(variant: &mut Variant, kv: f64) {
    if variant.view.target.resolved().is_none() {
        *variant = Variant::new(&variant.view.key.name).model(&variant.view.model.model);
    }
    let count = variant.scale().current.0;
    *variant = variant.clone().replicas(count, kv, 1.0);
    variant.view.desired = None;
    if let TargetView::Resolved(target) = &mut variant.view.target {
        target.generation = crate::policy::snapshot::GenerationState::Observed;
    }
    for pod in &mut variant.pods {
        pod.created = WallTime(START);
    }
}

/// The scaler follows at once, and all replicas of the world share its load.
fn apply(world: &mut World, plan: &Plan, share: impl Fn(u32) -> f64) {
    let published = targets(plan);
    let total: u32 = published.values().sum();
    for variant in &mut world.variants {
        let target = published[&*variant.view.key.name];
        *variant = variant
            .clone()
            .replicas(target, share(total), 1.0)
            .desired(Some(target));
    }
}
