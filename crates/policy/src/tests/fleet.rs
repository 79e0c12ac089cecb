//! Generated worlds: wild ones with everything that can be wrong, calm ones that are near to
//! shrinking.

use proptest::prelude::*;

use super::properties::NOW;
use super::world::{Variant, World, at};
use crate::key::{TargetKey, TargetKind};
use crate::signal::SignalName;
use crate::snapshot::{GenerationState, Readiness, TargetPast, TargetView};
use wva_base::moment::Since;

/// What a pod reports: value and age.
type Said = Option<(f64, u64)>;

/// Readiness and samples of one pod.
type PodGiven = (bool, Said, Said);

/// Samples on both sides of every threshold, some of them missing, old, or no usable numbers.
fn wild_pod() -> BoxedStrategy<PodGiven> {
    let age =
        || prop_oneof![4 => Just(5), 1 => prop::sample::select(vec![59, 60, 119, 120, 299, 300])];
    let kv = prop::sample::select(vec![
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
    let queue = prop::sample::select(vec![0.0, 1.0, 2.0, 3.0, 5.0, 40.0, -1.0, f64::NAN]);
    (
        prop::bool::weighted(0.9),
        prop::option::weighted(0.85, (kv, age())),
        prop::option::weighted(0.85, (queue, age())),
    )
        .boxed()
}

/// Fresh samples of a model that is often near to shrinking.
fn calm_pod() -> BoxedStrategy<PodGiven> {
    let kv = prop::sample::select(vec![0.0, 0.1, 0.2, 0.75]).prop_map(|value| Some((value, 5)));
    let queue = prop::sample::select(vec![0.0, 1.0, 4.0]).prop_map(|value| Some((value, 5)));
    (prop::bool::weighted(0.8), kv, queue).boxed()
}

/// A resolved variant with at most as many pods as replicas, and no more ready pods than its status
/// says.
fn wild(name: &'static str) -> BoxedStrategy<Variant> {
    let scale = (prop::collection::vec(wild_pod(), 0..5), 0..2_u32, prop::bool::weighted(0.1));
    let object = (
        prop::sample::select(vec!["5", "10", "20"]),
        prop::option::of(0..4_u32),
        prop::option::of(1..6_u32),
        prop::option::of(0..7_u32),
        prop::sample::select(vec!["m", "m", "n"]),
    );
    let clocks = (prop::option::of(0..NOW), prop::option::of(0..NOW), 0..12_u32);
    (scale, object, clocks)
        .prop_map(move |(scale, object, clocks)| {
            let (pods, unseen, lagging) = scale;
            let (cost, min, max, desired, model) = object;
            let (pending, unapplied, oddity) = clocks;
            let mut variant = with_pods(Variant::new(name), &pods, unseen)
                .model(model)
                .cost(cost)
                .bounds(min, max)
                .desired(desired);
            if lagging && let TargetView::Resolved(target) = &mut variant.view.target {
                target.generation = GenerationState::Lagging;
            }
            variant.view.pending_since = pending.map(|seconds| Since::at(at(seconds)));
            variant.view.unapplied_since = unapplied.map(|seconds| Since::at(at(seconds)));
            odd_target(variant, oddity)
        })
        .boxed()
}

/// A variant that has long been as it is.
pub(super) fn calm(name: &'static str) -> BoxedStrategy<Variant> {
    (prop::collection::vec(calm_pod(), 1..5), prop::sample::select(vec!["5", "10", "20"]))
        .prop_map(move |(pods, cost)| {
            with_pods(Variant::new(name), &pods, 0).cost(cost).pending_since(at(0))
        })
        .boxed()
}

/// Gives a variant these pods, and more replicas that have no pod yet.
fn with_pods(variant: Variant, pods: &[PodGiven], unseen: u32) -> Variant {
    let count = u32::try_from(pods.len()).unwrap();
    let mut variant = variant.replicas(count, 0.0, 0.0);
    let mut ready = 0;
    for (pod, (is_ready, kv, queue)) in variant.pods.iter_mut().zip(pods) {
        (pod.kv, pod.queue) = (*kv, *queue);
        if *is_ready {
            ready += 1;
        } else {
            pod.readiness = Readiness::NotReady;
        }
    }
    variant.counts(count + unseen, ready)
}

/// Now and then the target is not resolved.
fn odd_target(variant: Variant, oddity: u32) -> Variant {
    let target = TargetKey::new("ns", TargetKind::Deployment, "d");
    match oddity {
        0 => variant.target(TargetView::Unknown { target }),
        1 => variant.target(TargetView::NotFound { target, past: TargetPast::Existed }),
        2 => variant.target(TargetView::Malformed { why: "bad".into() }),
        _ => variant,
    }
}

pub(crate) fn world() -> impl Strategy<Value = World> {
    prop_oneof![
        (fleet(wild), 0..12_u32).prop_map(|(mut world, failure)| {
            match failure {
                0 => world.failed.push(SignalName::KvUsage),
                1 => world.failed.push(SignalName::QueueLength),
                _ => {}
            }
            world
        }),
        fleet(calm),
    ]
}

pub(super) fn fleet(
    variant: fn(&'static str) -> BoxedStrategy<Variant>,
) -> impl Strategy<Value = World> {
    (variant("a"), variant("b"), prop::option::of(variant("c")), prop::option::of(variant("d")))
        .prop_map(|(a, b, c, d)| World::of([a, b].into_iter().chain(c).chain(d)))
}
