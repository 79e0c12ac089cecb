//! Hooks of a shipped build: nothing.
#![expect(clippy::unused_self, reason = "the functions have the signatures of the other build")]

use std::fmt;
use std::future::{Future, Ready, ready};
use std::marker::PhantomData;

use tokio::task::JoinHandle;

use super::SupervisionHooks;

pub(crate) struct RegistryHooks<R>(PhantomData<fn() -> R>);

impl<R> Default for RegistryHooks<R> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<R> RegistryHooks<R> {
    pub(crate) fn of(&self, _role: &R) -> RoleHooks {
        RoleHooks
    }

    pub(crate) fn has(
        &self,
        _defect: impl FnOnce(&(dyn SupervisionHooks + 'static)) -> bool,
    ) -> bool {
        false
    }
}

#[derive(Debug)]
pub(crate) struct RoleHooks;

impl RoleHooks {
    pub(crate) fn meet(&self, _message: &dyn fmt::Debug) {}

    pub(crate) fn begin_effect(&self) {}

    pub(crate) fn hold(&self, _task: &JoinHandle<()>) {}
}

pub(crate) fn before_handler<R>(
    _registry: &RegistryHooks<R>,
    _role: &RoleHooks,
    _kill: impl FnOnce(),
) -> Ready<()> {
    ready(())
}

pub(crate) fn after_handler(_role: &RoleHooks, _turn: (), _kill: impl FnOnce()) {}

pub(crate) fn poll_handler<R, T, W: Future<Output = T>>(
    _registry: &RegistryHooks<R>,
    work: W,
) -> W {
    work
}
