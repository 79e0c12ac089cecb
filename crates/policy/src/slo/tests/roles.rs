//! Prompts and answers on servers of their own.

use std::time::Duration;

use super::at;
use super::parts::{SHAPE, close};
use crate::capacity::ServingRole;
use crate::key::{ModelKey, VariantKey};
use crate::params::BurstReserve;
use crate::slo::capacity::{self, CapacityBound};
use crate::slo::curve::LatencyCurve;
use crate::slo::release::ReleaseHold;
use crate::slo::{LearnedSlo, SloGoal, assess};
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::Replicas;

/// A replica for prompts and one for answers, each with five requests per second. The router says how many arrive, if
/// this does.
fn apart(arrivals: Option<f64>, decode_rate: f64) -> ThroughputModelInput {
    let replica = |decode_rate| ThroughputReplicaInput {
        kv_capacity: Some(450_000.0),
        input_tokens: Some(300.0),
        output_tokens: Some(300.0),
        inter_token_latency: Some(0.01),
        time_to_first_token: Some(0.03),
        arrivals: Some(5.0),
        completions: Some(5.0),
        running: Some(15.0),
        decode_rate,
        ..ThroughputReplicaInput::default()
    };
    let variant = |name: &str, role, decode_rate| {
        let variant = ThroughputVariantInput {
            role,
            ready: Replicas(1),
            replicas: [("a".into(), replica(decode_rate))].into_iter().collect(),
            ..ThroughputVariantInput::default()
        };
        (VariantKey::new("ns", name), variant)
    };
    ThroughputModelInput {
        arrivals,
        router_queue: Some(0.0),
        variants: [
            variant("p", ServingRole::Prefill, None),
            variant("d", ServingRole::Decode, Some(decode_rate)),
        ]
        .into(),
        ..ThroughputModelInput::default()
    }
}

/// Means over few requests scatter, and the least of them would be a replica that does not exist.
#[test]
fn prompts_are_timed_over_all_replicas_together() {
    let replica = |sent, tokens, first_token, waiting| ThroughputReplicaInput {
        input_tokens: Some(tokens),
        time_to_first_token: Some(first_token),
        arrivals: sent,
        waiting: Some(waiting),
        ..ThroughputReplicaInput::default()
    };
    let timed = |(sent, waiting): ([Option<f64>; 2], f64)| {
        let replicas = [
            ("a".into(), replica(sent[0], 300.0, 0.03, 0.0)),
            ("b".into(), replica(sent[1], 1_000.0, 0.02, waiting)),
        ];
        let variant = ThroughputVariantInput {
            replicas: replicas.into_iter().collect(),
            ..ThroughputVariantInput::default()
        };
        (variant.prompt_seconds().unwrap(), variant.most_prompt_seconds().unwrap())
    };
    let both = (9.0 * 0.03 + 0.02) / (9.0 * 300.0 + 1_000.0);
    let once = (0.03 + 0.02) / (300.0 + 1_000.0);
    for (given, read, most) in [
        (([Some(9.0), Some(1.0)], 0.0), both, both),
        (([Some(9.0), Some(1.0)], 1.0), 0.03 / 300.0, both),
        // An idle replica counts where all are idle.
        (([Some(9.0), Some(0.0)], 0.0), 0.03 / 300.0, 0.03 / 300.0),
        (([Some(0.0), None], 0.0), once, once),
    ] {
        let (seen, bound) = timed(given);
        close(seen, read);
        close(bound, most);
    }
}

#[test]
fn longer_answers_bring_no_more_prompts() {
    let key = ModelKey::new("ns", "m");
    let mut learned = LearnedSlo::default();
    let mut needs = |second, decode_rate| {
        let input = apart(Some(5.0), decode_rate);
        let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
        learned = learned.learn(&models, at(second));
        let (_, report) = assess(&key, &input, SloGoal::default(), &learned, at(second));
        [ServingRole::Prefill, ServingRole::Decode].map(|role| report.roles[&role].arriving)
    };
    for (second, generated) in [(0, 1_500.0), (15, 4_500.0)] {
        let [prefill, decode] = needs(second, generated);
        close(prefill, 1_500.0);
        close(decode, generated);
    }
}

