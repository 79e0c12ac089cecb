//! What happens over time.

use std::sync::Arc;

use super::{BOTH, ENGINE, Story, key, model, near, replica, variant};
use crate::capacity::ServingRole;
use crate::combine::VoteDirection;
use crate::key::VariantKey;
use crate::throughput::line::LatencyLine;
use crate::throughput::role::Damping;
use crate::throughput::variant::{CapacityBasis, RateSource};
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::Replicas;

const FULL_RATE: f64 = 2_780.564_163;

#[test]
fn an_engine_that_warms_up_is_not_sized() {
    let mut story = Story::default();
    let cold = ThroughputReplicaInput { inter_token_latency: Some(0.02), ..replica(0.02, ENGINE) };
    let (assessment, report) = story.cycle(&model(3.0, [(key(), variant([cold]))]));
    assert!(report.variants[&key()].rate_now.unwrap() < FULL_RATE / 5.0);
    assert_eq!(report.variants[&key()].sizing, CapacityBasis::Unsized);
    assert_eq!((assessment.variants.len(), assessment.demand.len()), (0, 0));

    let warm = model(3.0, [(key(), variant([replica(0.4, ENGINE)]))]);
    let (assessment, report) = story.cycle(&warm);
    near(assessment.variants[&key()].per_replica, FULL_RATE, "sized");
    assert!(!report.variants[&key()].is_settled);
    let (_, report) = story.cycle(&warm);
    assert!(report.variants[&key()].is_settled);
}

#[test]
fn both_directions_take_two_cycles() {
    for (arrivals, direction) in [(60.0, VoteDirection::Up), (2.0, VoteDirection::Down)] {
        let mut story = Story::default();
        let fleet = || [(key(), variant([replica(0.4, ENGINE); 2]))];
        for _ in 0..3 {
            let (assessment, report) = story.cycle(&model(20.0, fleet()));
            assert_eq!(report.roles[&BOTH].streak, None);
            near(assessment.demand[&BOTH], 4000.0, "steady");
        }
        let moved = model(arrivals, fleet());
        let (assessment, report) = story.cycle(&moved);
        let figures = report.roles[&BOTH];
        assert_eq!(figures.damping, Damping::Unconfirmed, "{direction:?}");
        assert_eq!(figures.streak.unwrap().direction, direction);
        let edge = match direction {
            VoteDirection::Up => 0.85,
            VoteDirection::Down => 0.70,
        };
        near(
            assessment.demand[&BOTH],
            edge * 2.0 * FULL_RATE * (1.0 + (0.775 - edge).signum() * 1e-9),
            "held",
        );
        let (assessment, report) = story.cycle(&moved);
        assert_eq!(report.roles[&BOTH].damping, Damping::Free, "{direction:?}");
        near(assessment.demand[&BOTH], arrivals * 200.0, "acts");
    }
}

#[test]
fn a_dip_of_one_cycle_changes_no_capacity() {
    let mut story = Story::default();
    let steady = model(20.0, [(key(), variant([replica(0.4, ENGINE); 2]))]);
    for _ in 0..3 {
        story.cycle(&steady);
    }
    let slow = LatencyLine { slope: 0.2, intercept: 0.006 };
    let dip = model(20.0, [(key(), variant([replica(0.4, slow); 2]))]);
    let (assessment, report) = story.cycle(&dip);
    assert!(report.variants[&key()].rate_now.unwrap() < FULL_RATE / 2.0);
    near(assessment.variants[&key()].per_replica, FULL_RATE, "the dip");
    for _ in 0..3 {
        story.cycle(&dip);
    }
    let (assessment, _) = story.cycle(&dip);
    assert!(assessment.variants[&key()].per_replica < FULL_RATE / 2.0, "what lasts is believed");
}

#[test]
fn what_was_learned_belongs_to_an_engine() {
    let mut story = Story::default();
    let engine = |name: &str, replicas: &[ThroughputReplicaInput]| ThroughputVariantInput {
        engine: Arc::from(name),
        ..variant(replicas.iter().copied())
    };
    let other = VariantKey::new("ns", "w");
    let seen = [replica(0.5, ENGINE)];
    let both = |name: &str| {
        model(5.0, [(key(), engine("h100/1", &seen)), (other.clone(), engine(name, &[]))])
    };
    let (assessment, report) = story.cycle(&both("l40s/1"));
    assert_eq!(report.variants[&other].sizing, CapacityBasis::Unsized);
    assert!(!assessment.variants.contains_key(&other));
    let (assessment, report) = story.cycle(&both("h100/1"));
    assert_eq!(report.variants[&other].sizing, CapacityBasis::Borrowed);
    near(assessment.variants[&other].per_replica, FULL_RATE, "lent");

    let replaced = model(5.0, [(key(), engine("h100/2", &[]))]);
    let (assessment, _) = story.cycle(&replaced);
    assert_eq!(assessment.variants.len(), 0, "another engine");
    assert!(story.learned.is_empty(), "and nothing is kept of the old one");
}

