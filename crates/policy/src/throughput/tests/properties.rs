//! Invariants.

use proptest::prelude::*;

use super::{BOTH, ENGINE, Story, key, model, replica, variant};
use crate::combine::{Balance, Band};
use crate::throughput::floor::hold;
use crate::throughput::window::WINDOW_SIZE;
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::Replicas;

/// A story in which one replica was seen full and queued twice.
fn saturated(rate: f64) -> Story {
    let full = ThroughputReplicaInput {
        waiting: Some(8.0),
        decode_rate: Some(rate),
        ..replica(0.85, ENGINE)
    };
    let mut story = Story::default();
    for _ in 0..3 {
        story.cycle(&model(1.0, [(key(), variant([full]))]));
    }
    story
}

proptest! {
    #[test]
    fn the_floor_does_not_depend_on_the_replica_count(
        rate in 100.0..20_000.0_f64,
        arrivals in 0.0..500.0_f64,
        queue in 0.0..2_000.0_f64,
        counts in (0_u32..60, 1_u32..60),
        pending in 0_u32..9,
    ) {
        let mut floors = Vec::new();
        for (ready, pending) in [(counts.0, 0), (counts.1, pending)] {
            let mut story = saturated(rate);
            let mut input = model(arrivals, [(key(), variant(
                (0..ready).map(|_| replica(0.3, ENGINE)),
            ))]);
            input.router_queue = Some(queue);
            input.variants.get_mut(&key()).unwrap().pending = Replicas(pending);
            let (_, report) = story.cycle(&input);
            let floor = report.roles[&BOTH].floor.unwrap();
            prop_assert!(floor.is_proven);
            floors.push((floor.replicas, floor.rate_per_replica));
        }
        prop_assert_eq!(floors[0], floors[1]);
    }

    #[test]
    fn a_proven_floor_holds_whatever_the_occupancy_says(
        arrivals in 1.0..200.0_f64,
        usage in 0.0..0.3_f64,
    ) {
        let mut story = saturated(1080.0);
        let fleet = || variant(vec![replica(usage, ENGINE); 40]);
        for _ in 0..3 {
            let (assessment, report) = story.cycle(&model(arrivals, [(key(), fleet())]));
            let floor = report.roles[&BOTH].floor.unwrap();
            let replicas = assessment.demand[&BOTH] / assessment.variants[&key()].per_replica;
            prop_assert!(replicas >= floor.replicas.min(0.85 * 40.0) * (1.0 - 1e-6));
        }
    }

    #[test]
    fn the_order_of_replicas_changes_nothing(
        usages in prop::collection::vec(0.0..1.0_f64, 1..30),
        arrivals in 0.0..100.0_f64,
    ) {
        let cycle = |usages: &[f64]| {
            let replicas = usages.iter().map(|usage| replica(*usage, ENGINE));
            let mut story = Story::default();
            let answer = story.cycle(&model(arrivals, [(key(), variant(replicas))]));
            (answer, story.learned)
        };
        let mut reversed = usages.clone();
        reversed.reverse();
        prop_assert_eq!(cycle(&usages), cycle(&reversed));
    }

    #[test]
    fn a_held_demand_neither_orders_nor_releases(
        demand in 0.0..1e9_f64,
        supply in 0.0..1e8_f64,
        pending in 0.0..1e8_f64,
        edges in (0.05..0.95_f64, 0.01..0.04_f64),
    ) {
        let band = Band { scale_up: edges.0, scale_down: edges.0 - edges.1 };
        let held = hold(demand, supply, supply + pending, band);
        let balance = Balance::of(held, supply, supply + pending, band);
        prop_assert!(balance.required <= 0.0 && balance.spare <= 0.0, "{balance:?}");
    }

    #[test]
    fn any_input_is_survived_and_what_is_learned_stays_bounded(
        cycles in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(prop::num::f64::ANY, 12), 0..6),
            1..40,
        ),
        totals in (prop::num::f64::ANY, prop::num::f64::ANY),
        most in prop::option::of(prop::num::f64::ANY),
    ) {
        let mut story = Story::default();
        for replicas in &cycles {
            let replicas = replicas.iter().map(|values| ThroughputReplicaInput {
                kv_capacity: Some(values[0].abs()),
                usage: Some(values[1].abs()),
                waiting: Some(values[2]),
                inter_token_latency: Some(values[3].abs()),
                time_to_first_token: Some(values[4]),
                input_tokens: Some(values[5].abs()),
                output_tokens: Some(values[6].abs()),
                hit_rate: Some(values[7]),
                arrivals: Some(values[8]),
                completions: Some(values[9]),
                decode_rate: Some(values[10]),
                running: Some(values[11].abs()),
            });
            let fleet = ThroughputVariantInput { max_sequences: most, ..variant(replicas) };
            let input = ThroughputModelInput {
                router_queue: Some(totals.1),
                ..model(totals.0, [(key(), fleet)])
            };
            let (assessment, report) = story.cycle(&input);
            prop_assert!(assessment.variants.values().all(|one| one.per_replica.is_finite()));
            prop_assert!(assessment.demand.values().all(|demand| demand.is_finite() && *demand >= 0.0));
            prop_assert!(report.variants.values().all(|one| one.observations <= WINDOW_SIZE));
        }
    }

    #[test]
    fn unknown_arrivals_are_no_demand_and_not_a_demand_of_zero(usage in 0.0..1.0_f64) {
        let mut input = model(0.0, [(key(), variant([replica(usage.max(0.15), ENGINE)]))]);
        let (assessment, _) = Story::default().cycle(&input);
        prop_assert_eq!(assessment.demand.len(), 1);
        input.arrivals = None;
        let (assessment, _) = Story::default().cycle(&input);
        prop_assert_eq!(assessment.demand.len(), 0);
        prop_assert_eq!(assessment.variants.len(), 1);
    }
}
