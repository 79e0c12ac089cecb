//! Whether anybody leads.

use std::time::Duration;

use super::ends::QUIET;
use super::{Checker, CheckerState};
use crate::chaos::check::InvariantViolation;
use crate::chaos::process_checker::ProcessChecker;

/// How soon a process leads once one can: the lease of the last holder ends, which a write that
/// arrives late may have made longer.
const LEADERLESS: Duration = Duration::from_mins(3);
/// How soon a process leads once a lease is given back: the others look at it every four seconds, and who takes it
/// reads first what is stored.
const SUCCEEDED: Duration = Duration::from_secs(10);

impl Checker {
    /// L1: some process leads, if nothing is in the way of one process. Whose writes are `late`, carried out when
    /// the claim that they were sent for has run out, keeps the lease from others and cannot lead itself.
    pub(super) fn leaderless(&self, late: bool) -> Option<InvariantViolation> {
        let now = self.0.clock.now();
        let mut bench = self.bench();
        let mut seats = bench.seats.values();
        let leads = seats.any(|seat| seat.door.shared.claim.may_write(now));
        if leads || late {
            bench.led = now.monotonic;
            bench.vacant = None;
            return None;
        }
        let vacant = bench.vacant.filter(|at| now.monotonic > *at + SUCCEEDED);
        if let Some(at) = vacant
            && let Some(place) = successor(&bench, at)
            && self.holder().is_none()
        {
            let limit = SUCCEEDED.as_secs();
            let text = format!("no process has taken over for {limit} s, and c{place} could");
            return Some(InvariantViolation::new("T4", text));
        }
        let could = |seat: &ProcessChecker| {
            let since = seat.calm().unwrap_or(now.monotonic);
            now.monotonic > since.max(bench.led) + LEADERLESS
        };
        let (place, _) = bench.seats.iter().find(|(_, seat)| could(seat))?;
        let limit = LEADERLESS.as_secs();
        let text = format!("no process has led for {limit} s, and c{place} could");
        Some(InvariantViolation::new("L1", text))
    }
}

/// Who could take over since this time, as nothing had been in its way for a while.
fn successor(bench: &CheckerState, since: Duration) -> Option<usize> {
    let could = |seat: &ProcessChecker| seat.calm().is_some_and(|calm| calm + QUIET <= since);
    let (place, _) = bench.seats.iter().find(|(_, seat)| could(seat))?;
    Some(*place)
}
