//! The children of a keyed supervisor and what happens to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorCell, ActorId, ActorRef};

use super::registry::{Envelope, Order, Registry};
use crate::actor::Context;
use crate::address::Inbox;
use crate::child::{
    ChildSpec, DELAY_JITTER, Live, SWEEP_EVERY, SpawnContext, SupervisorMessage, children_stop_by,
};
use crate::event::Event;
use crate::kit::Kit;
use crate::ledger::{KeyLedger, KeyVerdict, QuarantinePolicy};
use crate::registry::{IncarnationGuard, RoleState};
use crate::role::{ChildrenPolicy, TreeRole};
use crate::seed::Generator;
use crate::timers::Timers;

/// How long a child that was quarantined must run before it is released.
const PROBATION: Duration = Duration::from_secs(1);

pub(super) struct DynamicSupervisorState<R: Registry> {
    registry: R,
    cx: Context<R::Msg>,
    policy: QuarantinePolicy,
    children: BTreeMap<R::Key, Child<R::Role>>,
    /// Whose cell it is, for those that run or are about to end.
    cells: BTreeMap<ActorId, R::Key>,
    ledger: KeyLedger<R::Key>,
    /// Reported and not yet settled.
    exits: BTreeMap<R::Key, String>,
    /// Grows with every delayed start, so that no two of them are taken for each other.
    generation: u64,
    myself: ActorCell,
    inbox: Inbox<SupervisorMessage<R::Key>>,
    timers: Timers,
    jitter: Generator,
    pub(super) kit: Kit<R::Role>,
    pub(super) guard: IncarnationGuard<R::Role>,
}

struct Child<R: TreeRole> {
    spec: ChildSpec<R>,
    phase: Phase<R>,
    quarantined: bool,
}

enum Phase<R> {
    /// Between creation and the first attempt to start; never seen between two letters.
    New,
    Running(Live<R>),
    /// For a restart, which may be brought forward from `due` to `earliest`.
    Waiting {
        generation: u64,
        due: Duration,
        earliest: Duration,
    },
    /// On order, until `deadline`; then `again` says whether it has been ordered to run meanwhile.
    Ending {
        live: Live<R>,
        deadline: Duration,
        again: bool,
    },
}

impl<R: Registry> DynamicSupervisorState<R> {
    pub(super) fn open(
        registry: R,
        myself: &ActorRef<Envelope<R::Key, R::Msg>>,
        SpawnContext { kit, guard }: SpawnContext<R::Role>,
    ) -> Result<Self, String> {
        let incarnation = guard.incarnation();
        let role = guard.role();
        let Some(ChildrenPolicy::Quarantine(policy)) = role.policy().children else {
            return Err(format!(
                "{role} is no supervisor of children by key; specify it with the constructor it \
                 needs"
            ));
        };
        // Some of those that died with the former life may not come back.
        kit.actors.forget_children(role);
        let jitter = kit.seed.child(&format!("{role}#{}", incarnation.epoch().number()));
        let envelopes = myself.clone();
        let occasions = Inbox::new(Arc::clone(incarnation), move |event| {
            envelopes.send_message(Envelope::Event(event)).is_ok()
        });
        let envelopes = myself.clone();
        let inbox = Inbox::new(Arc::clone(incarnation), move |message| {
            envelopes.send_message(Envelope::Internal(message)).is_ok()
        });
        let state = Self {
            registry,
            cx: Context::new(&kit, Arc::clone(incarnation), occasions),
            policy,
            children: BTreeMap::new(),
            cells: BTreeMap::new(),
            ledger: KeyLedger::new(),
            exits: BTreeMap::new(),
            generation: 0,
            myself: myself.get_cell(),
            inbox,
            timers: Timers::default(),
            jitter,
            kit,
            guard,
        };
        state.timers.arm(SWEEP_EVERY, &state.inbox, SupervisorMessage::Sweep);
        Ok(state)
    }

