//! The arithmetic of the strategies.

use super::amounts::{DemandRange, TargetValue, exceeds};
use super::tuning::Tuning;
use crate::rounding::{ceil, floor};
use crate::units::Replicas;

/// Demand now, and its means over the two windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WindowMeans {
    pub now: DemandRange,
    /// Over the long one.
    pub stable: DemandRange,
    /// Over the short one.
    pub panic: DemandRange,
}

impl WindowMeans {
    /// Whether demand rises so fast that a burst is assumed. What the current replicas carry is none, however
    /// low demand was before.
    pub(crate) fn exceed(&self, current: Replicas, target: TargetValue, tuning: &Tuning) -> bool {
        let limit = self.stable.low * tuning.panic_threshold.get();
        let carried = target.of(current) * (1.0 + tuning.scale_up_tolerance.get());
        self.panic.low > 0.0 && exceeds(self.panic.low, limit.max(carried))
    }

    /// For growth the short window, for a release the larger of both, so that a rising demand ends it.
    pub(super) fn of_both(self) -> DemandRange {
        DemandRange { low: self.panic.low, high: self.stable.high.max(self.panic.high) }
    }

    /// A mean that a count may rest on: a release leaves room for what is seen now.
    fn with_room(&self, mean: DemandRange) -> DemandRange {
        DemandRange { high: mean.high.max(self.now.high), ..mean }
    }
}

/// The count that a demand needs, and the present one within the tolerances of what so many replicas as `band` are to
/// carry.
pub(crate) fn wanted(
    demand: DemandRange,
    current: Replicas,
    band: Replicas,
    target: TargetValue,
    tuning: &Tuning,
) -> Replicas {
    let (lower, upper) = tolerances(band, target, tuning);
    if exceeds(demand.low, upper) {
        // The band of a total is one target, so that growth by it may be a release, which the high end limits.
        let room = target.replicas(demand.high).min(current);
        target.replicas(demand.low).max(room)
    } else if exceeds(lower, demand.high) {
        target.replicas(demand.high)
    } else {
        current
    }
}

/// Whether a mean alone would lower the count, and room for what is seen now keeps it.
pub(super) fn is_kept_by_now(
    means: WindowMeans,
    mean: DemandRange,
    current: Replicas,
    band: Replicas,
    target: TargetValue,
    tuning: &Tuning,
) -> bool {
    let is_kept = |demand| wanted(demand, current, band, target, tuning) == current;
    !is_kept(mean) && is_kept(means.with_room(mean))
}

fn tolerances(band: Replicas, target: TargetValue, tuning: &Tuning) -> (f64, f64) {
    let carried = target.of(band);
    let upper = carried * (1.0 + tuning.scale_up_tolerance.get());
    (carried * (1.0 - tuning.scale_down_tolerance.get()), upper)
}

/// Whether a demand lies within the tolerances of what so many replicas as `band` are to carry.
pub(super) fn is_tolerated(
    demand: f64,
    band: Replicas,
    target: TargetValue,
    tuning: &Tuning,
) -> bool {
    let (lower, upper) = tolerances(band, target, tuning);
    !exceeds(demand, upper) && !exceeds(lower, demand)
}

/// APA: by both windows.
pub(crate) fn apa(
    means: WindowMeans,
    current: Replicas,
    target: TargetValue,
    tuning: &Tuning,
) -> Replicas {
    let demand = means.with_room(means.of_both());
    wanted(demand, current, current, target, tuning)
}

/// KPA: the long window, and in panic the larger need of both. `band` is that of [`wanted`].
pub(crate) fn kpa(
    means: WindowMeans,
    in_panic: bool,
    current: Replicas,
    band: Replicas,
    target: TargetValue,
    tuning: &Tuning,
) -> Replicas {
    let need = |mean| wanted(means.with_room(mean), current, band, target, tuning);
    let stable = need(means.stable);
    if in_panic { stable.max(need(means.panic)) } else { stable }
}

/// The nearest count that one step may lead to. From zero it leads to one.
pub(crate) fn limited(wanted: Replicas, current: Replicas, tuning: &Tuning) -> Replicas {
    let most = ceil(current.to_f64() * tuning.scale_up_rate.get()).max(1);
    let least = floor(current.to_f64() / tuning.scale_down_rate.get());
    wanted.min(Replicas(most)).max(Replicas(least))
}
