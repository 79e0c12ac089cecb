//! The actor kit: supervised roles that can be killed at any moment and lose nothing.
//!
//! A supervisor starts its children in order, gives each life a [`Epoch`], publishes its
//! [`Address`], sends it [`Event::Started`], restarts it when it ends without being asked to, and
//! fails in its turn when that does not help. Mailboxes die with the life that owns them, so a
//! message is a hint and never the only copy of a fact: facts wait in a [`DirtySet`], a [`Slot`] or
//! a cell ([`Writer`], [`Reader`]), which outlive every life.

mod actor;
mod address;
mod cell;
mod child;
mod clock;
mod dirty_set;
mod dynamic_supervisor;
mod epoch;
mod event;
mod handler;
mod hooks;
mod incarnation;
mod kit;
mod ledger;
mod registry;
mod role;
mod root;
mod seed;
mod shell;
mod slot;
mod stall;
mod supervisor;
mod timers;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use actor::{Actor, ActorError, ActorResult, Context, StateMachine};
pub use address::{Address, Delivery};
pub use cell::{CellFollower, Reader, Writer};
pub use child::ChildSpec;
pub use clock::Clock;
pub use dirty_set::DirtySet;
pub use dynamic_supervisor::{Order, Registry, dynamic_supervisor};
pub use epoch::{Epoch, Fenced, Guard};
pub use event::Event;
pub use hooks::SupervisionHooks;
#[cfg(feature = "hooks")]
pub use hooks::kill::{KillAt, Mishap};
pub use kit::Kit;
pub use ledger::{QuarantinePolicy, RestartPolicy};
pub use registry::{ActorRegistry, Aliveness, RoleReport, RoleState, RoleTotals};
pub use role::{ActorKind, ChildrenPolicy, RolePolicy, StopHow, TreeRole};
pub use root::{ExitReason, run};
pub use seed::{Generator, SeedTree};
pub use shell::{child, machine};
pub use slot::Slot;
pub use supervisor::supervisor;
pub use timers::TimerEpoch;

/// What a mutex guards, also where a thread has panicked with it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
