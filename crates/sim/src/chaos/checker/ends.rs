//! How processes end.

use std::time::Duration;

use super::Checker;
use crate::chaos::check::InvariantViolation;
use crate::workloads::object::Object;
use crate::world::controller::ControllerView;
use wva_supervise::RoleState;

const LEASES: &str = "leases.coordination.k8s.io";

/// How long nothing was in the way of a process that leaves nothing undone when it ends.
pub(super) const QUIET: Duration = Duration::from_secs(10);

impl Checker {
    pub(crate) fn leaves(&self, place: usize) {
        let holder = self.holder();
        if let Some(seat) = self.bench().seats.get_mut(&place) {
            seat.ending = Some(seat.ending(holder));
            seat.leaving = true;
        }
    }

    pub(super) fn holder(&self) -> Option<String> {
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
}
