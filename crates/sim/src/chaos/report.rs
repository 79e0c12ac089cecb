//! Everything about a run that broke an invariant.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::check::InvariantViolation;
use super::minimise::{Reduced, RunBudget, minimise};
use super::outcome::RunOutcome;
use super::schedule::FaultSchedule;
use super::workload::ChaosWorkload;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Played<'a> {
    /// The world, with the defect that is planted in it, where one is.
    pub(crate) plot: &'a ChaosWorkload,
    pub(crate) seed: u64,
    pub(crate) schedule: &'a FaultSchedule,
    pub(crate) outcome: &'a RunOutcome,
}

/// What somebody needs who looks into a failure.
#[derive(Debug)]
pub(crate) struct FailureReport<'a> {
    played: Played<'a>,
    commit: &'a str,
    at: Duration,
    violation: &'a InvariantViolation,
}

impl<'a> FailureReport<'a> {
    pub(crate) fn of(played: Played<'a>, commit: &'a str) -> Option<Self> {
        let (at, violation) = played.outcome.violation.as_ref()?;
        Some(Self {
            played,
            commit,
            at: *at,
            violation,
        })
    }

    /// Plays up to so many `runs` to make the schedule smaller; none is begun once `enough` is true.
    pub(crate) fn smaller(&self, runs: usize, enough: &AtomicBool) -> Smaller {
        let Played {
            plot,
            seed,
            schedule,
            ..
        } = self.played;
        let budget = RunBudget::new(runs, enough);
        Smaller {
            of: schedule.0.len(),
            runs,
            replay: self.replay(),
            reduced: minimise(plot, seed, schedule, (self.violation, self.at), budget),
        }
    }

    fn replay(&self) -> String {
        let Played { plot, seed, .. } = self.played;
        let mutant = plot
            .mutation
            .map(|mutation| format!(" --mutant {mutation:?}"));
        let mutant = mutant.unwrap_or_default();
        format!(
            "wva-sim chaos --scenario {} --replay {seed}{mutant}",
            plot.name
        )
    }
}

impl fmt::Display for FailureReport<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Played {
            plot,
            seed,
            outcome,
            ..
        } = self.played;
        let (scenario, commit) = (plot.name, self.commit);
        let planted = plot
            .mutation
            .map(|mutation| format!("  planted {mutation:?}"));
        writeln!(
            formatter,
            "\nseed {seed}  commit {commit}  scenario {scenario}{}  at {:.3} s\n{}\n\n\
             last lines of its trace:\n{}\n\n\
             replay:  {}",
            planted.unwrap_or_default(),
            self.at.as_secs_f64(),
            self.violation,
            outcome.lines.join("\n"),
            self.replay()
        )
    }
}

/// The fewest faults that still break the same in the same way, as far as the runs tell that were played for it.
#[derive(Debug)]
pub(crate) struct Smaller {
    of: usize,
    runs: usize,
    replay: String,
    pub(super) reduced: Reduced,
}

impl Smaller {
    /// Whether it was ended before its time.
    pub(crate) fn is_cut(&self) -> bool {
        self.reduced.is_cut
    }
}

impl fmt::Display for Smaller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reduced {
            smallest,
            shown,
            played,
            is_cut,
        } = &self.reduced;
        let (of, runs) = (self.of, self.runs);
        match (is_cut, shown.is_some()) {
            (false, _) => writeln!(
                formatter,
                "of {of} faults these are enough, as far as {runs} runs tell:"
            )?,
            (true, true) => writeln!(
                formatter,
                "cut short after {played} of {runs} runs; of {of} faults these are enough, as far as they tell:"
            )?,
            (true, false) => {
                return writeln!(
                    formatter,
                    "cut short after {played} of {runs} runs; that fewer of its {of} faults are enough was not seen"
                );
            }
        }
        let ids = smallest.ids();
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let only = match ids.join(",") {
            none if none.is_empty() => "none".to_owned(),
            ids => ids,
        };
        write!(formatter, "{smallest}")?;
        if let Some((at, violation)) = shown {
            let at = at.as_secs_f64();
            write!(formatter, "\nthey break, at {at:.3} s:\n{violation}")?;
        }
        writeln!(formatter, "\nsmaller: {} --only {only}", self.replay)
    }
}
