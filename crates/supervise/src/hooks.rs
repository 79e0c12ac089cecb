//! Kill points and planted defects, for simulations and tests.
//!
//! Without the feature `hooks` the types of this module are empty and its functions do nothing, so that a shipped
//! program has none of it.

#[cfg(feature = "hooks")]
mod active;
#[cfg(not(feature = "hooks"))]
mod empty;
#[cfg(feature = "hooks")]
pub(crate) mod kill;

#[cfg(feature = "hooks")]
pub use active::SupervisionHooks;
#[cfg(feature = "hooks")]
pub(crate) use active::{
    RegistryHooks, RoleHooks, TaskHandle, TaskHolder, after_handler, before_handler, poll_handler,
};
#[cfg(not(feature = "hooks"))]
pub(crate) use empty::{
    RegistryHooks, RoleHooks, TaskHandle, TaskHolder, after_handler, before_handler, poll_handler,
};
