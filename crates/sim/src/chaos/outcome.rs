//! What came of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::check::InvariantViolation;
use super::checker::Counts;
use super::fault::Class;
use super::quiescence::Quiescence;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FaultTally {
    pub(crate) injected: u64,
    /// How many of them hit something.
    pub(crate) effective: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RunOutcome {
    /// The first thing that must not be, and when.
    pub(crate) violation: Option<(Duration, InvariantViolation)>,
    /// Of all that happened, in its order.
    pub(crate) hash: u64,
    /// Lines of the trace.
    pub(crate) events: u64,
    pub(crate) lines: Vec<String>,
    pub(crate) lasted: Duration,
    /// How long after the last fault everything stood still, where it did.
    pub(crate) settled: Option<Duration>,
    pub(crate) tally: BTreeMap<(Class, String), FaultTally>,
    pub(crate) counts: Counts,
    /// Whether the probe of the plot has struck.
    pub(crate) struck: bool,
    /// What there was in the end, where no invariant was broken.
    pub(crate) rest: Quiescence,
}

impl RunOutcome {
    /// Of a run of which nothing but this is known.
    pub(super) fn broken(violation: InvariantViolation) -> Self {
        Self {
            violation: Some((Duration::ZERO, violation)),
            ..Self::default()
        }
    }
}
