//! How processes end.

use std::time::Duration;

use super::Checker;
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::ends;
use crate::workloads::object::Object;
use crate::world::controller::ControllerView;
use wva::roles::Role;
use wva_supervise::{ActorRegistry, Aliveness, ExitReason, RoleState};

const LEASES: &str = "leases.coordination.k8s.io";

/// How long nothing was in the way of a process that leaves nothing undone when it ends.
pub(super) const QUIET: Duration = Duration::from_secs(10);

/// How a process came to its end in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Farewell {
    Whole,
    /// Something that was planted has ended it on its way.
    CutShort,
}

impl Checker {
    pub(crate) fn leaves(&self, place: usize) {
        let holder = self.holder();
        if let Some(seat) = self.bench().seats.get_mut(&place) {
            seat.ending = Some(seat.ending(holder));
            seat.leaving = true;
        }
    }

    /// Who has the lease, as it is stored.
    pub(super) fn holder(&self) -> Option<String> {
        let lease = self.0.insider.list(LEASES).into_iter().next()?;
        let holder = Object(lease);
        let holder = holder.at("/spec/holderIdentity").as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    /// T1: a process has ended that nobody asked to.
    pub(crate) fn exited(
        &self,
        place: usize,
        actors: &ActorRegistry<Role>,
        why: &Result<ExitReason, String>,
    ) {
        if let Some(text) = ends::unasked(why, actors.harmed(&Role::Root)) {
            self.report(InvariantViolation::new("T1", format!("c{place} {text}")));
        }
    }

    /// T1: a process could not begin.
    pub(crate) fn stillborn(&self, place: usize, why: &str) {
        let (who, why) = (format!("c{place}"), format!("cannot begin: {why}"));
        self.0.trace.note(&who, "process", &why);
        self.report(InvariantViolation::new("T1", format!("{who} {why}")));
    }

    /// T1: a process is ended since it has said for long that it is stuck.
    pub(crate) fn stuck(&self, place: usize, actors: &ActorRegistry<Role>, said: &Aliveness<Role>) {
        if let Some(text) = ends::stuck(said, &actors.hanging()) {
            self.report(InvariantViolation::new("T1", format!("c{place} {text}")));
        }
    }

    /// T4: an orderly end took too long.
    pub(crate) fn overdue(&self, place: usize) {
        let text = format!("c{place} did not end within its grace");
        self.report(InvariantViolation::new("T4", text));
    }

    /// T4: nothing is left after an orderly end, and nothing undone.
    pub(crate) fn ended(&self, place: usize, door: &ControllerView, farewell: Farewell) {
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
            let ending = ending.filter(|_| farewell == Farewell::Whole);
            let ending = ending.filter(|ending| ending.was_calm(now, QUIET));
            if ending.as_ref().is_some_and(|ending| ending.held.is_some()) {
                bench.vacant = Some(now);
            }
            ending.and_then(|ending| ending.undone(door.actors.overdue(), holder.as_deref()))
        };
        if let Some(text) = found {
            self.report(InvariantViolation::new("T4", format!("c{place} {text}")));
        }
    }
}
