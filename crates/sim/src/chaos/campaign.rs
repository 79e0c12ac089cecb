//! Many seeds, on several threads, each run on a runtime of its own.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::check::InvariantViolation;
use super::checker::Counts;
use super::fault::Class;
use super::run::{FaultTally, RunOutcome, play};
use super::schedule::FaultSchedule;
use super::trace::Keep;
use super::workload::{ChaosWorkload, drawn};
use crate::chaos::Mutation;
use crate::number::{HASH_OF_NOTHING, hash};
use crate::threads::{each, locked};

/// What stands in the place of an invariant where the play itself went wrong.
const PLAY: &str = "play";

#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) seed: u64,
    pub(crate) outcome: RunOutcome,
}

#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) seeds: u64,
    pub(crate) lasted: Duration,
    pub(crate) events: u64,
    pub(crate) counts: Counts,
    pub(crate) tally: BTreeMap<(Class, String), FaultTally>,
    pub(crate) slowest: Option<Duration>,
    /// Of all traces with their seeds, in whatever order they ended: equal for equal seeds of one build.
    pub(crate) hash: u64,
    pub(crate) failed: Vec<Done>,
}

impl Summary {
    pub(crate) fn add(&mut self, done: Done) {
        let outcome = &done.outcome;
        self.seeds += 1;
        self.lasted += outcome.lasted;
        self.events += outcome.events;
        let (sum, counts) = (&mut self.counts, &outcome.counts);
        sum.writes += counts.writes;
        sum.plans += counts.plans;
        sum.held = sum.held.max(counts.held);
        for (key, tally) in &outcome.tally {
            let sum = self.tally.entry(key.clone()).or_default();
            sum.injected += tally.injected;
            sum.effective += tally.effective;
        }
        let bytes = [done.seed, outcome.hash].map(u64::to_le_bytes);
        self.hash ^= hash(HASH_OF_NOTHING, bytes.into_iter().flatten());
        self.slowest = self.slowest.max(outcome.settled);
        if outcome.violation.is_some() {
            self.failed.push(done);
        }
    }
}

/// Plays one seed; what goes wrong with the play itself counts as a violation as well.
pub(crate) fn survive(
    plot: &ChaosWorkload,
    seed: u64,
    schedule: &FaultSchedule,
    keep: Keep,
) -> RunOutcome {
    survived(|| play(plot, seed, schedule, keep))
}

fn survived(play: impl FnOnce() -> Result<RunOutcome, String>) -> RunOutcome {
    let why = match catch_unwind(AssertUnwindSafe(play)) {
        Ok(Ok(outcome)) => return outcome,
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            format!("the play panics: {}", text.unwrap_or_default())
        }
    };
    RunOutcome::broken(InvariantViolation::new(PLAY, why))
}

#[derive(Debug, Clone)]
pub(crate) struct Hunt {
    pub(crate) mutation: Mutation,
    pub(crate) seeds: u64,
    pub(crate) end: End,
}

#[derive(Debug, Clone)]
pub(crate) enum End {
    Found(Box<Done>),
    Missed,
    /// The last seed could not be played to its end, which says nothing of the defect.
    Unplayed(Box<Done>),
}

impl End {
    fn of(done: Done) -> Option<Self> {
        let (_, violation) = done.outcome.violation.as_ref()?;
        Some(if violation.invariant == PLAY {
            Self::Unplayed(Box::new(done))
        } else {
            Self::Found(Box::new(done))
        })
    }
}

/// Plants each defect in turn, and plays seeds until one finds it; `done` gets each search at its end.
pub(crate) fn hunt(
    name: &'static str,
    mutations: &[Mutation],
    seeds: std::ops::Range<u64>,
    jobs: usize,
    done: impl Fn(&Hunt) + Sync,
) -> Result<Vec<Hunt>, String> {
    let mut hunts = each(jobs, mutations.iter().copied(), |mutation| {
        let hunt = seek(name, seeds.clone(), mutation);
        done(&hunt);
        hunt
    })?;
    hunts.sort_by_key(|hunt| hunt.mutation);
    Ok(hunts)
}

fn seek(name: &'static str, seeds: std::ops::Range<u64>, mutation: Mutation) -> Hunt {
    let mut hunt = Hunt { mutation, seeds: 0, end: End::Missed };
    let first = mutation.first_seed().filter(|seed| seeds.contains(seed));
    for seed in first.into_iter().chain(seeds.filter(|seed| Some(*seed) != first)) {
        let mut plot = drawn(name, seed);
        plot.mutation = Some(mutation);
        let outcome = survive(&plot, seed, &plot.schedule(seed), Keep::Tail);
        hunt.seeds += 1;
        if let Some(end) = End::of(Done { seed, outcome }) {
            hunt.end = end;
            break;
        }
    }
    hunt
}

/// Plays these seeds on so many threads; `done` gets each in the order in which they end. No seed begins after
/// so many violations.
pub(crate) fn campaign(
    name: &'static str,
    seeds: std::ops::Range<u64>,
    jobs: usize,
    patience: usize,
    done: impl Fn(&Done) + Sync,
) -> Result<Summary, String> {
    let summary = Mutex::new(Summary::default());
    each(jobs, seeds, |seed| {
        if locked(&summary).failed.len() >= patience {
            return;
        }
        let plot = drawn(name, seed);
        let outcome = survive(&plot, seed, &plot.schedule(seed), Keep::Tail);
        let one = Done { seed, outcome };
        done(&one);
        locked(&summary).add(one);
    })?;
    Ok(summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(outcome: RunOutcome) -> Option<End> {
        End::of(Done { seed: 7, outcome })
    }

    #[test]
    fn a_defect_is_found_by_an_invariant_and_by_nothing_else() {
        assert!(end(survived(|| Ok(RunOutcome::default()))).is_none());
        let broken = RunOutcome::broken(InvariantViolation::new("D2", "-"));
        let found = end(survived(|| Ok(broken)));
        assert!(matches!(&found, Some(End::Found(done)) if done.seed == 7), "{found:?}");
        let nowhere = || Err("no place".to_owned());
        for unplayed in [survived(|| panic!("no way")), survived(nowhere)] {
            let end = end(unplayed);
            assert!(matches!(&end, Some(End::Unplayed(done)) if done.seed == 7), "{end:?}");
        }
    }
}
