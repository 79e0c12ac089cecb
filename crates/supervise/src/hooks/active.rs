//! Hooks of a build for simulations and tests.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Poll;

use super::SupervisionHooks;
use super::kill::{KillAt, KillHooks, PauseGate};
use crate::locked;

pub(crate) struct RegistryHooks<R> {
    roles: Mutex<BTreeMap<R, Arc<KillHooks>>>,
    pub(crate) gate: PauseGate,
    planted: OnceLock<Arc<dyn SupervisionHooks>>,
}

impl<R> Default for RegistryHooks<R> {
    fn default() -> Self {
        Self { roles: Mutex::default(), gate: PauseGate::default(), planted: OnceLock::new() }
    }
}

impl<R: Clone + Ord> RegistryHooks<R> {
    pub(crate) fn of(&self, role: &R) -> RoleHooks {
        Arc::clone(self.roles().entry(role.clone()).or_default())
    }

    pub(crate) fn roles(&self) -> MutexGuard<'_, BTreeMap<R, Arc<KillHooks>>> {
        locked(&self.roles)
    }

    /// The first call counts.
    pub(crate) fn plant(&self, hooks: Arc<dyn SupervisionHooks>) {
        self.planted.get_or_init(|| hooks);
    }

    /// Whether a planted defect is in force.
    pub(crate) fn has(
        &self,
        defect: impl FnOnce(&(dyn SupervisionHooks + 'static)) -> bool,
    ) -> bool {
        self.planted.get().is_some_and(|hooks| defect(&**hooks))
    }
}

pub(crate) type RoleHooks = Arc<KillHooks>;

/// Waits at the gate of a paused process, then lets happen what is planned before this handler. Returns the number
/// of the event.
pub(crate) async fn before_handler<R>(
    registry: &RegistryHooks<R>,
    role: &RoleHooks,
    kill: impl FnOnce(),
) -> u64 {
    registry.gate.pass().await;
    let turn = role.begin();
    if role.strikes(KillAt::Before(turn)) {
        kill();
        std::future::pending::<()>().await;
    }
    role.befall().await;
    turn
}

/// Lets happen what is planned after this handler.
pub(crate) fn after_handler(role: &RoleHooks, turn: u64, kill: impl FnOnce()) {
    if role.strikes(KillAt::After(turn)) {
        kill();
    }
}

pub(crate) async fn poll_handler<R, T>(
    registry: &RegistryHooks<R>,
    work: impl Future<Output = T>,
) -> T {
    let Some(hooks) = registry.planted.get() else {
        return work.await;
    };
    let mut work = pin!(work);
    poll_fn(|context| {
        let mut polled = Poll::Pending;
        hooks.poll(&mut || polled = work.as_mut().poll(context));
        polled
    })
    .await
}
