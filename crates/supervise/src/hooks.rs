//! Kill points and planted defects, for simulations and tests.
//!
//! Without the feature `hooks` the types of this module are empty and its functions do nothing, so that a shipped
//! program has none of it.

use std::fmt;

#[cfg(feature = "hooks")]
mod active;
#[cfg(not(feature = "hooks"))]
mod empty;
#[cfg(feature = "hooks")]
pub(crate) mod kill;

#[cfg(feature = "hooks")]
pub(crate) use active::{RegistryHooks, RoleHooks, after_handler, before_handler, poll_handler};
#[cfg(not(feature = "hooks"))]
pub(crate) use empty::{RegistryHooks, RoleHooks, after_handler, before_handler, poll_handler};

/// What a simulation changes in the supervision of one process. By default nothing.
pub trait SupervisionHooks: fmt::Debug + Send + Sync {
    /// Runs one poll of a handler; an implementation calls `poll` exactly once.
    fn poll(&self, poll: &mut dyn FnMut()) {
        poll();
    }

    /// Whether a child is restarted although its restart budget is spent.
    fn ignores_budget(&self) -> bool {
        false
    }

    /// Whether a child that has ended is left so.
    fn forgets_restart(&self) -> bool {
        false
    }

    /// Whether a supervisor never looks for children that stand still.
    fn forgets_sweep(&self) -> bool {
        false
    }

    /// Whether the time between two sweeps counts as time in which a child with messages stood still.
    fn counts_pause_as_stall(&self) -> bool {
        false
    }
}
