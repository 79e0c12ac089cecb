//! The actor kit: supervised roles that can be killed at any moment and lose nothing.
//!
//! A supervisor starts its children in order, gives each life a [`Tenure`], publishes its
//! [`Address`], sends it [`Occasion::Wake`], restarts it when it ends without being asked to, and
//! fails in its turn when that does not help. Mailboxes die with the life that owns them, so a
//! message is a hint and never the only copy of a fact: facts wait in a [`Doorbell`], a [`Slot`] or
//! a [`Cell`], which outlive every life.

mod address;
mod behaviour;
mod bell;
mod cell;
mod census;
#[cfg(feature = "sim")]
mod chaos;
mod child;
mod keyed;
mod life;
mod machine;
mod role;
mod root;
mod shell;
mod slot;
mod stall;
mod supervisor;
mod tenure;
mod timers;

pub use address::{Address, Delivery};
pub use behaviour::{Behaviour, Context, Occasion, Trouble};
pub use bell::Doorbell;
pub use cell::{Cell, Follower};
pub use census::{Aliveness, Census, RoleReport, RoleState, RoleTotals};
#[cfg(feature = "sim")]
pub use chaos::{KillAt, Mishap};
pub use child::ChildSpec;
pub use keyed::{Order, Registry, keyed};
pub use machine::{Duty, Machine};
pub use role::{ChildrenPolicy, ParseRoleError, Role, RolePolicy, Shape, StopHow, WatchedKind};
pub use root::{ExitReason, Kit, run};
pub use shell::{child, machine};
pub use slot::Slot;
pub use supervisor::supervisor;
pub use tenure::{Guard, Superseded, Tenure};

#[cfg(test)]
#[cfg(feature = "sim")]
mod tests;