/// It is placed, and completed, by a server of each kind.
#[test]
fn a_request_on_two_servers_is_one() {
    let key = ModelKey::new("ns", "m");
    for arrivals in [Some(5.0), None] {
        let mut learned = LearnedSlo::default();
        for second in [0, 15, 30] {
            let models = [(key.clone(), (apart(arrivals, 1_500.0), SloGoal::default()))].into();
            learned = learned.learn(&models, at(second));
            let demand = learned.get(&key).unwrap().demand.unwrap();
            close(demand.rate(), 5.0);
            close(demand.served, 5.0);
            close(demand.surge, 0.0);
        }
    }
}

/// Next to a replica that does whole requests, those that read prompts are placed a part of them.
#[test]
fn prompts_alone_are_not_the_requests_of_replicas_that_do_whole_ones() {
    let key = ModelKey::new("ns", "m");
    let rate = |role, arrivals| {
        let mut input = apart(None, 1_500.0);
        let other = input.variants.get_mut(&VariantKey::new("ns", "d")).unwrap();
        other.role = role;
        for replica in other.replicas.values_mut() {
            (replica.arrivals, replica.completions) = (arrivals, Some(20.0));
        }
        let models = [(key.clone(), (input, SloGoal::default()))].into();
        let learned = LearnedSlo::default().learn(&models, at(0));
        learned.get(&key).unwrap().demand.unwrap().rate()
    };
    close(rate(ServingRole::Decode, None), 5.0);
    close(rate(ServingRole::Both, Some(20.0)), 20.0);
    close(rate(ServingRole::Both, None), 20.0);
}

/// The router holds requests for the role that is full.
#[test]
fn requests_that_wait_for_answers_are_no_backlog_of_prompts() {
    let key = ModelKey::new("ns", "m");
    let waits = |sequences: Option<f64>, completions: f64, waiting: f64| {
        let mut learned = LearnedSlo::default();
        let mut input = apart(Some(5.0), 1_500.0);
        input.router_queue = Some(2_000.0);
        for variant in input.variants.values_mut() {
            variant.max_sequences = sequences;
        }
        let mut report = None;
        for (second, completions, waiting) in [(0, 5.0, 0.0), (15, completions, waiting)] {
            let variants = input.variants.values_mut();
            for replica in variants.flat_map(|one| one.replicas.values_mut()) {
                replica.completions = Some(completions);
                replica.waiting = Some(waiting);
            }
            let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
            learned = learned.learn(&models, at(second));
            report = Some(assess(&key, &input, SloGoal::default(), &learned, at(second)).1);
        }
        let report = report.unwrap();
        [ServingRole::Prefill, ServingRole::Decode].map(|role| {
            let figures = report.roles[&role];
            let is_held = figures.hold == Some(ReleaseHold::Backlog);
            (figures.landing_backlog.round(), is_held)
        })
    };
    let (idle, busy) = (None, Some(16.0));
    // Prompts of 300 tokens: a replica can read 30 of them a second. It reads more, has a queue, or decode has room.
    assert_eq!(waits(busy, 31.0, 0.0), [(600_000.0, true); 2]);
    assert_eq!(waits(busy, 5.0, 5.0), [(601_500.0, true); 2]);
    assert_eq!(waits(idle, 5.0, 0.0), [(600_000.0, true); 2]);
    // It has room, with a few prompts that wait for each other or without.
    let few = [(1_200.0, false), (601_200.0, true)];
    assert_eq!(waits(busy, 5.0, 4.0), few);
    assert_eq!(waits(busy, 5.0, 0.0), [(0.0, false), (600_000.0, true)]);
}

/// First seen under load, its prompts wait for each other.
#[test]
fn a_prefill_replica_does_what_it_completes_at_least() {
    let empty = LatencyCurve::default();
    let per_second = |completions: &[f64]| {
        let replica = |completions: &f64| ThroughputReplicaInput {
            input_tokens: Some(300.0),
            time_to_first_token: Some(1.0),
            completions: Some(*completions),
            ..ThroughputReplicaInput::default()
        };
        let replicas = (0..).zip(completions);
        let given = ThroughputVariantInput {
            role: ServingRole::Prefill,
            replicas: replicas
                .map(|(name, one): (u32, _)| (format!("{name}").into(), replica(one)))
                .collect(),
            ..ThroughputVariantInput::default()
        };
        let size = (SHAPE, SloGoal::default());
        let found = capacity::of(&given, &empty, Some(1.0 / 300.0), size, at(0));
        found.unwrap().per_second
    };
    // A prompt of a second waits for one more at two thirds.
    close(per_second(&[]), 200.0);
    close(per_second(&[0.5, 0.9]), 200.0);
    close(per_second(&[10.0]), 0.9 * 3_000.0);
    close(per_second(&[10.0, 6.0]), 0.9 * 2_400.0);
}

