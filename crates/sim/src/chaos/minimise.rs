//! The fewest faults of a schedule that still break what was broken, as far as a bounded number of runs
//! tells.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::campaign::survive;
use super::check::InvariantViolation;
use super::schedule::FaultSchedule;
use super::trace::Keep;
use super::workload::ChaosWorkload;

#[derive(Debug)]
pub(super) struct RunBudget<'a> {
    most: usize,
    played: usize,
    enough: &'a AtomicBool,
    is_cut: bool,
}

impl<'a> RunBudget<'a> {
    /// So many runs, and none from when `enough` is true.
    pub(super) fn new(most: usize, enough: &'a AtomicBool) -> Self {
        Self {
            most,
            played: 0,
            enough,
            is_cut: false,
        }
    }

    fn take(&mut self) -> bool {
        let is_left = self.played < self.most;
        // Who has no run left in any case is not cut short.
        self.is_cut |= is_left && self.enough.load(Ordering::Relaxed);
        let may = is_left && !self.is_cut;
        self.played += usize::from(may);
        may
    }
}

#[derive(Debug)]
pub(super) struct Reduced<F = Found> {
    /// The fewest faults that are known to be enough.
    pub(super) smallest: FaultSchedule,
    /// What the run with them broke, and when, if a run has shown that fewer are enough.
    pub(super) shown: Option<F>,
    pub(super) played: usize,
    /// Whether it was ended before its time.
    pub(super) is_cut: bool,
}

pub(super) type Found = (Duration, InvariantViolation);

/// Zeller's delta debugging: halves first, then ever smaller parts are left out, as long as the same
/// is broken in the same way.
pub(super) fn minimise(
    plot: &ChaosWorkload,
    seed: u64,
    schedule: &FaultSchedule,
    (violation, at): (&InvariantViolation, Duration),
    budget: RunBudget<'_>,
) -> Reduced {
    let breaks = |schedule: &FaultSchedule| {
        let outcome = survive(plot, seed, schedule, Keep::Tail);
        let found = outcome.violation;
        found.filter(|(_, found)| is_alike(found, violation))
    };
    // What has not happened by then is not to blame.
    let past = schedule.0.iter().filter(|strike| strike.at <= at);
    let past = FaultSchedule(past.cloned().collect());
    reduce(past, budget, breaks)
}

/// Whether two violations are of one invariant in the same words, but for names and numbers: one invariant may be
/// broken in several ways.
fn is_alike(one: &InvariantViolation, other: &InvariantViolation) -> bool {
    let is_word = |word: &&str| {
        let is_of_names = |letter: char| letter.is_ascii_digit() || "/-_".contains(letter);
        !word.contains(is_of_names)
    };
    let words = |of: &InvariantViolation| -> Vec<String> {
        let words = of.text.split_whitespace().filter(is_word);
        words.map(str::to_owned).collect()
    };
    one.invariant == other.invariant && words(one) == words(other)
}

