//! From what pods report to the demand of all of them.
//!
//! A demand has two ends. Growth rests on the low one, a release on the high one, so that a pod without a
//! sample never causes either.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::amounts::{DemandRange, PodsPerReplica, TargetValue};
use crate::signal::{Failure, Signal, StaleBand};
use crate::units::Replicas;

/// A pod that became ready within this time and has no sample is starting, not silent: the last read may be one from
/// before, which it refused.
const FIRST_SAMPLE: Duration = Duration::from_mins(1);

/// A release needs fresh samples of one in so many serving pods.
const COVERAGE: u32 = 2;

/// A pod of the target, as far as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoscaledPod {
    /// Serves.
    Ready {
        /// For how long.
        ready_for: Duration,
    },
    /// Does not serve yet: a replica on its way.
    Pending,
    /// Waits behind a scheduling gate, as of Kueue or of a gang: it is asked for, and neither on its way nor capacity.
    Gated,
    /// Finishes its requests and is gone then: no replica any more, and not idle.
    Draining,
    /// Moves its shards and serves again: a replica, and not idle where a page does not answer.
    Resharding,
}

impl AutoscaledPod {
    /// Whether it has served for so long that a sample of it is due.
    pub fn is_sample_due(self) -> bool {
        matches!(self, Self::Ready { ready_for } if ready_for >= FIRST_SAMPLE)
    }
}

/// What one metric source reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SourceReading {
    /// A value of each pod. A pod that is not named has no sample.
    Pods(BTreeMap<Arc<str>, Signal>),
    /// One value of all replicas.
    Total(Signal),
}

/// The pods behind a demand, by what is known of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodCounts {
    /// Serving, with a fresh sample above zero.
    pub loaded: u32,
    /// Serving, with a fresh sample of zero.
    pub zero: u32,
    /// Serving, with an old sample.
    pub stale: u32,
    /// Serving, with a read that failed.
    pub failed: u32,
    /// Serving, without a sample.
    pub missing: u32,
    /// On their way: pending, or ready for less than a minute without a sample.
    pub starting: u32,
    /// Behind a scheduling gate.
    #[serde(default, skip_serializing_if = "is_none")]
    pub gated: u32,
    /// Draining.
    pub draining: u32,
    /// Resharding: serving again soon, without a sample that counts.
    pub resharding: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

impl PodCounts {
    fn fresh(&self) -> u32 {
        self.loaded + self.zero
    }

    fn serving(&self) -> u32 {
        self.fresh() + self.stale + self.failed + self.missing + self.resharding
    }

    /// Pods that carry an unknown amount now, or will.
    fn unmeasured(&self) -> u32 {
        self.stale + self.failed + self.missing + self.starting + self.resharding
    }

    /// Whether enough serving pods have fresh samples for a release.
    pub(crate) fn allows_release(&self) -> bool {
        self.fresh() > 0 && self.fresh().saturating_mul(COVERAGE) >= self.serving()
    }
}

impl fmt::Display for PodCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.loaded, "loaded"),
            (self.zero, "at zero"),
            (self.stale, "stale"),
            (self.failed, "failed"),
            (self.missing, "without a sample"),
            (self.starting, "starting"),
            (self.gated, "gated"),
            (self.draining, "draining"),
            (self.resharding, "resharding"),
        ];
        let mut separator = "";
        for (count, name) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(formatter, "{separator}{count} {name}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// Why a source has no demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceGap {
    /// No pod serves, for what its pods do.
    NoServingPod(PodCounts),
    /// Pods serve, and none of them has a usable sample.
    NoSample(PodCounts),
    /// The target does not state how many pods a replica has.
    NoPodsPerReplica,
    /// Its total is not usable.
    NoTotal(Failure),
}

wva_base::display_of! { SourceGap:
    Self::NoServingPod(pods) if *pods == PodCounts::default() => "no pod serves";
    Self::NoServingPod(pods) => "no pod serves ({pods})";
    Self::NoSample(pods) => "no serving pod has a usable sample ({pods})";
    Self::NoPodsPerReplica =>
        "the pods of one replica are not known; write replicas of each role of the StormService, or podsPerReplica of \
         a snapshot";
    Self::NoTotal(why) => "its total is unusable: {why}";
}

/// The demand that one source reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredDemand {
    /// Its two ends.
    pub range: DemandRange,
    /// The pods behind it; `None` of a total.
    pub pods: Option<PodCounts>,
    /// Whether it is a total that is no longer fresh.
    pub is_old: bool,
    /// Whether it has the whole load.
    pub evidence: DemandEvidence,
}

/// How much of a load a demand has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemandEvidence {
    /// All that is served.
    Whole,
    /// Some of what is served was not measured.
    Partial,
}

impl DemandEvidence {
    fn whole_if(whole: bool) -> Self {
        if whole { Self::Whole } else { Self::Partial }
    }
}

impl MeasuredDemand {
    pub(crate) fn allows_release(&self) -> bool {
        !self.is_old && self.pods.is_none_or(|pods| pods.allows_release())
    }

    /// Whether it is known that nothing is asked for.
    pub fn is_idle(&self) -> bool {
        self.range.high <= 0.0 && self.pods.is_none_or(|pods| pods.fresh() == pods.serving())
    }
}

