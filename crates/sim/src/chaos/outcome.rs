//! What came of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::check::InvariantViolation;
use super::checker::Counts;
use super::fault::Class;
use super::quiescence::Quiescence;
use super::workload::ChaosWorkload;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FaultTally {
    pub(crate) injected: u64,
    pub(crate) effective: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RunOutcome {
    pub(crate) violation: Option<(Duration, InvariantViolation)>,
    pub(crate) hash: u64,
    pub(crate) events: u64,
    pub(crate) lines: Vec<String>,
    pub(crate) lasted: Duration,
    /// How long after the last fault everything stood still, where it did.
    pub(crate) settled: Option<Duration>,
    pub(crate) tally: BTreeMap<(Class, String), FaultTally>,
    pub(crate) counts: Counts,
    pub(crate) struck: bool,
    pub(crate) rest: Quiescence,
}

impl RunOutcome {
    pub(super) fn broken(violation: InvariantViolation) -> Self {
        Self { violation: Some((Duration::ZERO, violation)), ..Self::default() }
    }
}

pub(crate) fn failure_report(
    plot: &ChaosWorkload,
    seed: u64,
    outcome: &RunOutcome,
    commit: &str,
) -> Option<String> {
    let (at, violation) = outcome.violation.as_ref()?;
    let (at, scenario) = (at.as_secs_f64(), plot.name);
    let (mut planted, mut mutant) = (String::new(), String::new());
    if let Some(mutation) = plot.mutation {
        planted = format!("  planted {mutation:?}");
        mutant = format!(" --mutant {mutation:?}");
    }
    Some(format!(
        "\nseed {seed}  commit {commit}  scenario {scenario}{planted}  at {at:.3} s\n{violation}\n\n\
         last lines of its trace:\n{}\n\n\
         replay:  wva-sim chaos --scenario {scenario} --replay {seed}{mutant}\n",
        outcome.lines.join("\n"),
    ))
}
