//! A model whose first replica serves after a queue has grown: what is seen then is little, and no proof of a need.

use std::time::Duration;

use super::at;
use super::parts::{QUIET, after, close, completing};
use crate::capacity::ServingRole;
use crate::key::{ModelKey, VariantKey};
use crate::signal::SignalName;
use crate::slo::demand::{DemandObservation, DemandTrack};
use crate::slo::memory::NeedMemory;
use crate::slo::{LearnedSlo, SloGoal, assess};
use crate::units::Replicas;

#[test]
fn what_does_not_stay_in_the_queue_was_placed() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let full = |queue, second, before: &DemandTrack| {
        let observation = DemandObservation { placed: Some(0.5), queue: Some(queue), ..QUIET };
        after(before, observation, second)
    };
    // All but one in thirty of the requests that arrive stay there.
    let held = full(217.5, 15, &first);
    close(held.generated(), 4_500.0 * 30.0);
    // The counters of a replica that has just started lack the requests of before their first scrape.
    let placed = full(225.0, 30, &held);
    close(placed.queue_growth, 0.5);
    let again = full(225.0, 45, &first);
    close(again.generated(), 4_500.0 * 15.0 / 10.0);
}

/// The requests of a moment and the rate of a minute are a latency only where both are of the same load.
#[test]
fn a_derived_latency_teaches_nothing_while_load_changes() {
    let key = ModelKey::new("ns", "m");
    let look = |learned: &LearnedSlo,
                second: u64,
                running: f64,
                (derived, sent): (&[SignalName], Option<f64>)| {
        let mut input = completing([Some(5.0), Some(5.0)]);
        input.derived = derived.to_vec();
        for replica in (input.variants.values_mut()).flat_map(|one| one.replicas.values_mut()) {
            replica.running = Some(running);
            replica.waiting = Some(0.0);
            replica.arrivals = sent;
            replica.inter_token_latency = Some(running / replica.decode_rate.unwrap());
        }
        learned.learn(&[(key.clone(), (input, SloGoal::default()))].into(), at(second))
    };
    let taught = |derived: &[SignalName], sent: Option<f64>| {
        let mut learned = LearnedSlo::default();
        let mut looks = Vec::new();
        for second in (0..=360).step_by(15) {
            let running = if second < 180 { 20.0 } else { 60.0 };
            let next = look(&learned, second, running, (derived, sent));
            let curve = |all: &LearnedSlo| {
                let engines = all.get(&key).map(|model| model.engines.clone());
                engines.map(|engines| {
                    engines.into_values().map(|engine| engine.curve).collect::<Vec<_>>()
                })
            };
            let is_new = curve(&next)
                .is_some_and(|curves| curves.iter().any(|curve| !curve.is_empty()))
                && curve(&next) != curve(&learned);
            looks.push((second, is_new));
            learned = next;
        }
        looks
            .into_iter()
            .filter(|(_, is_new)| *is_new)
            .map(|(second, _)| second)
            .collect::<Vec<_>>()
    };
    let all: Vec<u64> = (0..=360).step_by(15).collect();
    assert_eq!(taught(&[], None), all);
    let steady = |second: &u64| (90..180).contains(second) || *second >= 270;
    let expected: Vec<u64> = all.iter().copied().filter(steady).collect();
    let derived = [SignalName::InterTokenLatency];
    assert_eq!(taught(&derived, None), expected);
    assert_eq!(taught(&[SignalName::GenerationRate], None), expected);
    // It completes 5 requests a second: with 16 more in a minute than it runs, it had fewer before.
    assert_eq!(taught(&derived, Some(5.26)), all);
    let few: Vec<u64> = all.into_iter().filter(|second| steady(second) || *second >= 180).collect();
    assert_eq!(taught(&derived, Some(5.28)), few);
}