/// Measures one source.
pub fn measure(
    reading: &SourceReading,
    pods: &BTreeMap<Arc<str>, AutoscaledPod>,
    current: Replicas,
    per_replica: PodsPerReplica,
    target: TargetValue,
) -> Result<MeasuredDemand, SourceGap> {
    match reading {
        SourceReading::Pods(samples) => {
            let mut sum = PodSum::default();
            for (name, pod) in pods {
                sum.add(*pod, samples.get(name), target);
            }
            sum.demand(current, per_replica, target)
        }
        SourceReading::Total(signal) => total(*signal, current, target),
    }
}

fn total(
    signal: Signal,
    current: Replicas,
    target: TargetValue,
) -> Result<MeasuredDemand, SourceGap> {
    let range = match signal {
        Signal::Known { value, .. } => DemandRange::exactly(value),
        Signal::KnownZero { .. } => DemandRange::exactly(0.0),
        // An old total may justify growth and no release.
        Signal::Stale { value, band: StaleBand::NoShrink, .. } => {
            DemandRange { low: value, high: value.max(target.of(current)) }
        }
        Signal::Stale { .. } => return Err(SourceGap::NoTotal(Failure::TooOld)),
        Signal::Failed { why } => return Err(SourceGap::NoTotal(why)),
    };
    let is_old = matches!(signal, Signal::Stale { .. });
    Ok(MeasuredDemand { range, pods: None, is_old, evidence: DemandEvidence::whole_if(!is_old) })
}

#[derive(Debug, Default)]
struct PodSum {
    counts: PodCounts,
    fresh: f64,
    /// Old samples that may justify growth.
    old: f64,
    usable_old: u32,
    old_excess: f64,
    draining: f64,
    /// Ready for less than a minute, without a sample.
    unsampled: u32,
}

impl PodSum {
    fn add(&mut self, pod: AutoscaledPod, signal: Option<&Signal>, target: TargetValue) {
        let counts = &mut self.counts;
        let signal = match signal {
            None | Some(Signal::Failed { why: Failure::Absent }) => None,
            Some(signal) => Some(*signal),
        };
        match (pod, signal) {
            (AutoscaledPod::Pending, _) => counts.starting += 1,
            (AutoscaledPod::Gated, _) => counts.gated += 1,
            (
                AutoscaledPod::Resharding,
                None | Some(Signal::KnownZero { .. } | Signal::Failed { .. }),
            ) => counts.resharding += 1,
            (AutoscaledPod::Draining, signal) => {
                counts.draining += 1;
                let usable = signal.and_then(Signal::usable).map(|(value, _)| value);
                self.draining += usable.unwrap_or_else(|| target.get());
            }
            // Another page of a pod that reshards may have answered.
            (_, Some(Signal::Known { value, .. })) => {
                counts.loaded += 1;
                self.fresh += value;
            }
            (_, Some(Signal::KnownZero { .. })) => counts.zero += 1,
            (_, Some(Signal::Stale { value, band, .. })) => {
                counts.stale += 1;
                if band == StaleBand::NoShrink {
                    self.old += value;
                    self.usable_old += 1;
                    self.old_excess += (value - target.get()).max(0.0);
                }
            }
            (AutoscaledPod::Ready { .. }, None | Some(Signal::Failed { .. }))
                if !pod.is_sample_due() =>
            {
                counts.starting += 1;
                self.unsampled += 1;
            }
            (AutoscaledPod::Ready { .. }, Some(Signal::Failed { .. })) => counts.failed += 1,
            (AutoscaledPod::Ready { .. }, None) => counts.missing += 1,
        }
    }

    fn demand(
        &self,
        current: Replicas,
        per_replica: PodsPerReplica,
        target: TargetValue,
    ) -> Result<MeasuredDemand, SourceGap> {
        let counts = self.counts;
        if counts.serving() == counts.resharding {
            return Err(SourceGap::NoServingPod(counts));
        }
        if counts.fresh() + self.usable_old == 0 {
            return Err(SourceGap::NoSample(counts));
        }
        let per_replica = per_replica.known();
        let per_replica = per_replica.ok_or(SourceGap::NoPodsPerReplica)?;
        // As in Kubernetes: pods without a sample carry nothing where growth is in question.
        let low = self.fresh + self.old;
        // Every pod without a fresh sample counts as at target, so that a release waits for it. One behind a gate
        // carries nothing for certain. A rollout has more pods than its replicas, and each of them may carry.
        let stated = current.0.saturating_mul(per_replica);
        let uncreated = stated.saturating_sub(counts.fresh() + counts.gated);
        let unmeasured = Replicas(uncreated.max(counts.unmeasured()));
        let kept = target.of(unmeasured) + self.old_excess + self.draining;
        let range = DemandRange { low, high: low.max(self.fresh + kept) };
        Ok(MeasuredDemand {
            range,
            pods: Some(counts),
            is_old: false,
            // One that is pending serves nothing yet; one that drains leaves its load to others.
            evidence: DemandEvidence::whole_if(
                counts.fresh() == counts.serving() + counts.draining + self.unsampled,
            ),
        })
    }
}
