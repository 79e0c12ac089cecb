//! What the application states about each place in its tree, and how a place can be treated.

use std::fmt::{Debug, Display};
use std::time::Duration;

use super::ledger::{QuarantinePolicy, RestartPolicy};

/// A place in the tree, filled by one life after another. Ordered as in the tree, and displayed by its name in it.
pub trait TreeRole: Clone + Ord + Debug + Display + Send + Sync + 'static {
    /// The outermost supervisor.
    fn root() -> Self;

    /// Value of the label `role` in metrics; the same for all roles of a sort.
    fn label(&self) -> &'static str;

    /// Its supervisor; `None` for the root.
    fn parent(&self) -> Option<Self>;

    /// How it is treated.
    fn policy(&self) -> RolePolicy;
}

/// What kind of actor fills a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorKind {
    /// Starts and restarts others.
    Supervisor,
    /// Decides and never awaits.
    Machine,
    /// Awaits the outside and never decides.
    Pump,
}

/// How an orderly shutdown ends a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopHow {
    /// Let it finish what it handles, and flush.
    Stop,
    /// Drop what it handles: it holds nothing.
    Kill,
}

/// How a role is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolePolicy {
    /// What kind of actor fills it.
    pub kind: ActorKind,
    /// How it is ended in an orderly shutdown.
    pub stop: StopHow,
    /// How long that may take before it is killed.
    pub grace: Duration,
    /// How long messages may wait without one being finished before it is killed as hung; `None`
    /// for roles whose handlers may rightly take for ever.
    pub stall_after: Option<Duration>,
    /// How its children are restarted; `None` for roles without children.
    pub children: Option<ChildrenPolicy>,
}

/// How a supervisor restarts its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildrenPolicy {
    /// Fixed children, one for one, each with its own budget.
    Restart(RestartPolicy),
    /// Children by key, without a budget for the single one.
    Quarantine(QuarantinePolicy),
}
