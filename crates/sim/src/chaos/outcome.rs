//! What came of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::check::InvariantViolation;
use super::checker::Counts;
use super::fault::Class;
use super::quiescence::Quiescence;

/// How often faults of one kind happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultTally {
    /// How many were injected.
    pub injected: u64,
    /// How many of them hit something.
    pub effective: u64,
}

/// A role at a message while a fault is in force.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The role, by its label.
    pub role: &'static str,
    /// The name of the message.
    pub message: String,
    /// The kind of the fault.
    pub fault: String,
}

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct RunOutcome {
    /// The first thing that must not be, and when.
    pub violation: Option<(Duration, InvariantViolation)>,
    /// Of all that happened, in its order.
    pub hash: u64,
    /// Lines of the trace.
    pub events: u64,
    /// The lines that were kept.
    pub lines: Vec<String>,
    /// Virtual time.
    pub lasted: Duration,
    /// How long after the last fault everything stood still, where it did.
    pub settled: Option<Duration>,
    /// Faults by class and kind.
    pub tally: BTreeMap<(Class, String), FaultTally>,
    /// How often a role met a message while faults of a kind were in force.
    pub coverage: BTreeMap<Spot, u64>,
    /// Writes and plans.
    pub counts: Counts,
    /// Whether the probe of the plot has struck.
    pub struck: bool,
    /// What there was in the end, where no invariant was broken.
    pub rest: Quiescence,
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
