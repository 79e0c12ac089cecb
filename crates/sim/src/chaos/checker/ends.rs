//! How processes end, and whether one leads.

use std::time::Duration;

use super::{Checker, CheckerState};
use crate::chaos::check::InvariantViolation;
use crate::chaos::process_checker::ProcessChecker;
use crate::workloads::object::Object;
use crate::world::controller::ControllerView;
use wva_supervise::RoleState;

const LEASES: &str = "leases.coordination.k8s.io";

/// How long nothing was in the way of a process that leaves nothing undone when it ends.
const QUIET: Duration = Duration::from_secs(10);

/// How soon a process leads once one can: the lease of the last holder ends, which a write that
/// arrives late may have made longer.
const LEADERLESS: Duration = Duration::from_mins(3);
/// How soon a process leads once a lease is given back: the others look at it every four seconds, and who takes it
/// reads first what is stored.
const SUCCEEDED: Duration = Duration::from_secs(10);

impl Checker {
    pub(crate) fn leaves(&self, place: usize) {
        let holder = self.holder();
        if let Some(seat) = self.bench().seats.get_mut(&place) {
            seat.ending = Some(seat.ending(holder));
            seat.leaving = true;
        }
    }

    fn holder(&self) -> Option<String> {
        let lease = self.0.insider.list(LEASES).into_iter().next()?;
        let holder = Object(lease);
        let holder = holder.at("/spec/holderIdentity").as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    pub(crate) fn wrong(&self, invariant: &'static str, place: usize, what: Option<String>) {
        let what = what.map(|what| format!("c{place} {what}"));
        self.report_all(what.map(|text| InvariantViolation::new(invariant, text)));
    }

    /// T4: nothing is left after an orderly end, and nothing undone where nothing planted has cut it short.
    pub(crate) fn ended(&self, place: usize, door: &ControllerView, is_whole: bool) {
        for one in door.actors.report() {
            if one.state == RoleState::Running {
                let text = format!("{} of c{place} is left after the end", one.role);
                self.report(InvariantViolation::new("T4", text));
            }
        }
        let (now, holder) = (self.now(), self.holder());
        let found = {
            let mut bench = self.bench();
            let seat = bench.seats.get_mut(&place);
            let ending = seat.and_then(|seat| seat.ending.take());
            let ending = ending.filter(|ending| is_whole && ending.was_calm(now, QUIET));
            if ending.as_ref().is_some_and(|ending| ending.held.is_some()) {
                bench.vacant = Some(now);
            }
            ending.and_then(|ending| ending.undone(door.actors.overdue(), holder.as_deref()))
        };
        self.wrong("T4", place, found);
    }

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