#[test]
fn prefill_is_sized_by_its_line() {
    let mut story = Story::default();
    let prompt = LatencyLine { slope: 1.0 / 40_000.0, intercept: 0.02 };
    let reader = |waiting: f64| ThroughputReplicaInput {
        input_tokens: Some(1000.0),
        waiting: Some(waiting),
        time_to_first_token: Some(prompt.at(1000.0 * (1.0 + waiting))),
        ..ThroughputReplicaInput::default()
    };
    let fleet = |queues: &[f64]| {
        let prefill = ThroughputVariantInput {
            role: ServingRole::Prefill,
            ..variant(queues.iter().map(|waiting| reader(*waiting)))
        };
        let decode = ThroughputVariantInput {
            role: ServingRole::Decode,
            ready: Replicas(1),
            ..ThroughputVariantInput::default()
        };
        model(30.0, [(key(), prefill), (VariantKey::new("ns", "d"), decode)])
    };
    let (assessment, report) = story.cycle(&fleet(&[0.0; 10]));
    assert_eq!(report.variants[&key()].prompt_line, None, "no spread");
    assert!(assessment.demand.is_empty());
    let (assessment, report) = story.cycle(&fleet(&[0.0, 1.0, 2.0, 3.0, 4.0]));
    near(report.variants[&key()].prompt_line.unwrap().line.intercept, 0.02, "B");
    near(assessment.variants[&key()].per_replica, 40_000.0, "1/A");
    let balance = report.roles[&ServingRole::Prefill].balance;
    near(balance.demand, 30_000.0 + 10.0 / 60.0 * 1000.0, "demand");
    let service = report.variants[&key()].service.unwrap();
    assert_eq!(service.source, RateSource::FirstLine);
    near(service.requests_per_second, 40.0, "requests");
    // A rate window after the first observation.
    let (_, report) = story.cycle(&fleet(&[0.0, 1.0, 2.0, 3.0, 4.0]));
    let service = report.variants[&key()].service.unwrap();
    assert_eq!(service.source, RateSource::Line);
}

#[test]
fn a_queue_in_the_router_orders_once_while_the_rate_is_not_proven() {
    let mut story = Story::default();
    let full = |decode_rate| ThroughputReplicaInput {
        waiting: Some(6.0),
        decode_rate,
        ..replica(0.84, ENGINE)
    };
    story.cycle(&model(6.0, [(key(), variant([full(Some(1080.0))]))]));
    let mut queued = model(6.0, [(key(), variant([full(None)]))]);
    queued.router_queue = Some(1000.0);
    let (_, report) = story.cycle(&queued);
    assert_eq!(report.roles[&BOTH].damping, Damping::Unconfirmed);
    let (assessment, report) = story.cycle(&queued);
    let floor = report.roles[&BOTH].floor.unwrap();
    assert!(!floor.is_proven);
    assert_eq!(floor.queue_order, Replicas(3));
    near(assessment.demand[&BOTH] / 0.85 / FULL_RATE, 4.0, "ordered");

    queued.variants.get_mut(&key()).unwrap().pending = Replicas(3);
    queued.router_queue = Some(1050.0);
    let (_, report) = story.cycle(&queued);
    let balance = report.roles[&BOTH].balance;
    assert!(balance.required < 1e-3, "{balance:?}");
}

/// Prompts of a length in front of prefill, behind so many others each.
fn reading(length: f64, waiting: f64, arrivals: f64) -> ThroughputModelInput {
    let prompt = LatencyLine { slope: 1.0 / 138_750.0, intercept: 0.02 };
    let prefill = ThroughputVariantInput {
        role: ServingRole::Prefill,
        ..variant([ThroughputReplicaInput {
            input_tokens: Some(length),
            waiting: Some(waiting),
            time_to_first_token: Some(prompt.at(length * (1.0 + waiting))),
            ..ThroughputReplicaInput::default()
        }])
    };
    let decode =
        ThroughputVariantInput { role: ServingRole::Decode, ..variant([replica(0.4, ENGINE)]) };
    model(arrivals, [(key(), prefill), (VariantKey::new("ns", "d"), decode)])
}

#[test]
fn prefill_grows_in_the_cycle_in_which_the_prompts_do() {
    let mut story = Story::default();
    for _ in 0..12 {
        let (assessment, _) = story.cycle(&reading(1000.0, 0.0, 2.0));
        assert!(!assessment.demand.contains_key(&ServingRole::Prefill));
    }
    let (assessment, report) = story.cycle(&reading(30_000.0, 3.0, 12.0));
    let figures = report.roles[&ServingRole::Prefill];
    assert_eq!(figures.damping, Damping::Free);
    near(assessment.variants[&key()].per_replica, 138_750.0, "what one replica reads");
    assert!(assessment.demand[&ServingRole::Prefill] / 138_750.0 > 2.594, "{figures:?}");
}