/// A minute in which replicas land has seen two loads of each of them.
#[test]
fn nothing_is_learned_while_load_moves_to_replicas_that_have_just_landed() {
    let key = ModelKey::new("ns", "m");
    let curve = |all: &LearnedSlo| {
        let engines = all.get(&key)?.engines.values();
        Some(engines.map(|one| one.curve.clone()).collect::<Vec<_>>())
    };
    // Looks that teach, where so many replicas are ready before half a minute has passed, and then.
    let taught = |before: u32, then: u32, sent: Option<f64>| {
        let mut learned = LearnedSlo::default();
        let mut looks = Vec::new();
        for second in (0..=150_u64).step_by(15) {
            let mut input = completing([Some(5.0), Some(5.0)]);
            for variant in input.variants.values_mut() {
                variant.ready = Replicas(if second < 30 { before } else { then });
                for replica in variant.replicas.values_mut() {
                    (replica.running, replica.arrivals) = (Some(15.0), sent);
                }
            }
            let models = [(key.clone(), (input, SloGoal::default()))].into();
            let next = learned.learn(&models, at(second));
            if curve(&next) != curve(&learned) {
                looks.push(second);
            }
            learned = next;
        }
        looks
    };
    let all: Vec<u64> = (0..=150).step_by(15).collect();
    assert_eq!(taught(2, 2, None), all);
    assert_eq!(taught(3, 2, None), all);
    assert_eq!(taught(2, 3, None), [0, 15, 120, 135, 150]);
    // The first ones take no load over.
    assert_eq!(taught(0, 3, None), all);
    // A replica that completes what it is sent has one load: 13 more in a minute may be chance.
    assert_eq!(taught(2, 3, Some(5.22)), all);
    assert_eq!(taught(2, 3, Some(5.23)), [0, 15, 120, 135, 150]);
}

/// Of the requests that a replica has begun only short ones have ended.
#[test]
fn short_answers_that_ended_first_double_prompts_at_most() {
    let key = ModelKey::new("ns", "m");
    let figures = |answer| {
        let mut input = completing([Some(5.0), Some(5.0)]);
        for replica in input.variants.values_mut().flat_map(|one| one.replicas.values_mut()) {
            replica.output_tokens = Some(answer);
            replica.input_tokens = Some(1_200.0);
        }
        let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
        let learned = LearnedSlo::default().learn(&models, at(0));
        let (_, report) = assess(&key, &input, SloGoal::default(), &learned, at(0));
        let most = learned.get(&key).unwrap().engines[&VariantKey::new("ns", "v")].curve.clone();
        (report.roles[&ServingRole::Both].arriving, most)
    };
    let (true_need, true_curve) = figures(300.0);
    let (need, curve) = figures(3.0);
    close(true_need, 3_000.0 + 10.0 * 300.0);
    close(need, 3_000.0 + 2.0 * 10.0 * 300.0);
    assert_eq!(curve, true_curve);
}

#[test]
fn replicas_that_were_found_are_kept_and_no_others() {
    let ten = Duration::from_mins(10);
    let memory = NeedMemory::new(at(0), ten, Replicas(2));
    // Five minutes are the window of the mean request.
    close(memory.unexplained(Replicas(16), at(299)), 1.0);
    close(memory.unexplained(Replicas(0), at(300)), 1.0);
    close(memory.unexplained(Replicas(2), at(300)), 1.0);
    close(memory.unexplained(Replicas(16), at(300)), 0.125);
    close(memory.unexplained(Replicas(16), at(600)), 0.0);
}

/// A fleet that the analyzer found keeps its replicas for the horizon; what it ordered itself goes with its cause.
#[test]
fn only_what_was_found_is_held_for_an_unknown_need() {
    let key = ModelKey::new("ns", "m");
    let variant = VariantKey::new("ns", "v");
    let mut learned = LearnedSlo::default();
    let mut demand = |second, ready| {
        let mut input = completing([Some(5.0), Some(5.0)]);
        let given = input.variants.get_mut(&variant).unwrap();
        given.ready = Replicas(ready);
        // Work varies enough for the latency law to be known.
        let busy = given.replicas.values_mut().next().unwrap();
        (busy.decode_rate, busy.inter_token_latency) = (Some(4_000.0), Some(0.0125));
        let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
        learned = learned.learn(&models, at(second));
        let (_, report) = assess(&key, &input, SloGoal::default(), &learned, at(second));
        let one = report.variants[&variant].per_second;
        let role = report.roles[&ServingRole::Both];
        let band = input.params.band;
        let aim = f64::midpoint(band.scale_up, band.scale_down);
        (role.stated / one / aim, role.hold)
    };
    // Nothing below the twelve that were found, of which the arrivals need fewer.
    let (found, hold) = demand(0, 12);
    assert!(hold.is_some() && found > 12.0, "{found}");
    let (grown, hold) = demand(300, 48);
    assert!(hold.is_some() && (11.0..12.0).contains(&grown), "{grown}");
    let (later, hold) = demand(300 + 30 * 60, 48);
    assert!(hold.is_none() && later < 11.0, "{later}");
}
