//! The filter over many rounds: it follows, ignores outliers, and finds its way back.

use proptest::prelude::*;

use super::answers::parameters;
use crate::queueing::observation::ReplicaObservation;
use crate::queueing::quantity::{Millis, RequestRate};
use crate::queueing::service::{ServiceParameters, Workload};
use crate::queueing::tuner::{
    Covariance, Estimate, PATIENCE, StepOutcome, Tuned, TunerSettings, tune,
};

/// What a replica with these parameters shows at a rate.
fn shown(truth: &ServiceParameters, rate: f64) -> ReplicaObservation {
    let mut observation = ReplicaObservation {
        rate: RequestRate(rate),
        workload: Workload { input_tokens: 512.0, output_tokens: 128.0 },
        batch: 64,
        time_to_first_token: Millis(1.0),
        inter_token_latency: Millis(1.0),
    };
    let [first, step] = observation.expected(truth).unwrap();
    observation.time_to_first_token = Millis(first);
    observation.inter_token_latency = Millis(step);
    observation
}

fn believing(believed: ServiceParameters, observation: &ReplicaObservation) -> Tuned {
    let settings = TunerSettings::default();
    let mut tuned = tune(None, &[*observation], &settings).unwrap();
    tuned.estimate = Estimate::seeded(believed, &settings);
    tuned.refused_rounds = 0;
    tuned
}

fn round(tuned: &Tuned, observation: ReplicaObservation) -> Tuned {
    tune(Some(tuned), &[observation], &TunerSettings::default()).unwrap()
}

/// Largest relative difference between what is expected and what is shown.
fn error(tuned: &Tuned, observation: &ReplicaObservation) -> f64 {
    let Some([first, step]) = observation.expected(&tuned.estimate.parameters) else {
        return f64::INFINITY;
    };
    let off = |expected: f64, shown: Millis| (expected / shown.0 - 1.0).abs();
    off(first, observation.time_to_first_token).max(off(step, observation.inter_token_latency))
}

const TRUTH: [f64; 3] = [5.0, 0.05, 0.000_05];

#[test]
fn one_outlier_changes_nothing() {
    let usual = shown(&parameters(TRUTH), 4.0);
    let before = round(&believing(parameters(TRUTH), &usual), usual);
    assert_eq!(before.last.outcome, StepOutcome::Accepted);
    let outlier = ReplicaObservation { time_to_first_token: Millis(900.0), ..usual };
    let after = round(&before, outlier);
    assert_eq!(after.last.outcome, StepOutcome::Outlier);
    assert_eq!((after.estimate, after.refused_rounds), (before.estimate, 1));
    assert_eq!(round(&after, usual).refused_rounds, 0);
}

/// A load that no batch holds says nothing of how fast the replica is, however long it lasts.
#[test]
fn an_overload_is_no_update() {
    let usual = shown(&parameters(TRUTH), 18.0);
    let before = round(&believing(parameters(TRUTH), &usual), usual);
    assert_eq!(before.last.outcome, StepOutcome::Accepted);
    let overload = |step: f64| ReplicaObservation {
        rate: RequestRate(40.0),
        time_to_first_token: Millis(25_000.0),
        inter_token_latency: Millis(step),
        ..usual
    };
    let mut tuned = before;
    for _ in 0..10 {
        // 40 requests a second times 128 tokens of 14 ms are 71.7 at once, and a batch has 64.
        tuned = round(&tuned, overload(14.0));
        assert_eq!(tuned.last.outcome, StepOutcome::Infeasible);
        assert_eq!((tuned.estimate, tuned.refused_rounds), (before.estimate, 0));
    }
    // Of 12 ms they fit: then the estimate may be wrong.
    assert_eq!(round(&tuned, overload(12.0)).refused_rounds, 1);
}

#[test]
fn what_is_refused_again_and_again_is_believed_in_the_end() {
    let slower = shown(&parameters([14.0, 0.15, 0.000_2]), 4.0);
    let mut tuned = believing(parameters(TRUTH), &slower);
    let start = tuned.estimate;
    for refused in 1..=PATIENCE {
        tuned = round(&tuned, slower);
        assert_eq!((tuned.estimate, tuned.refused_rounds), (start, refused));
    }
    assert!(error(&tuned, &slower) > 0.5);
    for _ in 0..20 {
        tuned = round(&tuned, slower);
    }
    assert_eq!(tuned.refused_rounds, 0);
    assert!(error(&tuned, &slower) < 0.05, "{}", error(&tuned, &slower));
}

#[test]
fn a_replica_that_does_what_its_parameters_forbid_is_learned() {
    let busy = shown(&parameters(TRUTH), 18.0);
    let mut tuned = believing(parameters([15.0, 0.15, 0.000_15]), &busy);
    tuned = round(&tuned, busy);
    assert_eq!(tuned.last.outcome, StepOutcome::Infeasible);
    assert_eq!(tuned.last.nis, None);
    for _ in 0..20 {
        tuned = round(&tuned, busy);
    }
    assert!(error(&tuned, &busy) < 0.05, "{}", error(&tuned, &busy));
}

#[test]
fn learned_state_survives_being_stored() {
    let usual = shown(&parameters(TRUTH), 4.0);
    let tuned = round(&believing(parameters(TRUTH), &usual), usual);
    let stored = serde_json::to_string(&tuned).unwrap();
    assert_eq!(serde_json::from_str::<Tuned>(&stored).unwrap(), tuned);
}

/// The largest numbers survive being read: a mean of two must not pass through their sum.
#[test]
fn the_largest_covariance_is_read_as_it_stands() {
    let largest = f64::MAX;
    let cells = [largest, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let covariance = Covariance::try_from(cells.to_vec()).unwrap();
    assert_eq!(Vec::from(covariance), cells);
}

/// Believes in parameters that are off by these factors, and sees this share of the highest rate for
/// sixty rounds. Returns how far off it is then.
fn error_after_sixty_rounds(factors: [f64; 3], load: f64) -> f64 {
    let truth = parameters(TRUTH);
    let max = shown(&truth, 1.0).model(&truth).unwrap().range().max;
    let usual = shown(&truth, load * max.0);
    let believed = ServiceParameters {
        alpha: truth.alpha * factors[0],
        beta: truth.beta * factors[1],
        gamma: truth.gamma * factors[2],
    };
    let mut tuned = believing(believed, &usual);
    for _ in 0..60 {
        tuned = round(&tuned, usual);
    }
    error(&tuned, &usual)
}

/// From each of these a single step overshoots into a corner of the bounds.
#[test]
fn an_estimate_that_is_far_off_does_not_end_in_a_corner() {
    for (factors, load) in [
        ([0.2, 4.983_005_646_817_611, 3.471_286_728_459_765], 0.242_045_331_403_530_3),
        ([1.87, 3.15, 4.72], 0.321),
        ([1.938_751, 3.149_809, 3.510_515], 0.332_426),
        ([1.840_445, 4.037_479, 4.769_843], 0.267_845),
    ] {
        let off = error_after_sixty_rounds(factors, load);
        assert!(off < 0.001, "{factors:?} at {load}: {off}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever it believed at first. Closer to saturation, where latencies change steeply with the
    /// parameters, it takes longer.
    #[test]
    fn the_filter_finds_back(
        factors in prop::array::uniform3(0.2_f64..5.0), load in 0.05_f64..0.6,
    ) {
        let off = error_after_sixty_rounds(factors, load);
        prop_assert!(off < 0.1, "{}", off);
    }
}
