//! Chooses, for one pod and one signal, among the series names that reported it.

use crate::policy::signal::{FreshnessBands, Signal, StaleBand};
use crate::policy::snapshot::Sample;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    /// Position of the name in the signal's row of the table.
    pub(super) source: usize,
    pub(super) sample: Sample,
}

/// What can be done with a sample, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SampleQuality {
    /// Young enough for every decision.
    Fresh,
    /// May not shrink anything.
    NoShrink,
    /// Decides nothing, but is not gone either.
    Hold,
    /// Too old, or not a number.
    Unusable,
}

impl SampleQuality {
    /// Judges a sample. The range of the quantity is not looked at here: a value outside of it must
    /// reach the decision, which reports it.
    pub(super) fn of(sample: Sample, bands: &FreshnessBands) -> Self {
        match bands.judge(sample.value, sample.age, f64::MIN..=f64::MAX) {
            Signal::Known { .. } | Signal::KnownZero { .. } => Self::Fresh,
            Signal::Stale { band, .. } => match band {
                StaleBand::NoShrink => Self::NoShrink,
                StaleBand::Hold => Self::Hold,
            },
            Signal::Failed { .. } => Self::Unusable,
        }
    }
}

/// The candidate of best standing; among equals the one whose name comes first in the table. An
/// unusable one is returned where there is no other, so that the decision can say what was wrong.
pub(super) fn choose(
    candidates: impl IntoIterator<Item = Candidate>,
    bands: &FreshnessBands,
) -> Option<(Candidate, SampleQuality)> {
    candidates
        .into_iter()
        .map(|candidate| (candidate, SampleQuality::of(candidate.sample, bands)))
        .min_by_key(|(candidate, standing)| (*standing, candidate.source))
}
