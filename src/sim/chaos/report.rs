//! Everything about a run that broke an invariant.

use std::fmt;
use std::time::Duration;

use super::check::Violation;
use super::minimise::minimise;
use super::outcome::Outcome;
use super::plot::Plot;
use super::schedule::Schedule;

/// A run that is over, with what was played.
#[derive(Debug, Clone, Copy)]
pub struct Played<'a> {
    /// The world, with the defect that is planted in it, where one is.
    pub plot: &'a Plot,
    /// The seed.
    pub seed: u64,
    /// The faults.
    pub schedule: &'a Schedule,
    /// What came of it.
    pub outcome: &'a Outcome,
}

/// What somebody needs who looks into a failure.
#[derive(Debug)]
pub struct Report<'a> {
    played: Played<'a>,
    commit: &'a str,
    at: Duration,
    violation: &'a Violation,
    runs: usize,
    /// The fewest faults that still break the same invariant, as far as so many runs tell.
    pub smallest: Schedule,
}

impl<'a> Report<'a> {
    /// The report of a run, if it broke an invariant. Plays up to so many `runs` to make its schedule smaller.
    pub fn of(played: Played<'a>, commit: &'a str, runs: usize) -> Option<Self> {
        let (at, violation) = played.outcome.violation.as_ref()?;
        let (plot, schedule) = (played.plot, played.schedule);
        Some(Self {
            played,
            commit,
            at: *at,
            violation,
            runs,
            smallest: minimise(plot, played.seed, schedule, (violation, *at), runs),
        })
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Played {
            plot,
            seed,
            schedule,
            outcome,
        } = self.played;
        let (scenario, commit) = (plot.name, self.commit);
        let (planted, mutant) = plot.flaw.map_or_else(Default::default, |flaw| {
            (format!("  planted {flaw:?}"), format!(" --mutant {flaw:?}"))
        });
        let replay = format!("wva chaos --scenario {scenario} --replay {seed}{mutant}");
        let ids = self.smallest.ids();
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let smaller = match ids.join(",") {
            none if none.is_empty() => format!("{replay} --only none"),
            ids => format!("{replay} --only {ids}"),
        };
        writeln!(
            formatter,
            "\nseed {seed}  commit {commit}  scenario {scenario}{planted}  at {:.3} s\n{}\n\n\
             last lines of its trace:\n{}\n\n\
             of {} faults these are enough, as far as {} runs tell:\n{}\n\
             replay:  {replay}\n\
             smaller: {smaller}",
            self.at.as_secs_f64(),
            self.violation,
            outcome.lines.join("\n"),
            schedule.0.len(),
            self.runs,
            self.smallest
        )
    }
}