fn reduce<F>(
    mut schedule: FaultSchedule,
    mut budget: RunBudget<'_>,
    breaks: impl Fn(&FaultSchedule) -> Option<F>,
) -> Reduced<F> {
    let mut parts = 2;
    let mut shown = None;
    if !schedule.0.is_empty() && budget.take() {
        shown = breaks(&FaultSchedule::default());
    }
    if shown.is_some() {
        schedule = FaultSchedule::default();
    }
    'smaller: while schedule.0.len() > 1 {
        let ids = schedule.ids();
        let size = ids.len().div_ceil(parts).max(1);
        let mut smaller = None;
        for part in ids.chunks(size) {
            if !budget.take() {
                break 'smaller;
            }
            let rest: Vec<usize> = ids
                .iter()
                .copied()
                .filter(|id| !part.contains(id))
                .collect();
            let candidate = schedule.only(&rest);
            if let Some(found) = breaks(&candidate) {
                smaller = Some((candidate, found));
                break;
            }
        }
        match smaller {
            Some((smaller, found)) => {
                (schedule, shown) = (smaller, Some(found));
                parts = parts.saturating_sub(1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(ids.len()),
        }
    }
    Reduced {
        shown,
        smallest: schedule,
        played: budget.played,
        is_cut: budget.is_cut,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::chaos::fault::{ChaosFault, Edit};
    use crate::chaos::schedule::Strike;

    fn schedule(length: usize) -> FaultSchedule {
        let strike = |id| Strike {
            id,
            at: Duration::from_secs(1),
            lasts: Duration::from_secs(1),
            fault: ChaosFault::Settings(Edit::BadValue),
        };
        FaultSchedule((0..length).map(strike).collect())
    }

    #[test]
    fn what_is_needed_is_kept_and_nothing_else() {
        let needed = [3, 40, 77];
        let runs = Cell::new(0);
        let breaks = |schedule: &FaultSchedule| {
            runs.set(runs.get() + 1);
            let is_whole = needed.iter().all(|id| schedule.ids().contains(id));
            is_whole.then_some(schedule.0.len())
        };
        let enough = AtomicBool::new(false);
        let whole = reduce(schedule(100), RunBudget::new(1_000, &enough), breaks);
        assert_eq!(whole.smallest.ids(), needed);
        assert!(!whole.is_cut, "{whole:?}");
        assert_eq!(whole.shown, Some(3), "of the last run that broke it");
        assert_eq!(whole.played, runs.get());
        assert!(runs.get() < 200, "{}", runs.get());
        let needs_one = |schedule: &FaultSchedule| schedule.ids().contains(&3).then_some(());
        let bounded = reduce(schedule(100), RunBudget::new(3, &enough), needs_one);
        assert!(bounded.smallest.0.len() < 100 && bounded.smallest.ids().contains(&3));
        assert_eq!((bounded.played, bounded.is_cut), (3, false));
    }

    #[test]
    fn whoever_has_enough_gets_the_smallest_that_is_known_by_then() {
        // The run in which it is asked to end still counts: the first one plays no fault and shows nothing, the
        // second leaves out the first half, of which nothing is needed.
        for (asked_in, shown) in [(1, 100), (2, 50)] {
            let (enough, runs) = (AtomicBool::new(false), Cell::new(0));
            let breaks = |schedule: &FaultSchedule| {
                runs.set(runs.get() + 1);
                enough.store(runs.get() == asked_in, Ordering::Relaxed);
                schedule.ids().contains(&77).then_some(())
            };
            let cut = reduce(schedule(100), RunBudget::new(40, &enough), breaks);
            assert_eq!(
                (runs.get(), cut.played, cut.is_cut),
                (asked_in, asked_in, true)
            );
            assert_eq!(cut.smallest.0.len(), shown);
            assert_eq!(cut.shown.is_some(), shown < 100);
        }
        let enough = AtomicBool::new(true);
        let none = reduce(schedule(100), RunBudget::new(40, &enough), |_| Some(()));
        assert_eq!((none.played, none.is_cut, none.shown), (0, true, None));
        // Nothing is left to be done, so nothing was cut short.
        let done = reduce(schedule(0), RunBudget::new(40, &enough), |_| Some(()));
        assert!(!done.is_cut, "{done:?}");
    }

    #[test]
    fn one_invariant_may_be_broken_in_several_ways() {
        let of = |invariant, text: &str| InvariantViolation::new(invariant, text);
        let one = of(
            "E6",
            "c0: llm-d/a is shown with another count than is stored",
        );
        let other = of(
            "E6",
            "c2: llm-d/b-8 is shown with another count than is stored",
        );
        let untried = of("E6", "c0: llm-d/a is not stored as it is shown");
        assert!(is_alike(&one, &other));
        assert!(!is_alike(&one, &untried));
        assert!(!is_alike(&one, &of("E8", &one.text)));
    }
}
