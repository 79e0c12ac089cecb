//! The fluid model against what can be computed by hand.

use crate::engine::{Limits, Profile};
use crate::lab::campaign::least_count;
use crate::lab::fluid::{FluidDemand, GOAL, WorkModel, mean_lengths, primaries, scored};
use crate::lab::scenario::{LoadedScenario, prepare};
use crate::world::Slo;
use std::time::Duration;

const STEP: &str = include_str!("../scenarios/step.yaml");

fn demand(text: &str) -> FluidDemand {
    let scenario = LoadedScenario::read(text, "step.yaml").unwrap();
    let prepared = prepare(&scenario.spec, None, 1).unwrap();
    let scored = scored(scenario.spec.prelude.0, scenario.spec.duration.0);
    FluidDemand::new(&prepared.scenario.models[0], &prepared.loads[0], scored).unwrap()
}

#[test]
fn a_batch_is_limited_by_sequences_by_latency_or_by_memory() {
    let batch = |max_num_seqs, milliseconds, lengths| {
        let limits = Limits { max_num_seqs, ..Limits::default() };
        let slo = Slo {
            first_token: Duration::from_secs(1),
            per_token: Duration::from_millis(milliseconds),
        };
        WorkModel::new(Profile::QWEN3_8B_FP8_H100, limits, slo, lengths).batch
    };
    assert!((batch(16, 20, (300.0, 300.0)) - 16.0).abs() < 1e-9);
    // (20 − 4.54 ms) ÷ (14.3 + 50.6 × 2.25 + 24.6 × 4 µs)
    let latency = 15_460.0 / (14.3 + 0.0506 * 2_250.0 + 98.4);
    assert!((batch(256, 20, (2_000.0, 500.0)) - latency).abs() < 1e-6);
    let memory = 0.9 * 430_000.0 / 4_000.0;
    assert!((batch(1_024, 1_000, (3_000.0, 2_000.0)) - memory).abs() < 1e-6);
}

#[test]
fn a_schedule_that_knows_the_step_costs_less_than_a_fixed_fleet() {
    let demand = demand(STEP);
    let fixed = demand.least_static();
    assert!((3..=10).contains(&fixed), "{fixed}");
    let bound = demand.clairvoyant();
    assert!(bound.attainment >= GOAL, "{bound:?}");
    let hours = f64::from(fixed) * 100.0 / 60.0;
    assert!(bound.gpu_hours < 0.8 * hours, "{bound:?} {hours}");
    assert!(demand.load_to_capacity() < 0.6);
}

#[test]
fn a_bound_with_sleepers_pays_for_wakes() {
    let cold = demand(STEP).clairvoyant();
    let asleep = "sigma: 0.175, asleep: {count: 2, wake: 5s}}";
    let text = STEP.replace("sigma: 0.175}", asleep);
    assert_ne!(text, STEP);
    let woken = demand(&text).clairvoyant();
    assert!(woken.attainment >= GOAL, "{woken:?}");
    assert!(woken.gpu_hours < cold.gpu_hours, "{woken:?} {cold:?}");
}

#[test]
fn too_much_load_is_infeasible() {
    let text = STEP.replace("rate: 32", "rate: 200");
    let demand = demand(&text);
    assert!(demand.load_to_capacity() > 1.0);
    assert!(demand.clairvoyant().attainment < GOAL);
    assert_eq!(demand.least_static(), 16);
}

#[test]
fn the_variant_with_the_least_cost_a_request_is_the_primary_one() {
    let text = include_str!("../scenarios/two-variants.yaml");
    let scenario = LoadedScenario::read(text, "two.yaml").unwrap();
    let prepared = prepare(&scenario.spec, None, 1).unwrap();
    let chosen = primaries(&prepared.scenario.models[0], mean_lengths(&prepared.loads[0]));
    assert_eq!(chosen[0].name, "qwen3-8b-h100");
}

#[test]
fn a_search_ends_at_the_least_count() {
    for (least, guess) in [(4, 4), (4, 1), (4, 9), (1, 3), (9, 2)] {
        let mut played = Vec::new();
        let found = least_count(guess, 9, |count| {
            played.push(count);
            Ok::<_, ()>(if count >= least { 1.0 } else { 0.5 })
        });
        assert_eq!(found, Ok(least), "{guess}: {played:?}");
    }
    assert_eq!(least_count(2, 3, |_| Ok::<_, ()>(0.5)), Ok(3));
}