/// Prefill that always has a queue was never sized.
#[test]
fn prefill_with_a_queue_is_sized_by_what_it_reads() {
    let key = ModelKey::new("ns", "m");
    let prefill = VariantKey::new("ns", "p");
    let sized = |arrivals: f64, waiting: f64, latency: Option<f64>| {
        let mut input = apart(Some(arrivals), 1_500.0);
        for (name, given) in &mut input.variants {
            for replica in given.replicas.values_mut() {
                if *name == prefill {
                    replica.waiting = Some(waiting);
                    replica.time_to_first_token = (waiting <= 0.0).then_some(0.03);
                } else {
                    replica.inter_token_latency = latency;
                }
            }
        }
        let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
        let learned = LearnedSlo::default().learn(&models, at(0));
        let report = assess(&key, &input, SloGoal::default(), &learned, at(0)).1;
        let size = report.variants.get(&prefill)?;
        let stated = report.roles[&ServingRole::Prefill].stated;
        Some((size.bound, size.per_second.round(), stated.round()))
    };
    let known = |per_second, stated| Some((CapacityBound::FirstToken, per_second, stated));
    assert_eq!(sized(30.0, 0.0, Some(0.01)), known(9_000.0, 10_800.0));
    // Five prompts of 300 tokens in a second, of which at most nine tenths are within the objective.
    let guess = |stated| Some((CapacityBound::Reading, 1_350.0, stated));
    assert_eq!(sized(5.0, 3.0, Some(0.01)), guess(1_800.0));
    assert_eq!(sized(30.0, 3.0, Some(0.01)), guess(2_295.0));
    // Where answers are not sized either, others judge the model.
    assert_eq!(sized(5.0, 3.0, None), None);
}

#[test]
fn a_target_without_pods_forgets_nothing_of_its_engine() {
    let key = ModelKey::new("ns", "m");
    let knows = |later: &str| {
        let mut learned = LearnedSlo::default();
        for (second, engine) in [(0, "one"), (15, later)] {
            let mut input = apart(Some(5.0), 1_500.0);
            for variant in input.variants.values_mut() {
                variant.engine = engine.into();
                if second > 0 {
                    variant.ready = Replicas::ZERO;
                    variant.replicas = [].into_iter().collect();
                }
            }
            let models = [(key.clone(), (input, SloGoal::default()))].into();
            learned = learned.learn(&models, at(second));
        }
        let mut engines = learned.get(&key).unwrap().engines.values();
        engines.any(|engine| engine.prompt_seconds.is_some())
    };
    assert!(knows("one"));
    assert!(knows(""));
    assert!(!knows("another"));
}

#[test]
fn without_a_reserve_no_need_outlives_the_horizon() {
    let key = ModelKey::new("ns", "m");
    let kept = |chosen| {
        let mut learned = LearnedSlo::default();
        for (second, arrivals, queue) in [(0, 5.0, 0.0), (15, 5.0, 0.0), (60, 20.0, 400.0)] {
            let mut input = apart(Some(arrivals), 1_500.0);
            input.router_queue = Some(queue);
            input.params.burst_reserve = chosen;
            for variant in input.variants.values_mut() {
                variant.start = Duration::from_mins(2);
            }
            let models = [(key.clone(), (input, SloGoal::default()))].into();
            learned = learned.learn(&models, at(second));
        }
        let memory = &learned.get(&key).unwrap().needs[&ServingRole::Decode];
        memory.remembered(BurstReserve::Economical, at(60)).1
    };
    assert_eq!(kept(BurstReserve::None), Duration::from_mins(15));
    assert_eq!(kept(BurstReserve::Economical), Duration::from_mins(44));
}
