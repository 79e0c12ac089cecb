//! Bursts: seen by the last count, not taken for demand while a queue drains, and no proof that an engine is full.

use std::time::Duration;

use super::at;
use super::parts::{QUIET, after, close, completing};
use crate::by_name::ByName;
use crate::capacity::ServingRole;
use crate::key::{ModelKey, VariantKey};
use crate::params::BurstReserve;
use crate::slo::demand::{DemandObservation, DemandTrack, ReplicaQueues};
use crate::slo::memory::NeedMemory;
use crate::slo::release::ReleaseHold;
use crate::slo::reserve::HeldReserve;
use crate::slo::{LearnedSlo, SloGoal, assess};
use crate::units::Replicas;

#[test]
fn a_jump_is_what_arrived_since_the_last_count() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let arriving = |arrivals| DemandObservation { arrivals: Some(arrivals), ..QUIET };
    // A quarter of the minute is new. Chance: four deviations of the difference of two counts.
    close(after(&first, arriving(16.5), 15).jump, 0.0);
    let jumped = after(&first, arriving(21.0), 15);
    close(jumped.jump, 15.0 + 4.0 * 6.0);
    // The same count once more is no jump of its own, the next one is.
    let same = DemandObservation { queue_age: Duration::from_secs(15), ..arriving(21.0) };
    close(after(&jumped, same, 30).jump, 39.0);
    close(after(&jumped, arriving(21.0), 30).jump, 0.0);
    // Rates of engines are not of one count.
    let unseen = DemandObservation { queue: None, ..arriving(40.0) };
    close(after(&jumped, unseen, 30).jump, 0.0);
}

#[test]
fn a_count_between_two_readings_of_the_rate_is_no_jump_of_its_own() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let counted = |age| DemandObservation {
        arrivals: Some(21.0),
        queue_age: Duration::from_secs(age),
        ..QUIET
    };
    close(after(&first, counted(0), 15).jump, 39.0);
    // The queue was counted four seconds after the count before, the rate has changed within fifteen.
    close(after(&first, counted(11), 15).jump, 39.0);
}

#[test]
fn longer_answers_are_a_surge_before_one_of_them_ends() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let surge = |generated| {
        let longer = DemandObservation {
            completions: Some(4.0),
            generated,
            in_flight: Some(210.0),
            ..QUIET
        };
        after(&first, longer, 15).surge
    };
    // Four a second are complete and ten more in flight, which is no more than arrive.
    close(surge(None), 0.0);
    close(surge(Some(4_500.0)), 15.0 + 10.0);
}

#[test]
fn a_count_since_the_last_look_raises_the_rate() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let rate = |queue, age, second| {
        let counted = first.with_count(queue, Duration::from_secs(age), at(second));
        counted.rate()
    };
    close(rate(None, 0, 5), 15.0);
    close(rate(Some(0.0), 0, 5), 15.0);
    // As if it had grown for fifteen seconds.
    close(rate(Some(300.0), 0, 5), 15.0 + 20.0);
    close(rate(Some(300.0), 0, 30), 15.0 + 10.0);
    // The count of that look.
    close(rate(Some(300.0), 5, 5), 15.0);
}

#[test]
fn a_queue_keeps_growing_by_the_less_of_two_looks() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let counted = |before: &DemandTrack, queue, second| {
        let observation = DemandObservation { queue, ..QUIET };
        after(before, observation, second)
    };
    let once = counted(&first, Some(150.0), 15);
    close(once.queue_keeps_growing, 0.0);
    let twice = counted(&once, Some(210.0), 30);
    close(twice.queue_keeps_growing, 4.0);
    close(counted(&twice, Some(200.0), 45).queue_keeps_growing, 0.0);
    close(counted(&twice, None, 45).queue_keeps_growing, 0.0);
}

#[test]
fn tokens_that_were_generated_before_the_model_went_to_zero_are_no_demand() {
    let key = ModelKey::new("ns", "m");
    let mut learned = LearnedSlo::default();
    let mut generated = |second, ready| {
        let mut input = completing([Some(5.0), Some(5.0)]);
        input.arrivals = Some(if ready > 0 { 10.0 } else { 0.0 });
        for variant in input.variants.values_mut() {
            variant.ready = Replicas(ready);
            if ready == 0 {
                variant.replicas = ByName::default();
            }
        }
        let models = [(key.clone(), (input, SloGoal::default()))].into();
        learned = learned.learn(&models, at(second));
        learned.get(&key).unwrap().demand.unwrap().generated
    };
    assert!(generated(0, 2).is_some());
    assert_eq!(generated(15, 0), None);
    assert!(generated(30, 2).is_some());
}

