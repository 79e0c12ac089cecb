//! The fewest faults of a schedule that still break what was broken, as far as a bounded number of runs
//! tells.

use super::campaign::survive;
use super::check::Violation;
use super::plot::Plot;
use super::schedule::Schedule;
use super::trace::Keep;

/// Zeller's delta debugging: halves first, then ever smaller parts are left out, as long as the same
/// invariant is broken.
pub(super) fn minimise(
    plot: &Plot,
    seed: u64,
    schedule: &Schedule,
    (violation, at): (&Violation, std::time::Duration),
    runs: usize,
) -> Schedule {
    let breaks = |schedule: &Schedule| {
        let outcome = survive(plot, seed, schedule, Keep::Tail);
        let found = outcome.violation;
        found.is_some_and(|(_, found)| found.invariant == violation.invariant)
    };
    // What has not happened by then is not to blame.
    let past = schedule.0.iter().filter(|strike| strike.at <= at);
    let past = Schedule(past.cloned().collect());
    reduce(past, runs, breaks)
}

fn reduce(mut schedule: Schedule, runs: usize, breaks: impl Fn(&Schedule) -> bool) -> Schedule {
    let mut left = runs;
    let mut parts = 2;
    let nothing = Schedule::default();
    if left > 0 && !schedule.0.is_empty() {
        left -= 1;
        if breaks(&nothing) {
            return nothing;
        }
    }
    while schedule.0.len() > 1 && left > 0 {
        let ids = schedule.ids();
        let size = ids.len().div_ceil(parts).max(1);
        let mut smaller = None;
        for part in ids.chunks(size) {
            if left == 0 {
                break;
            }
            left -= 1;
            let rest: Vec<usize> = ids
                .iter()
                .copied()
                .filter(|id| !part.contains(id))
                .collect();
            let candidate = schedule.only(&rest);
            if breaks(&candidate) {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(smaller) => {
                schedule = smaller;
                parts = parts.saturating_sub(1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(ids.len()),
        }
    }
    schedule
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::sim::chaos::fault::{Edit, Fault};
    use crate::sim::chaos::schedule::Strike;

    fn schedule(length: usize) -> Schedule {
        let strike = |id| Strike {
            id,
            at: Duration::from_secs(1),
            lasts: Duration::from_secs(1),
            fault: Fault::Settings(Edit::Immutable),
        };
        Schedule((0..length).map(strike).collect())
    }

    #[test]
    fn what_is_needed_is_kept_and_nothing_else() {
        let needed = [3, 40, 77];
        let runs = Cell::new(0);
        let breaks = |schedule: &Schedule| {
            runs.set(runs.get() + 1);
            needed.iter().all(|id| schedule.ids().contains(id))
        };
        assert_eq!(reduce(schedule(100), 1_000, breaks).ids(), needed);
        assert!(runs.get() < 200, "{}", runs.get());
        let bounded = reduce(schedule(100), 3, |schedule| schedule.ids().contains(&3));
        assert!(bounded.0.len() < 100 && bounded.ids().contains(&3));
    }
}
