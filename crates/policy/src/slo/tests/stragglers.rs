//! Variants that are too slow to serve with the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::at;
use crate::capacity::ServingRole;
use crate::key::{ModelKey, VariantKey};
use crate::params::SloTerm;
use crate::reason::Straggler;
use crate::slo::{LearnedSlo, SloGoal, SloReport, assess};
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::{Cost, Replicas};

/// A replica of an engine with `latency = idle / (1 - work / most)` that runs so many sequences of 300 tokens each way.
fn replica(idle: f64, most: f64, sequences: f64) -> ThroughputReplicaInput {
    let work = sequences / (0.8 * idle + sequences / most);
    let (tokens, latency) = (0.8 * work, idle / (1.0 - work / most));
    ThroughputReplicaInput {
        kv_capacity: Some(200_000.0),
        input_tokens: Some(300.0),
        output_tokens: Some(300.0),
        inter_token_latency: Some(latency),
        arrivals: Some(tokens / 300.0),
        completions: Some(tokens / 300.0),
        running: Some(sequences),
        decode_rate: Some(tokens),
        waiting: Some(0.0),
        ..ThroughputReplicaInput::default()
    }
}

/// Ready replicas and the maximum.
type Fleet = (u32, Option<u32>);

/// Two variants whose replicas run the same number of sequences: 200 and 30 of which meet 50 ms.
fn unlike(fast: Fleet, slow: Fleet, sequences: f64, arrivals: f64) -> ThroughputModelInput {
    let variant = |name: &str, (ready, max): Fleet, (idle, most): (f64, f64), cost: &str| {
        let replicas = (0..ready)
            .map(|index| (Arc::from(format!("{index}")), replica(idle, most, sequences)))
            .collect();
        let variant = ThroughputVariantInput {
            role: ServingRole::Both,
            engine: name.into(),
            ready: Replicas(ready),
            current: Replicas(ready),
            max: max.map(Replicas),
            cost: Cost::parse(cost).ok(),
            replicas,
            ..ThroughputVariantInput::default()
        };
        (VariantKey::new("ns", name), variant)
    };
    ThroughputModelInput {
        arrivals: Some(arrivals),
        router_queue: Some(0.0),
        variants: [
            variant("fast", fast, (0.01, 6_250.0), "10"),
            variant("slow", slow, (0.04, 3_750.0), "8"),
        ]
        .into(),
        ..ThroughputModelInput::default()
    }
}

/// What is said after the model has run so many sequences a replica, and then serves `input` for an hour.
fn report(input: &ThroughputModelInput) -> SloReport {
    let key = ModelKey::new("ns", "m");
    let goal = SloGoal::default();
    // Work varies, so that the laws are known.
    let sweep = |sequences: f64| unlike((1, None), (1, None), sequences, 4.0);
    let looks = [2.0, 8.0, 20.0, 60.0].iter().cycle().take(40).map(|one| sweep(*one));
    let looks = looks.chain(std::iter::repeat_n(input.clone(), 240));
    let learned = looks.zip(0..).fold(LearnedSlo::default(), |learned, (input, look)| {
        learned.learn(&[(key.clone(), (input, goal))].into(), at(look * 15))
    });
    assess(&key, input, goal, &learned, at(4_200)).1
}

fn slow() -> VariantKey {
    VariantKey::new("ns", "slow")
}

#[test]
fn a_variant_that_is_too_slow_next_to_the_others_straggles() {
    // The work of a request is 375 tokens; a fast replica does 5 000 within the objectives, a slow one 750.
    let served = report(&unlike((4, None), (1, None), 20.0, 30.0));
    let [fast, slow_one] =
        ["fast", "slow"].map(|name| served.variants[&VariantKey::new("ns", name)]);
    assert!(slow_one.concurrency < 0.5 * fast.concurrency, "{served:?}");
    let expected = Straggler {
        sequences: crate::rounding::floor(slow_one.concurrency),
        others: crate::rounding::floor(fast.concurrency),
        is_replaced: true,
    };
    assert_eq!(served.stragglers, [(slow(), expected)].into());
    let last = |report: &SloReport| report.lines().pop().unwrap();
    let why = format!(
        "slo ns/slow: too slow to serve with the others: a replica holds {} sequences, theirs {} or more; it ",
        expected.sequences, expected.others
    );
    assert_eq!(last(&served), format!("{why}goes to its minimum"));
    // Until the others do what is needed it stays.
    let short = report(&unlike((1, None), (4, None), 20.0, 30.0));
    assert_eq!(short.stragglers.get(&slow()).map(|one| one.is_replaced), Some(false));
    assert!(last(&short).ends_with("; it serves until the others do what is needed"));
    let mut alike = unlike((4, None), (1, None), 20.0, 30.0);
    alike.params.without = Some(SloTerm::Stragglers);
    let lines = report(&alike).lines();
    assert!(lines.iter().all(|line| !line.contains("too slow")), "{lines:?}");
}

#[test]
fn what_costs_least_alone_serves_alone() {
    let stragglers = |input: &ThroughputModelInput| -> BTreeSet<VariantKey> {
        report(input).stragglers.into_keys().collect()
    };
    // So little arrives that one slow replica would do, which is a fifth cheaper: not enough for a change.
    let mut calm = unlike((1, None), (1, None), 2.0, 1.0);
    assert_eq!(stragglers(&calm), [slow()].into());
    if let Some(variant) = calm.variants.get_mut(&slow()) {
        variant.cost = Cost::parse("4").ok();
    }
    assert_eq!(stragglers(&calm), BTreeSet::new());
    // The fast ones are at their maximum, where they could not even do it slowly.
    let full = unlike((2, Some(2)), (8, None), 60.0, 60.0);
    assert_eq!(stragglers(&full), BTreeSet::new());
    let mut room = full.clone();
    for variant in room.variants.values_mut() {
        variant.max = Some(Replicas(20));
    }
    assert_eq!(stragglers(&room), [slow()].into());
    let limited = ThroughputModelInput { needs_any_variant: true, ..room.clone() };
    assert_eq!(stragglers(&limited), BTreeSet::new());
    // The fast ones do not start any more.
    let mut stalled = room.clone();
    for variant in stalled.variants.values_mut() {
        variant.max = (variant.ready == Replicas(2)).then_some(Replicas(2));
    }
    assert_eq!(stragglers(&stalled), BTreeSet::new());
    room.params.without = Some(SloTerm::Stragglers);
    assert_eq!(stragglers(&room), BTreeSet::new());
}