#[test]
fn a_full_decode_keeps_prefill_as_it_is_but_for_the_queue_in_the_router() {
    let mut story = Story::default();
    for _ in 0..12 {
        story.cycle(&reading(1000.0, 0.0, 2.0));
    }
    story.cycle(&reading(30_000.0, 3.0, 1.0));
    let mut jammed = reading(30_000.0, 40.0, 12.0);
    let decode = VariantKey::new("ns", "d");
    for replica in jammed.variants.get_mut(&decode).unwrap().replicas.values_mut() {
        replica.usage = Some(0.9);
        replica.waiting = Some(9.0);
    }
    let (_, report) = story.cycle(&jammed);
    let figures = report.roles[&ServingRole::Prefill];
    assert_eq!(figures.damping, Damping::DecodeBacklog);
    near(figures.stated, 0.85 * 138_750.0, "held");
    jammed.router_queue = Some(60.0);
    let (_, report) = story.cycle(&jammed);
    let queued = report.roles[&ServingRole::Prefill].stated - figures.stated;
    near(queued, 60.0 * 30_000.0 / 60.0, "but for the router");
}

#[test]
fn a_line_of_one_rate_window_orders_nothing() {
    let prompt = LatencyLine { slope: 1.0 / 50_000.0, intercept: 0.05 };
    let reader = |length: f64| ThroughputReplicaInput {
        input_tokens: Some(length),
        waiting: Some(0.0),
        time_to_first_token: Some(prompt.at(length)),
        ..ThroughputReplicaInput::default()
    };
    // As many replicas that the window of a line never holds more than two collections.
    let fleet = || {
        let prefill = ThroughputVariantInput {
            role: ServingRole::Prefill,
            ..variant((1..=10).map(|number| reader(1000.0 * f64::from(number))))
        };
        let usages = [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65];
        let decode = ThroughputVariantInput {
            role: ServingRole::Decode,
            ..variant(usages.map(|usage| replica(usage, ENGINE)))
        };
        let decoding = VariantKey::new("ns", "d");
        model(200.0, [(key(), prefill), (decoding, decode)])
    };
    let mut story = Story::default();
    for seconds in [0, 30] {
        let (assessment, report) = story.cycle(&fleet());
        for role in [ServingRole::Prefill, ServingRole::Decode] {
            let floor = report.roles[&role].floor.unwrap();
            assert!(!floor.is_proven, "{role} after {seconds} s");
        }
        let figures = report.roles[&ServingRole::Prefill];
        assert_eq!(figures.damping, Damping::WarmUp, "after {seconds} s");
        let held = 0.85 * 500_000.0 * (1.0 - 1e-9);
        near(assessment.demand[&ServingRole::Prefill], held, "held");
    }
    let (assessment, report) = story.cycle(&fleet());
    for role in [ServingRole::Prefill, ServingRole::Decode] {
        assert!(report.roles[&role].floor.unwrap().is_proven, "{role}");
    }
    let figures = report.roles[&ServingRole::Prefill];
    assert_eq!(figures.damping, Damping::Free);
    let ordered = assessment.demand[&ServingRole::Prefill];
    near(ordered, 200.0 * 5_500.0, "ordered");
}

#[test]
fn supply_without_demand_for_a_full_window_is_noted() {
    let fleet = |arrivals: Option<f64>| ThroughputModelInput {
        arrivals,
        ..model(0.0, [(key(), variant([replica(0.4, ENGINE)]))])
    };
    for (arrivals, said) in
        [(None, "arrivals are not known"), (Some(0.0), "the router counts no arrivals")]
    {
        let mut story = Story::default();
        for cycle in 0..60 {
            let (_, report) = story.cycle(&fleet(arrivals));
            assert_eq!(report.note(), None, "{cycle}");
        }
        let (_, report) = story.cycle(&fleet(arrivals));
        let note = report.note().unwrap();
        assert!(note.contains("no demand for 30 min") && note.contains(said), "{note}");
        let (_, report) = story.cycle(&fleet(Some(3.0)));
        assert_eq!((report.undemanded_for, report.note()), (None, None));
        let (_, report) = story.cycle(&fleet(arrivals));
        assert_eq!(report.note(), None, "it starts anew");
    }
    let mut story = Story::default();
    let asleep = || model(0.0, [(key(), ThroughputVariantInput::default())]);
    let noted = (0..70).any(|_| story.cycle(&asleep()).1.note().is_some());
    assert!(!noted, "without replicas there is no supply");
}
