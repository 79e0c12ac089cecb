//! One round of learning, and the way out when nothing is accepted any more.
//!
//! A single outlier must not move the estimate, but observations that are refused round after round
//! mean that the estimate is wrong. Then its parameters are scaled until the time between tokens comes
//! out, and its uncertainty is widened until they are accepted.

use serde::{Deserialize, Serialize};

use super::{Covariance, Estimate, Filter, StepOutcome, TunerSettings, TuningStep};
use crate::queueing::bisection::bisect;
use crate::queueing::observation::ReplicaObservation;
use crate::queueing::quantity::RequestRate;
use crate::queueing::service::{ServiceParameters, Workload};

/// Rounds without anything accepted, of observations that could have been, after which the filter
/// doubts its estimate.
pub(crate) const PATIENCE: u32 = 3;

/// Factor by which each further round widens the variances.
const WIDENING: f64 = 4.0;

/// Widenings after which the estimate is given up for a new first guess, and widening starts anew.
const MAX_WIDENINGS: u32 = 10;

/// Range of factors in which parameters are searched, of the slowest that can keep up. The end
/// leaves room for the steps of the numerical derivative.
const SPEED_RANGE: (f64, f64) = (1e-3, 0.98);

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    pub estimate: Estimate,
    /// The mean request that was seen last.
    pub workload: Workload,
    /// Rounds since an observation was accepted.
    pub refused_rounds: u32,
    pub last: TuningStep,
}

/// Learns from the observations of one round, in their order. Starts from `previous`, else from a
/// guess, else from the defaults. `None` if no observation is usable and nothing was known before.
pub(crate) fn tune(
    previous: Option<&Tuned>,
    observations: &[ReplicaObservation],
    settings: &TunerSettings,
) -> Option<Tuned> {
    let usable = || observations.iter().filter(|one| one.is_usable());
    let Some(first) = usable().next() else {
        return previous.copied();
    };
    let known = previous.map_or_else(|| seed(first, settings), |tuned| tuned.estimate);
    let refused = previous.map_or(0, |tuned| tuned.refused_rounds);
    // A replica that is sent more than it can work on does not show that the estimate is wrong.
    let informative = usable().find(|one| !one.overflows());
    let start = match (refused.checked_sub(PATIENCE), informative) {
        (None, _) | (_, None) => known,
        (Some(doubts), Some(first)) => {
            let base = if doubts < MAX_WIDENINGS { known } else { seed(first, settings) };
            doubted(&base, first, doubts % MAX_WIDENINGS + 1, settings)
        }
    };
    let filter = Filter::new(settings, &start, first).ok()?;
    let mut estimate = start;
    let mut accepted = false;
    let mut last = None;
    for observation in usable() {
        let (next, step) = filter.step(&estimate, observation);
        estimate = next;
        accepted |= step.outcome == StepOutcome::Accepted;
        last = Some((step, observation.workload));
    }
    let (last, workload) = last?;
    Some(Tuned {
        estimate: if accepted { estimate } else { known },
        workload,
        refused_rounds: if accepted {
            0
        } else {
            refused.saturating_add(u32::from(informative.is_some()))
        },
        last,
    })
}

fn seed(observation: &ReplicaObservation, settings: &TunerSettings) -> Estimate {
    observation.guess().map_or_else(Estimate::default, |guess| Estimate::seeded(guess, settings))
}

/// The estimate as if it were a first guess, only less certain with every round.
fn doubted(
    known: &Estimate,
    observation: &ReplicaObservation,
    doubt: u32,
    settings: &TunerSettings,
) -> Estimate {
    let fresh = Estimate::seeded(fitted(known, observation), settings);
    let widening = WIDENING.powi(i32::try_from(doubt).unwrap_or(i32::MAX));
    let covariance = Covariance::of(fresh.covariance.matrix().scaled(widening));
    Estimate { covariance: covariance.limited(&fresh.bounds.max), ..fresh }
}

/// The same parameters, all faster or slower by one factor, so that they give the observed time between
/// tokens. From parameters that are far off, a single linear step ends in a corner of the bounds,
/// from which no widening leads back; and by some the replica could not do what it does, so that there
/// is no step at all.
fn fitted(known: &Estimate, observation: &ReplicaObservation) -> ServiceParameters {
    let (low, high) = SPEED_RANGE;
    let factor = observation.model(&known.parameters).and_then(|model| {
        let RequestRate(max) = model.range().max;
        let slowest = max / observation.rate.0;
        let step = |factor: f64| {
            let expected = observation.expected(&known.parameters.scaled(factor));
            expected.map(|[_, step]| step).ok_or(Infeasible)
        };
        let wanted = observation.inter_token_latency.0;
        bisect(slowest * low, slowest * high, wanted, step).ok()
    });
    factor.map_or(known.parameters, |found| known.parameters.scaled(found.argument))
}

/// The replica cannot keep up.
#[derive(Debug)]
struct Infeasible;