#[test]
fn queues_of_replicas_that_drain_are_no_demand() {
    let queues = |requests, replicas| Some(ReplicaQueues { requests, replicas });
    let drains = |before, waiting, queue_growth: f64| {
        let full = DemandObservation { waiting: before, ..QUIET };
        let observation = DemandObservation { waiting, queue: Some(queue_growth * 15.0), ..QUIET };
        let first = DemandTrack::after(None, full, at(0)).unwrap();
        after(&first, observation, 15).is_draining(at(15))
    };
    let before = queues(60.0, 2);
    // 1.6 a second of fifteen that arrive are more than a tenth, and more than chance where few wait then.
    assert!(!drains(before, queues(36.0, 2), 0.0));
    assert!(drains(before, queues(10.0, 2), 0.0));
    assert!(drains(before, queues(10.0, 3), 0.0));
    // What the router holds instead is not served.
    assert!(!drains(before, queues(10.0, 2), 3.0));
    // Nor is what waited in a replica that does not say so any more, or is not seen.
    assert!(!drains(before, queues(10.0, 1), 0.0));
    assert!(!drains(before, None, 0.0));
    assert!(!drains(None, queues(10.0, 2), 0.0));
}

/// What comes into replicas then may have waited in the router, and is no surge.
#[test]
fn requests_that_replicas_take_out_of_an_unseen_queue_are_no_demand() {
    // A queue of so many, which is not seen from then on, and a rise in replicas after so many seconds.
    let risen = |queue: f64, second: u64| {
        let counted = DemandObservation { queue: Some(queue), ..QUIET };
        let unseen = DemandObservation { queue: None, ..QUIET };
        let first = DemandTrack::after(None, counted, at(0)).unwrap();
        let before = after(&first, unseen, second - 15);
        assert!(!before.is_draining(at(second - 15)));
        let taken =
            DemandObservation { in_flight: Some(360.0), generated: Some(9_000.0), ..unseen };
        let risen = after(&before, taken, second);
        (risen.surge, risen.generated(), risen.is_draining(at(second)))
    };
    // None waited when it was counted, or it was counted long ago.
    assert_eq!(risen(0.0, 150), (50.0, 9_000.0, false));
    assert_eq!(risen(300.0, 600), (50.0, 9_000.0, false));
    assert_eq!(risen(300.0, 599), (0.0, 4_500.0, true));
    assert_eq!(risen(1.0, 150), (50.0, 9_000.0, false));
}

/// The time to the first token of replicas that generate is not that of a prompt.
#[test]
fn prompts_are_timed_where_they_are_read_apart() {
    let key = ModelKey::new("ns", "m");
    let seconds = |role, looks: &[Option<f64>]| {
        let mut learned = LearnedSlo::default();
        for (look, first_token) in (0_u64..).zip(looks) {
            let mut input = completing([Some(5.0), Some(5.0)]);
            for variant in input.variants.values_mut() {
                variant.role = role;
                for replica in variant.replicas.values_mut() {
                    replica.time_to_first_token = *first_token;
                }
            }
            let models = [(key.clone(), (input, SloGoal::default()))].into();
            learned = learned.learn(&models, at(15 * look));
        }
        let mut engines = learned.get(&key).unwrap().engines.values();
        engines.next().unwrap().prompt_seconds
    };
    assert_eq!(seconds(ServingRole::Both, &[Some(0.3)]), None);
    assert_eq!(seconds(ServingRole::Decode, &[Some(0.3)]), None);
    let first = seconds(ServingRole::Prefill, &[Some(0.3)]).unwrap();
    let slower = seconds(ServingRole::Prefill, &[Some(0.3), Some(0.6)]).unwrap();
    close(slower, first * 1.002);
    // A look that shows none changes nothing.
    let unseen = seconds(ServingRole::Prefill, &[Some(0.3), None, None]).unwrap();
    close(unseen, first);
}

#[test]
fn the_queues_of_some_replicas_are_not_those_of_all() {
    let key = ModelKey::new("ns", "m");
    let seen = |waiting: [Option<f64>; 2]| {
        let mut input = completing([Some(5.0), Some(5.0)]);
        let replicas = input.variants.values_mut();
        let replicas = replicas.flat_map(|one| one.replicas.values_mut());
        for (replica, waiting) in replicas.zip(waiting) {
            replica.waiting = waiting;
        }
        let models = [(key.clone(), (input, SloGoal::default()))].into();
        let learned = LearnedSlo::default().learn(&models, at(0));
        let queues = learned.get(&key).unwrap().demand.unwrap().waiting;
        queues.map(|queues| (queues.requests, queues.replicas))
    };
    assert_eq!(seen([Some(100.0), None]), None);
    assert_eq!(seen([Some(100.0), Some(0.0)]), Some((100.0, 2)));
}

