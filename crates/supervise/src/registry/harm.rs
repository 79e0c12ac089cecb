//! What tests and chaos do to the roles of a process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ActorRegistry;
use crate::hooks::SupervisionHooks;
use crate::hooks::kill::{KillAt, Mishap};
use crate::locked;
use crate::role::TreeRole;

impl<R: TreeRole> ActorRegistry<R> {
    /// How many lives have begun, of all roles.
    pub fn lives(&self) -> u64 {
        self.0.incarnations.load(Ordering::Acquire)
    }

    /// Kills the present life of a role now, with everything below it; `false` if there is none.
    pub fn kill(&self, role: &R) -> bool {
        let alive = self.table().get(role).is_some_and(|entry| entry.alive);
        if alive {
            self.0.hooks.of(role).harm();
        }
        self.kill_tree(role);
        alive
    }

    /// Kills a role once, at a chosen occasion of it. One that has passed never comes.
    pub fn kill_at(&self, role: &R, moment: KillAt) {
        locked(&self.0.hooks.of(role).pending).insert(moment);
    }

    /// Kills a role once, before or after the next occasion that it handles.
    pub fn kill_next(&self, role: &R, moment: fn(u64) -> KillAt) {
        let hooks = self.0.hooks.of(role);
        let next = hooks.begun.load(Ordering::Acquire) + 1;
        locked(&hooks.pending).insert(moment(next));
    }

    /// Lets something befall a role at the next occasion that it handles.
    pub fn befall(&self, role: &R, mishap: Mishap) {
        *locked(&self.0.hooks.of(role).mishap) = Some(mishap);
    }

    /// Whether a kill or a mishap of this role has yet to come.
    pub fn is_armed(&self, role: &R) -> bool {
        self.0.hooks.of(role).is_armed()
    }

    /// Whether a kill or a mishap of any role has yet to come.
    pub fn is_any_armed(&self) -> bool {
        let hooks = self.0.hooks.roles();
        hooks.values().any(|hooks| hooks.is_armed())
    }

    /// The roles whose handler never ends, since that was asked for.
    pub fn hanging(&self) -> Vec<R> {
        let hooks = self.0.hooks.roles();
        let hanging = hooks.iter().filter(|(_, hooks)| hooks.hangs.load(Ordering::Acquire));
        hanging.map(|(role, _)| role.clone()).collect()
    }

    /// How often something was done to this role, and to any: kills, aborted tasks, panics and hangs.
    pub fn harmed(&self, role: &R) -> (u64, u64) {
        let hooks = self.0.hooks.roles();
        let of_role = hooks.get(role).map_or(0, |hooks| hooks.harmed());
        (of_role, hooks.values().map(|hooks| hooks.harmed()).sum())
    }

    /// No kill and no mishap of this role is to come any more.
    pub fn disarm_role(&self, role: &R) {
        self.0.hooks.of(role).disarm();
    }

    /// No kill and no mishap is to come any more.
    pub fn disarm(&self) {
        let hooks = self.0.hooks.roles();
        hooks.values().for_each(|hooks| hooks.disarm());
    }

    /// Aborts the task of a role's present life; `false` if there is none.
    pub fn abort(&self, role: &R) -> bool {
        let alive = self.table().get(role).is_some_and(|entry| entry.alive);
        let hooks = self.0.hooks.of(role);
        // Between two lives the handle is that of the last one.
        let task = locked(&hooks.task).clone();
        let task = task.filter(|task| alive && !task.is_finished());
        if task.is_some() {
            hooks.harm();
        }
        task.inspect(tokio::task::AbortHandle::abort).is_some()
    }

    /// Lets no handler begin, or lets them begin again: the process is paused, or goes on.
    pub fn pause(&self, paused: bool) {
        self.0.hooks.gate.close(paused);
    }

    /// Changes the supervision of this process; the first call counts.
    pub fn plant(&self, hooks: Arc<dyn SupervisionHooks>) {
        self.0.hooks.plant(hooks);
    }

    /// Reports how often each role received each message since the last call, by the name of the message.
    pub fn take_met(&self, mut report: impl FnMut(&R, &str, u64)) {
        let hooks = self.0.hooks.roles();
        for (role, hooks) in &*hooks {
            hooks.take_met(|name, times| report(role, name, times));
        }
    }
}
