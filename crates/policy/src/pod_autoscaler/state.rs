//! What one autoscaler remembers between decisions. It begins empty after a restart, and an empty memory
//! lowers nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::amounts::DemandRange;
use super::check::WindowLengths;
use super::condition::ASLEEP;
use super::demand::DemandEvidence;
use super::forecast::line_at;
use super::status::PodAutoscalerStatus;
use crate::units::Replicas;
use wva_base::moment::Moment;

/// No window of any length has a longer gap: the age up to which a sample is fresh.
const LONGEST_GAP: Duration = Duration::from_mins(1);

/// A shorter window has no gap of this length: ticks are ten seconds apart.
const SHORTEST_GAP: Duration = Duration::from_secs(20);

/// No sum of the largest amounts of all pods is more, and that of a window is a number.
const MOST_DEMAND: f64 = 1e200;

/// Demands of one source, one a second: the last of each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DemandWindow {
    /// Since when there is no gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Moment>,
    /// Since when one replica carries the mean, where more exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spare_since: Option<Moment>,
    /// By the second of the monotonic clock.
    slots: BTreeMap<u64, DemandRange>,
    /// The seconds of those that lack some of the load.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    partial: BTreeSet<u64>,
}

impl DemandWindow {
    /// The second of a demand that none wrote, and what is wrong with it.
    pub(crate) fn fault(&self, now: Moment) -> Option<(u64, &'static str)> {
        self.slots.iter().find_map(|(slot, demand)| {
            let why = if *slot > now.monotonic.as_secs() {
                "is after now"
            } else if demand.high > MOST_DEMAND || !(0.0..=demand.high).contains(&demand.low) {
                "is no demand: low is 0 or more, and high no less"
            } else {
                return None;
            };
            Some((*slot, why))
        })
    }

    /// Adds a demand and drops what is older than `length`; the slot exactly at the edge stays.
    pub fn push(
        &mut self,
        now: Moment,
        demand: DemandRange,
        evidence: DemandEvidence,
        length: Duration,
    ) {
        let last = self.slots.keys().next_back();
        let gap = last.map(|last| now.monotonic.saturating_sub(Duration::from_secs(*last)));
        if gap.is_none_or(|gap| gap > length.clamp(SHORTEST_GAP, LONGEST_GAP)) {
            self.since = Some(now);
        }
        let oldest = oldest(now, length);
        self.slots.retain(|slot, _| *slot >= oldest);
        self.partial.retain(|slot| *slot >= oldest);
        let slot = now.monotonic.as_secs();
        self.slots.insert(slot, demand);
        match evidence {
            DemandEvidence::Whole => self.partial.remove(&slot),
            DemandEvidence::Partial => self.partial.insert(slot),
        };
    }

    /// The mean of the slots within `length`; `None` if there is none.
    pub fn mean(&self, now: Moment, length: Duration) -> Option<DemandRange> {
        let mut sum = DemandRange::default();
        let mut count = 0_u32;
        for demand in self.slots.range(oldest(now, length)..).map(|(_, demand)| demand) {
            sum.low += demand.low;
            sum.high += demand.high;
            count += 1;
        }
        (count > 0).then(|| DemandRange {
            low: sum.low / f64::from(count),
            high: sum.high / f64::from(count),
        })
    }

    /// The demand at a time to come, by the line through the slots within `length` that have the whole load: samples
    /// that come back are no growth. `None` unless they span half of it.
    pub fn forecast(&self, now: Moment, length: Duration, horizon: Duration) -> Option<f64> {
        let oldest = oldest(now, length);
        let seconds = |slot: u64| Duration::from_secs(slot.saturating_sub(oldest)).as_secs_f64();
        let slots = self.slots.range(oldest..);
        let points: Vec<(f64, f64)> = slots
            .filter(|(slot, _)| !self.partial.contains(slot))
            .map(|(slot, demand)| (seconds(*slot), demand.low))
            .collect();
        let at = seconds(now.monotonic.saturating_add(horizon).as_secs());
        line_at(&points, at, length.as_secs_f64() / 2.0)
    }

    /// How long one replica has carried the mean although more exist; `is_spare` says whether it does now.
    pub(super) fn spare(&mut self, now: Moment, is_spare: bool) -> Duration {
        // Nothing is known of a gap.
        let since = self.spare_since.max(self.since.filter(|_| self.spare_since.is_some()));
        self.spare_since = is_spare.then(|| since.unwrap_or(now));
        self.spare_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// How long demands were seen without a gap.
    pub fn seen(&self, now: Moment) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

fn oldest(now: Moment, length: Duration) -> u64 {
    now.monotonic.saturating_sub(length).as_secs()
}

/// Recommendations are kept for three ticks at least: a window that is shorter than one would find none, and take each
/// decision for the first after a restart.
const REMEMBERED: Duration = Duration::from_secs(30);

/// A burst that is being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanicState {
    /// When it began.
    pub since: Moment,
    /// When the threshold was exceeded last.
    pub exceeded: Moment,
    /// The largest count since.
    pub peak: Replicas,
}

/// One recommendation, before rate limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recommendation {
    /// When.
    pub at: Moment,
    /// How many.
    pub replicas: Replicas,
}

