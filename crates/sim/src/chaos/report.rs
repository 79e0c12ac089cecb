//! Everything about a run that broke an invariant.

use super::outcome::RunOutcome;
use super::workload::ChaosWorkload;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Played<'a> {
    /// The world, with the defect that is planted in it, where one is.
    pub(crate) plot: &'a ChaosWorkload,
    pub(crate) seed: u64,
    pub(crate) outcome: &'a RunOutcome,
}

/// What is printed of a run that broke an invariant.
pub(crate) fn failure_report(played: Played<'_>, commit: &str) -> Option<String> {
    let Played {
        plot,
        seed,
        outcome,
    } = played;
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
