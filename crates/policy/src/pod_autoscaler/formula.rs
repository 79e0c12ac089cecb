//! The arithmetic of the strategies.

use super::amounts::{DemandRange, TargetValue, exceeds};
use super::tuning::Tuning;
use crate::rounding::{ceil, floor};
use crate::units::Replicas;

/// Mean demand over the two windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowMeans {
    /// Over the long one.
    pub stable: DemandRange,
    /// Over the short one.
    pub panic: DemandRange,
}

impl WindowMeans {
    /// Whether demand rises so fast that a burst is assumed.
    pub fn exceed(&self, tuning: &Tuning) -> bool {
        let limit = self.stable.low * tuning.panic_threshold.get();
        self.panic.low > 0.0 && exceeds(self.panic.low, limit)
    }
}

/// The count that a demand needs, and the present one within the tolerances.
pub fn wanted(
    demand: DemandRange,
    current: Replicas,
    target: TargetValue,
    tuning: &Tuning,
) -> Replicas {
    let carried = target.of(current);
    let upper = carried * (1.0 + tuning.scale_up_tolerance.get());
    let lower = carried * (1.0 - tuning.scale_down_tolerance.get());
    if exceeds(demand.low, upper) {
        target.replicas(demand.low)
    } else if exceeds(lower, demand.high) {
        target.replicas(demand.high)
    } else {
        current
    }
}

/// APA: growth by the short window, a release by the larger of both, so that a rising demand ends it.
pub fn apa(
    means: WindowMeans,
    current: Replicas,
    target: TargetValue,
    tuning: &Tuning,
) -> Replicas {
    let demand = DemandRange {
        low: means.panic.low,
        high: means.stable.high.max(means.panic.high),
    };
    wanted(demand, current, target, tuning)
}

/// KPA: the long window, and in panic the larger need of both.
pub fn kpa(
    means: WindowMeans,
    in_panic: bool,
    current: Replicas,
    target: TargetValue,
    tuning: &Tuning,
) -> Replicas {
    let stable = wanted(means.stable, current, target, tuning);
    if in_panic {
        stable.max(wanted(means.panic, current, target, tuning))
    } else {
        stable
    }
}

/// The nearest count that one step may lead to. From zero it leads to one.
pub fn limited(wanted: Replicas, current: Replicas, tuning: &Tuning) -> Replicas {
    let most = ceil(current.to_f64() * tuning.scale_up_rate.get()).max(1);
    let least = floor(current.to_f64() / tuning.scale_down_rate.get());
    wanted.min(Replicas(most)).max(Replicas(least))
}
