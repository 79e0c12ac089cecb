//! What holds for every world.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fleet::{calm, fleet, world};
use super::world::{START, Variant, World, at, settings, targets};
use crate::bounds::{Bounds, ZeroPolicy};
use crate::learned::{Learned, Reporting};
use crate::plan::Plan;
use crate::reason::Reason;
use crate::signal::SignalName;
use crate::snapshot::{GenerationState, Readiness, TargetView};
use crate::units::Replicas;
use crate::{check_plan, learn, plan};
use wva_base::moment::{Since, WallTime};

/// The moment of every plan, long enough after the start that limits can have expired.
pub(super) const NOW: u64 = 2_000;

/// What was known before: some variants have been silent for a while, others complete.
fn learned(world: &World, seconds: u64) -> Learned {
    let mut learned = Learned::default();
    for (position, variant) in world.variants.iter().enumerate() {
        let state = if position % 2 == 0 {
            Reporting::Complete
        } else {
            Reporting::Silent { since: Since::at(at(seconds)), current: Replicas(6) }
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
    /// Whether a pod that serves is concerned, at an age that matters.
    fn hits_a_ready_pod(&self, world: &World) -> bool {
        let pods: Vec<_> = world.variants.iter().flat_map(|variant| &variant.pods).collect();
        match self {
            Self::Kv(index) | Self::Queue(index) | Self::Both(index) | Self::Pod(index) => {
                pods[index % pods.len()].readiness == Readiness::Ready
            }
            Self::Freshness(seconds) => *seconds >= 60,
            Self::Query(_) | Self::Everything => true,
        }
    }

    fn strike(&self, world: &mut World) {
        let mut pods: Vec<_> =
            world.variants.iter_mut().flat_map(|variant| &mut variant.pods).collect();
        let count = pods.len().max(1);
        match self {
            Self::Query(signal) => world.failed.push(*signal),
            Self::Everything => pods.iter_mut().for_each(|pod| (pod.kv, pod.queue) = (None, None)),
            Self::Freshness(seconds) => {
                for sample in pods.iter_mut().flat_map(|pod| [&mut pod.kv, &mut pod.queue]) {
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
            Reason::Grown { .. } => (up + 1, down),
            Reason::Shrunk { .. } => (up, down + 1),
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
    fn nothing_shrinks_in_a_model_of_which_something_is_missing(
        world in fleet(calm),
        loss in loss(),
        silent in 0..NOW,
    ) {
        let whole = world.snapshot(at(NOW));
        let known = learn(&whole, &learned(&world, silent), &settings(), at(NOW));
        let mut poorer = world.clone();
        if !loss.hits_a_ready_pod(&world) {
            return Ok(());
        }
        loss.strike(&mut poorer);
        let (_, blind) = poorer.plan_after(&known, at(NOW));
        for (key, decision) in &blind.decisions {
            let base = whole.variants[key].base();
            prop_assert!(decision.target >= base, "{}: {}", key, decision.reason());
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
        target.generation = GenerationState::Observed;
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
        *variant = variant.clone().replicas(target, share(total), 1.0).desired(Some(target));
    }
}