/// The memory of one autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoscalerState {
    /// Lengths of the windows that demands were kept for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lengths: Option<WindowLengths>,
    /// Demands by the identity of the source.
    pub windows: BTreeMap<String, DemandWindow>,
    /// The burst that is being served.
    pub panic: Option<PanicState>,
    /// Recommendations within the stabilisation windows.
    pub recommendations: Vec<Recommendation>,
    /// Since when nothing is asked for.
    pub idle_since: Option<Moment>,
    /// Whether the target is at zero because this autoscaler scaled it there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asleep: bool,
}

impl AutoscalerState {
    /// The memory after a restart, of which the status holds who put the target to sleep. Windows begin empty, and the
    /// current count is the first recommendation: each holds a release for longer than panic or older
    /// recommendations could, so that these are not needed.
    pub fn restored(status: &PodAutoscalerStatus) -> Self {
        let mut conditions = status.conditions.iter();
        let asleep = match conditions.find(|one| &*one.kind == ASLEEP) {
            Some(condition) => &*condition.status == "True",
            // Of an object that another controller decided on there is the history alone.
            None => status.was_put_to_zero(),
        };
        Self { asleep, ..Self::default() }
    }

    /// What is left of it while the specification does not hold together.
    #[must_use]
    pub fn suspended(&self) -> Self {
        Self { asleep: self.asleep, ..Self::default() }
    }

    /// Demands and recommendations that it holds.
    pub fn remembered(&self) -> usize {
        let demands = self.windows.values().map(|window| window.slots.len());
        demands.sum::<usize>() + self.recommendations.len()
    }

    /// Forgets demands that were kept for windows of other lengths: what a shorter one dropped is missing in a
    /// longer one.
    pub(super) fn keep_for(&mut self, lengths: WindowLengths) {
        if self.lengths.is_some_and(|before| before != lengths) {
            self.windows.clear();
        }
        self.lengths = Some(lengths);
    }

    /// Takes in whether nothing is asked for. What a gap in the windows hides is no idle time.
    pub(super) fn update_idle(&mut self, is_idle: bool, now: Moment) {
        let seen = self.windows.values().filter_map(|window| window.since);
        let since = self.idle_since.max(seen.max().filter(|_| self.idle_since.is_some()));
        self.idle_since = is_idle.then(|| since.unwrap_or(now));
    }

    /// Enters panic, holds it, or leaves it one long window after the threshold was exceeded last.
    pub(super) fn update_panic(
        &mut self,
        exceeded: bool,
        current: Replicas,
        windows: WindowLengths,
        now: Moment,
    ) {
        self.panic = match self.panic {
            Some(panic) if exceeded => Some(PanicState { exceeded: now, ..panic }),
            Some(panic) if now.since(panic.exceeded) < windows.stable => Some(panic),
            _ => exceeded.then_some(PanicState { since: now, exceeded: now, peak: current }),
        };
    }

    /// A recommendation as Kubernetes stabilises it: growth takes the smallest of its window, a release the
    /// largest of its own, and neither crosses the current count. Nothing delays the way out of zero.
    pub(super) fn stabilise(
        &mut self,
        wanted: Replicas,
        current: Replicas,
        windows: (Duration, Duration),
        now: Moment,
    ) -> Replicas {
        let (up, down) = windows;
        let longest = up.max(down).max(REMEMBERED);
        self.recommendations.retain(|one| now.since(one.at) < longest);
        // Without earlier recommendations the current count is one, so that a restart releases nothing.
        let is_first = self.recommendations.is_empty();
        let added = is_first.then_some(current).into_iter().chain([wanted]);
        let added = added.map(|replicas| Recommendation { at: now, replicas });
        self.recommendations.extend(added);
        let within = |length: Duration| {
            let recent = self.recommendations.iter();
            let recent = recent.filter(move |one| now.since(one.at) < length);
            recent.map(|one| one.replicas)
        };
        if current == Replicas::ZERO {
            wanted
        } else if wanted > current {
            within(up).fold(wanted, Replicas::min).max(current)
        } else {
            within(down).fold(wanted, Replicas::max).min(current)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva_base::moment::WallTime;

    fn at(seconds: u32) -> Moment {
        Moment {
            monotonic: Duration::from_secs(seconds.into()),
            wall: WallTime(i64::from(seconds) * 1_000),
        }
    }

    #[test]
    fn a_release_window_of_one_tick_releases_at_the_second_tick() {
        for window in [0, 1, 9, 10, 11] {
            let mut state = AutoscalerState::default();
            let windows = (Duration::ZERO, Duration::from_secs(window));
            let mut stabilise =
                |seconds| state.stabilise(Replicas(1), Replicas(4), windows, at(seconds));
            let first = if window == 0 { 1 } else { 4 };
            assert_eq!(stabilise(100), Replicas(first), "{window}");
            let second = if window == 11 { 4 } else { 1 };
            assert_eq!(stabilise(110), Replicas(second), "{window}");
            assert_eq!(stabilise(120), Replicas(1), "{window}");
        }
    }

    #[test]
    fn a_gap_makes_the_next_decision_the_first() {
        let mut state = AutoscalerState::default();
        let windows = (Duration::ZERO, Duration::from_secs(10));
        let mut stabilise =
            |seconds| state.stabilise(Replicas(1), Replicas(4), windows, at(seconds));
        assert_eq!(stabilise(100), Replicas(4));
        assert_eq!(stabilise(110), Replicas(1));
        assert_eq!(stabilise(140), Replicas(4));
    }
}