#[test]
fn a_queue_that_drains_is_no_demand() {
    let key = ModelKey::new("ns", "m");
    let mut learned = LearnedSlo::default();
    let mut figures = |second, queue| {
        let mut input = completing([Some(5.0), Some(5.0)]);
        input.arrivals = Some(10.0);
        input.router_queue = Some(queue);
        for variant in input.variants.values_mut() {
            for replica in variant.replicas.values_mut() {
                replica.arrivals = Some(5.0);
                replica.decode_rate = Some(if second == 0 { 1_500.0 } else { 4_500.0 });
            }
        }
        let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
        learned = learned.learn(&models, at(second));
        let (_, report) = assess(&key, &input, SloGoal::default(), &learned, at(second));
        report.roles[&ServingRole::Both]
    };
    assert!(figures(0, 300.0).generated > 0.0);
    // Twenty requests in a second leave the queue: the engines are full of them, not of what arrives.
    for second in [15, 60, 77] {
        let drained = figures(second, 0.0);
        close(drained.generated, 0.0);
        close(drained.need, drained.arriving);
    }
    // Those of three seconds that were let in last are answered after the window of the rates.
    assert!(figures(79, 0.0).generated > 0.0);
}

#[test]
fn requests_that_wait_in_an_engine_with_room_do_not_show_that_it_is_full() {
    let key = ModelKey::new("ns", "m");
    let full = |usage: Option<f64>, most: Option<f64>| {
        let mut input = completing([Some(5.0), Some(5.0)]);
        for variant in input.variants.values_mut() {
            variant.max_sequences = most;
            for replica in variant.replicas.values_mut() {
                replica.usage = usage;
                replica.waiting = Some(8.0);
            }
        }
        let models = [(key.clone(), (input, SloGoal::default()))].into();
        let learned = LearnedSlo::default().learn(&models, at(0));
        let engines = &learned.get(&key).unwrap().engines;
        engines[&VariantKey::new("ns", "v")].curve.full()
    };
    assert_eq!(full(Some(0.3), Some(256.0)), None);
    assert!(full(Some(0.9), Some(256.0)).is_some());
    // Where it is not known how much fits, the queue is the proof that there is.
    assert!(full(None, Some(256.0)).is_some());
    assert!(full(Some(0.3), None).is_some());
}

#[test]
fn a_burst_is_held_for_as_long_as_its_replicas_are_worth() {
    let ten = Duration::from_mins(10);
    let start = Duration::from_secs(150);
    let mut memory = NeedMemory::new(at(0), ten, Replicas(2));
    let held = |memory: &NeedMemory, chosen, second| {
        HeldReserve::of(Some(memory), chosen, start, at(second))
    };
    memory.observe(10.0, 0.0, ten, at(0));
    close(held(&memory, BurstReserve::Strict, 0).burst, 0.0);
    memory.observe(10.0, 90.0, ten, at(30));
    memory.observe(10.0, 0.0, ten, at(60));
    close(held(&memory, BurstReserve::Economical, 630).burst, 90.0);
    close(held(&memory, BurstReserve::Economical, 631).burst, 0.0);
    close(held(&memory, BurstReserve::Strict, 3_630).burst, 90.0);
    close(held(&memory, BurstReserve::Strict, 3_631).burst, 0.0);
    let economical = held(&memory, BurstReserve::Economical, 60);
    close(economical.share, 0.2);
    close(economical.with(10.0), 90.0);
    close(economical.with(100.0), 120.0);
    let none = held(&memory, BurstReserve::None, 60);
    close(none.with(10.0), 10.0);
}

#[test]
fn what_follows_a_queue_is_served_before_replicas_go() {
    let key = ModelKey::new("ns", "m");
    let figures = |running: f64, latency: f64| {
        let mut learned = LearnedSlo::default();
        let mut input = completing([Some(5.0), Some(5.0)]);
        let mut report = None;
        for variant in input.variants.values_mut() {
            variant.max_sequences = Some(40.0);
        }
        for minute in 0..36 {
            let variants = input.variants.values_mut();
            for replica in variants.flat_map(|one| one.replicas.values_mut()) {
                // 15 sequences are learned from, and no others: the rates are not theirs.
                let is_first = minute == 0;
                replica.running = Some(if is_first { 15.0 } else { running });
                replica.inter_token_latency = Some(if is_first { 0.01 } else { latency });
            }
            let now = at(60 * minute);
            let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
            learned = learned.learn(&models, now);
            report = Some(assess(&key, &input, SloGoal::default(), &learned, now).1);
        }
        let report = report.unwrap();
        let size = report.variants[&VariantKey::new("ns", "v")];
        close(size.concurrency, 40.0);
        let all = 2.0 * size.per_second * input.params.band.scale_up;
        let role = report.roles[&ServingRole::Both];
        (role.hold, role.stated, all)
    };
    for (running, latency) in [(30.0, 0.01), (40.1, 0.01), (30.0, 0.049)] {
        let (hold, stated, _) = figures(running, latency);
        assert_eq!(hold, None, "{running} {latency}");
        close(stated, 3_750.0);
    }
    let (hold, stated, all) = figures(30.0, 0.051);
    assert_eq!(hold, Some(ReleaseHold::OverObjective));
    close(stated / all, 1.0);
}