    /// An error is the reason to give up.
    pub(super) async fn read(&mut self, envelope: Envelope<R::Key, R::Msg>) -> Result<(), String> {
        match envelope {
            Envelope::Event(event) => self.reconcile(event).await,
            Envelope::Internal(SupervisorMessage::Settle) => self.settle().await,
            Envelope::Internal(SupervisorMessage::Start { slot, generation }) => {
                let expected = generation;
                let due = self.children.get(&slot).is_some_and(|child| {
                    matches!(child.phase, Phase::Waiting { generation, .. } if generation == expected)
                });
                if due { self.start(slot).await } else { Ok(()) }
            }
            Envelope::Internal(SupervisorMessage::Sweep) => {
                self.sweep();
                self.timers.arm(SWEEP_EVERY, &self.inbox, SupervisorMessage::Sweep);
                Ok(())
            }
        }
    }

    pub(super) fn note_exit(&mut self, cell: &ActorCell, why: String) {
        let Some(key) = self.cells.remove(&cell.get_id()) else {
            return;
        };
        if self.exits.is_empty() {
            // Events overtake messages: those of the same instant are noted before this is read.
            self.inbox.deliver(SupervisorMessage::Settle);
        }
        self.exits.insert(key, why);
    }

    /// Stops all children at the same time: they do not depend on each other.
    pub(super) async fn close(&mut self) {
        let deadline = children_stop_by(&self.kit, &self.guard);
        let mut ending = Vec::with_capacity(self.children.len());
        for child in std::mem::take(&mut self.children).into_values() {
            let (Phase::Running(live) | Phase::Ending { live, .. }) = child.phase else {
                continue;
            };
            let grace = child.spec.role().policy().grace;
            let end_by = deadline.min(self.now().saturating_add(grace));
            live.ask_to_end(&self.kit, end_by);
            ending.push((live, end_by));
        }
        for (live, end_by) in ending {
            live.join(&self.kit, end_by).await;
        }
    }

    async fn reconcile(&mut self, event: Event<R::Msg>) -> Result<(), String> {
        // A change that is ordered must not be lost to an exit which came before it.
        self.settle().await?;
        for order in self.registry.reconcile(&self.cx, event) {
            match order {
                Order::Run(key) => self.run(key).await?,
                Order::End(key) => self.end(&key),
            }
        }
        Ok(())
    }

    async fn run(&mut self, key: R::Key) -> Result<(), String> {
        let now = self.now();
        match self.children.get_mut(&key).map(|child| &mut child.phase) {
            None => {
                let child = Child {
                    spec: self.registry.child(&key),
                    phase: Phase::New,
                    quarantined: false,
                };
                self.children.insert(key.clone(), child);
                self.start(key).await
            }
            Some(Phase::Waiting { earliest, .. }) if *earliest <= now => self.start(key).await,
            Some(Phase::Waiting { due, earliest, .. }) if *earliest < *due => {
                let (due, earliest) = (*earliest, *earliest);
                self.wait(&key, due, earliest);
                Ok(())
            }
            Some(Phase::Ending { again, .. }) => {
                *again = true;
                Ok(())
            }
            Some(Phase::New | Phase::Running(_) | Phase::Waiting { .. }) => Ok(()),
        }
    }

    fn end(&mut self, key: &R::Key) {
        let now = self.now();
        let Some(mut child) = self.children.remove(key) else {
            return;
        };
        child.phase = match child.phase {
            Phase::New | Phase::Waiting { .. } => {
                self.forget(key, &child.spec);
                return;
            }
            Phase::Running(live) => {
                let deadline = now.saturating_add(child.spec.role().policy().grace);
                live.ask_to_end(&self.kit, deadline);
                Phase::Ending { live, deadline, again: false }
            }
            Phase::Ending { live, deadline, .. } => Phase::Ending { live, deadline, again: false },
        };
        self.children.insert(key.clone(), child);
    }

    fn forget(&mut self, key: &R::Key, spec: &ChildSpec<R::Role>) {
        self.ledger.forget(key);
        self.kit.actors.forget(spec.role());
        self.registry.ended(key);
    }

