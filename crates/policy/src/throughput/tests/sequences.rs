//! Engines whose KV cache is never full: they take as many requests at once as their arguments say.

use super::{BOTH, Story, key, model, near, variant};
use crate::capacity::ServingRole;
use crate::throughput::variant::{CapacityBasis, RateSource};
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::Replicas;

/// Requests that an engine works on at once.
const MOST: f64 = 32.0;
/// Tokens of an answer.
const ANSWER: f64 = 200.0;

/// A replica that works on `running` requests of 300 and 200 tokens, with 1 % of its cache for ten of
/// them, and a token of each in 4 ms and 0.4 ms for each request.
fn busy(running: f64, waiting: f64) -> ThroughputReplicaInput {
    let latency = 0.004 + 0.0004 * running;
    ThroughputReplicaInput {
        kv_capacity: Some(400_000.0),
        usage: Some(running * 0.001),
        running: Some(running),
        waiting: Some(waiting),
        inter_token_latency: Some(latency),
        input_tokens: Some(300.0),
        output_tokens: Some(ANSWER),
        decode_rate: Some(running / latency),
        ..ThroughputReplicaInput::default()
    }
}

fn fleet(
    role: ServingRole,
    most: Option<f64>,
    replicas: &[ThroughputReplicaInput],
) -> ThroughputVariantInput {
    ThroughputVariantInput { role, max_sequences: most, ..variant(replicas.iter().copied()) }
}

/// Forty requests arrive in a second; two replicas at their limit answer nine and a half each.
fn overload(most: Option<f64>) -> ThroughputModelInput {
    let full = busy(MOST, 400.0);
    ThroughputModelInput {
        router_queue: Some(10_000.0),
        ..model(40.0, [(key(), fleet(BOTH, most, &[full, full]))])
    }
}

#[test]
fn an_engine_at_its_sequence_limit_is_full_whatever_its_cache_holds() {
    let mut story = Story::default();
    // By the cache alone, 3 % of it in use, nothing is known of this engine.
    let unlimited = fleet(ServingRole::Both, None, &[busy(MOST, 0.0)]);
    let (assessment, _) = story.cycle(&model(9.0, [(key(), unlimited)]));
    assert!(assessment.variants.is_empty(), "{assessment:#?}");

    let mut story = Story::default();
    let (assessment, report) = story.cycle(&overload(Some(MOST)));
    let figures = &report.variants[&key()];
    assert_eq!(figures.sizing, CapacityBasis::Observed);
    // The line goes through the default intercept of 6 ms and what was seen, 16.8 ms at 1.0.
    let latency = 0.006 + 0.85 * (0.0168 - 0.006);
    let sized = assessment.variants[&key()].per_replica;
    near(sized, 0.85 * MOST / latency, "0.85 of 32 requests");
    assert!(!figures.is_settled, "one look orders nothing");

    let (assessment, report) = story.cycle(&overload(Some(MOST)));
    let floor = report.roles[&BOTH].floor.unwrap();
    assert!(!floor.is_proven && floor.backlog > 10_000.0, "{floor:#?}");
    let demand = assessment.demand[&BOTH];
    assert!(demand > 0.85 * 2.0 * sized, "{demand} orders nothing");
    assert_eq!(assessment.variants[&key()].ready, Replicas(2));

    // Two rates of a full replica, a minute apart, prove what it completes.
    story.cycle(&overload(Some(MOST)));
    let (_, report) = story.cycle(&overload(Some(MOST)));
    let service = report.variants[&key()].service.unwrap();
    assert_eq!(service.source, RateSource::Measured);
    near(service.tokens_per_second, MOST / 0.0168, "as measured");
}

#[test]
fn a_queue_that_stands_shows_a_full_engine_of_which_no_limit_is_known() {
    // Arguments that do not say it leave the engine's default, which is larger than what it really takes.
    for most in [None, Some(256.0)] {
        let mut story = Story::default();
        let mut cycle = || story.cycle(&overload(most));
        let (first, _) = cycle();
        assert!(first.variants.is_empty(), "{first:#?}");
        // Queued for a minute at the third look; the second distinct rate comes with the fifth.
        let sizes: Vec<Option<f64>> =
            (0..5).map(|_| Some(cycle().0.variants.get(&key())?.per_replica)).collect();
        assert_eq!(sizes[..3], [None; 3], "{most:?}");
        near(sizes[3].unwrap(), MOST / 0.0168, "as measured");
        assert_eq!(sizes[3], sizes[4]);
        let (assessment, report) = cycle();
        assert!(report.variants[&key()].is_settled);
        assert!(assessment.demand[&BOTH] > 0.85 * 2.0 * MOST / 0.0168);
    }
}

#[test]
fn a_queue_of_decode_with_prefill_or_of_one_look_shows_nothing() {
    let mut story = Story::default();
    let queued = fleet(ServingRole::Decode, None, &[busy(MOST, 400.0)]);
    let decode = model(40.0, [(key(), queued)]);
    for _ in 0..8 {
        let (assessment, _) = story.cycle(&decode);
        assert!(assessment.variants.is_empty(), "{assessment:#?}");
    }
    let mut story = Story::default();
    for cycle in 0..8 {
        let waiting = if cycle % 2 == 0 { 400.0 } else { 0.0 };
        let burst = fleet(ServingRole::Both, None, &[busy(MOST, waiting)]);
        let (assessment, _) = story.cycle(&model(40.0, [(key(), burst)]));
        assert!(assessment.variants.is_empty(), "{assessment:#?}");
    }
}

#[test]
fn more_requests_than_the_limit_refute_it() {
    let limited = |most| {
        let mut story = Story::default();
        let replicas = [busy(MOST, 0.0)];
        let input = model(9.0, [(key(), fleet(ServingRole::Both, most, &replicas))]);
        story.cycle(&input).0.variants.len()
    };
    assert_eq!(limited(Some(MOST)), 1);
    assert_eq!(limited(Some(MOST - 1.0)), 0);
}