    async fn start(&mut self, key: R::Key) -> Result<(), String> {
        let Some(child) = self.children.get_mut(&key) else {
            return Ok(());
        };
        let supervisor = (self.guard.role(), self.myself.clone());
        match child.spec.start(&self.kit, Some(supervisor)).await {
            Ok(live) => {
                self.cells.insert(live.cell.get_id(), key.clone());
                child.phase = Phase::Running(live);
                self.registry.started(&key);
                Ok(())
            }
            Err(why) => self.failed(&key, Duration::ZERO, &why),
        }
    }

    async fn settle(&mut self) -> Result<(), String> {
        let now = self.now();
        for (key, why) in std::mem::take(&mut self.exits) {
            let Some(mut child) = self.children.remove(&key) else {
                continue;
            };
            match child.phase {
                Phase::Running(live) => {
                    let lived = now.saturating_sub(live.started);
                    child.phase = Phase::New;
                    self.children.insert(key.clone(), child);
                    self.failed(&key, lived, &live.verdict_on_death(why))?;
                }
                Phase::Ending { again, .. } => {
                    self.forget(&key, &child.spec);
                    if again {
                        self.run(key).await?;
                    }
                }
                Phase::New | Phase::Waiting { .. } => {
                    self.children.insert(key, child);
                }
            }
        }
        Ok(())
    }

    fn failed(&mut self, key: &R::Key, lived: Duration, why: &str) -> Result<(), String> {
        let now = self.now();
        let keys = self.children.len();
        let Some(child) = self.children.get_mut(key) else {
            return Ok(());
        };
        let role = child.spec.role().clone();
        self.kit.actors.failed(&role, why);
        let verdict = self.ledger.record_exit(key, now, lived, keys, &self.policy);
        let (after, state) = match verdict {
            KeyVerdict::SystemicFailure { failed, of } => {
                let seconds = self.policy.systemic_window.as_secs();
                return Err(format!(
                    "{failed} of {of} children failed within {seconds} s, at last {role}: {why}"
                ));
            }
            KeyVerdict::RestartAfter(delay) => {
                let after = self.jitter.jitter(delay, DELAY_JITTER);
                (after, RoleState::Restarting { after })
            }
            KeyVerdict::Quarantine { failures, retry_in } => {
                let after = self.jitter.jitter(retry_in, DELAY_JITTER);
                child.quarantined = true;
                self.registry.quarantined(key, failures, why, after);
                (after, RoleState::Quarantined)
            }
        };
        tracing::warn!(%role, why, ?after, ?state, "ended and will be started again");
        self.kit.actors.set_state(&role, state);
        let earliest = now.saturating_add(self.policy.delay_base);
        self.wait(key, now.saturating_add(after), earliest);
        Ok(())
    }

    fn wait(&mut self, key: &R::Key, due: Duration, earliest: Duration) {
        self.generation += 1;
        let generation = self.generation;
        if let Some(child) = self.children.get_mut(key) {
            child.phase = Phase::Waiting { generation, due, earliest };
        }
        let slot = key.clone();
        let after = due.saturating_sub(self.now());
        let start = SupervisorMessage::Start { slot, generation };
        self.timers.arm(after, &self.inbox, start);
    }

    fn sweep(&mut self) {
        let now = self.kit.clock.now().monotonic;
        for (key, child) in &mut self.children {
            match &mut child.phase {
                Phase::Running(live) => {
                    live.sweep(&self.kit, now);
                    if child.quarantined && proven(live, now) {
                        child.quarantined = false;
                        self.registry.released(key);
                    }
                }
                Phase::Ending { live, deadline, .. } if *deadline <= now => live.cell.kill(),
                Phase::Ending { .. } | Phase::New | Phase::Waiting { .. } => {}
            }
        }
    }

    fn now(&self) -> Duration {
        self.kit.clock.now().monotonic
    }
}

/// Whether a life has shown that it works: its wake-up is handled, nothing waits, and it has lasted.
fn proven<R>(live: &Live<R>, now: Duration) -> bool {
    let handled = live.incarnation.handled();
    handled > 0
        && handled == live.incarnation.sent()
        && now.saturating_sub(live.started) >= PROBATION
}
