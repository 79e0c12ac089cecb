//! A supervisor of fixed children, one for one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tracing::Instrument;

use super::address::Inbox;
use super::child::{
    ChildSpec, DELAY_JITTER, Live, SWEEP_EVERY, SpawnContext, SupervisorMessage, children_stop_by,
    exit_of, give_up, spawn,
};
use super::handler::run_handler;
use super::hooks::SupervisionHooks;
use super::kit::Kit;
use super::ledger::{ExitVerdict, RestartLedger, RestartPolicy};
use super::registry::{IncarnationGuard, RoleState};
use super::role::{ActorKind, ChildrenPolicy, TreeRole};
use super::seed::Generator;
use super::timers::Timers;

/// Grace that is kept for each child still to be stopped, however long the others take.
const STOP_RESERVE: Duration = Duration::from_millis(250);

/// A supervisor. Its children start in the given order, each before the next, and stop in the
/// reverse order. One that ends without being asked to is restarted after a delay, alone; when its
/// budget is spent the supervisor fails, and its own supervisor starts all of them anew.
pub fn supervisor<R: TreeRole>(role: R, children: Vec<ChildSpec<R>>) -> ChildSpec<R> {
    let children: Arc<[ChildSpec<R>]> = children.into();
    ChildSpec::new(role, ActorKind::Supervisor, move |spawn_context, parent| {
        let supervisor = Supervisor { children: Arc::clone(&children) };
        async move { Ok(spawn(supervisor, spawn_context, parent).await?.get_cell()) }
    })
}

struct Supervisor<R: TreeRole> {
    children: Arc<[ChildSpec<R>]>,
}

struct SupervisorState<R: TreeRole> {
    policy: RestartPolicy,
    slots: Vec<ChildSlot<R>>,
    /// Reported and not yet settled, by slot.
    exits: BTreeMap<usize, String>,
    myself: ActorCell,
    inbox: Inbox<SupervisorMessage<usize>>,
    timers: Timers,
    jitter: Generator,
    kit: Kit<R>,
    guard: IncarnationGuard<R>,
}

struct ChildSlot<R: TreeRole> {
    spec: ChildSpec<R>,
    live: Option<Live<R>>,
    generation: u64,
    ledger: RestartLedger,
}

impl<R: TreeRole> ractor::Actor for Supervisor<R> {
    type Msg = SupervisorMessage<usize>;
    type State = SupervisorState<R>;
    type Arguments = SpawnContext<R>;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        spawn_context: SpawnContext<R>,
    ) -> Result<Self::State, ActorProcessingErr> {
        spawn_context.guard.seat(myself.get_cell());
        let (kit, role) = (spawn_context.kit.clone(), spawn_context.guard.role().clone());
        let span = spawn_context.guard.incarnation().span();
        SupervisorState::open(&self.children, myself, spawn_context)
            .instrument(span)
            .await
            .map_err(|why| give_up(&kit, &role, why))
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let (kit, role) = (state.kit.clone(), state.guard.role().clone());
        let incarnation = Arc::clone(state.guard.incarnation());
        incarnation.hooks().meet(&message);
        run_handler(&kit, &role, &incarnation, state.attend_to(message))
            .await
            .map_err(|why| give_up(&kit, &role, why))
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some((cell, why)) = exit_of(event) {
            state.note_exit(&cell, why);
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let span = state.guard.incarnation().span();
        state.close().instrument(span).await;
        Ok(())
    }
}

impl<R: TreeRole> SupervisorState<R> {
    async fn open(
        children: &[ChildSpec<R>],
        myself: ActorRef<SupervisorMessage<usize>>,
        SpawnContext { kit, guard }: SpawnContext<R>,
    ) -> Result<Self, String> {
        let (role, epoch) = (guard.role(), guard.incarnation().epoch());
        let Some(ChildrenPolicy::Restart(policy)) = role.policy().children else {
            return Err(format!(
                "{role} is no supervisor of fixed children; specify it with the constructor it needs"
            ));
        };
        let jitter = kit.seed.child(&format!("{role}#{}", epoch.number()));
        let cell = myself.get_cell();
        let inbox = Inbox::new(Arc::clone(guard.incarnation()), move |message| {
            myself.send_message(message).is_ok()
        });
        let mut state = Self {
            policy,
            slots: Vec::with_capacity(children.len()),
            exits: BTreeMap::new(),
            myself: cell,
            inbox,
            timers: Timers::default(),
            jitter,
            kit,
            guard,
        };
        for spec in children {
            spec.check(Some(state.guard.role()))?;
            if state.slots.iter().any(|slot| slot.spec.role() == spec.role()) {
                return Err(format!("{} is specified twice; remove one", spec.role()));
            }
            state.slots.push(ChildSlot {
                spec: spec.clone(),
                live: None,
                generation: 0,
                ledger: RestartLedger::default(),
            });
            state.start(state.slots.len() - 1).await?;
        }
        state.timers.arm(SWEEP_EVERY, &state.inbox, SupervisorMessage::Sweep);
        Ok(state)
    }

    /// An error is the reason to give up.
    async fn attend_to(&mut self, message: SupervisorMessage<usize>) -> Result<(), String> {
        match message {
            SupervisorMessage::Start { slot, generation } => {
                let due = self
                    .slots
                    .get(slot)
                    .is_some_and(|slot| slot.generation == generation && slot.live.is_none());
                if due { self.start(slot).await } else { Ok(()) }
            }
            SupervisorMessage::Settle => {
                for (slot, why) in std::mem::take(&mut self.exits) {
                    let live = self.slots.get_mut(slot).and_then(|slot| slot.live.take());
                    if let Some(live) = live {
                        self.restart(slot, &live.verdict_on_death(why))?;
                    }
                }
                Ok(())
            }
            SupervisorMessage::Sweep => {
                let now = self.kit.clock.now().monotonic;
                let is_due = !self.kit.actors.hooks().has(SupervisionHooks::forgets_sweep);
                let lives = self.slots.iter_mut().filter_map(|slot| slot.live.as_mut());
                for live in lives.filter(|_| is_due) {
                    live.sweep(&self.kit, now);
                }
                self.timers.arm(SWEEP_EVERY, &self.inbox, SupervisorMessage::Sweep);
                Ok(())
            }
        }
    }

    fn note_exit(&mut self, cell: &ActorCell, why: String) {
        let slot = self
            .slots
            .iter()
            .position(|slot| slot.live.as_ref().is_some_and(|live| live.cell == *cell));
        let Some(slot) = slot else {
            return;
        };
        if self.exits.is_empty() {
            // Events overtake messages: those of the same instant are noted before this is read.
            self.inbox.deliver(SupervisorMessage::Settle);
        }
        self.exits.insert(slot, why);
    }

    async fn start(&mut self, index: usize) -> Result<(), String> {
        let Some(slot) = self.slots.get_mut(index) else {
            return Ok(());
        };
        let supervisor = (self.guard.role(), self.myself.clone());
        match slot.spec.start(&self.kit, Some(supervisor)).await {
            Ok(live) => {
                slot.live = Some(live);
                Ok(())
            }
            Err(why) => self.restart(index, &why),
        }
    }

    fn restart(&mut self, index: usize, why: &str) -> Result<(), String> {
        let Some(slot) = self.slots.get_mut(index) else {
            return Ok(());
        };
        let role = slot.spec.role().clone();
        self.kit.actors.failed(&role, why);
        let now = self.kit.clock.now().monotonic;
        let hooks = self.kit.actors.hooks();
        let verdict = match slot.ledger.record_exit(now, &self.policy) {
            ExitVerdict::Escalate if hooks.has(SupervisionHooks::ignores_budget) => {
                ExitVerdict::RestartAfter(self.policy.delay_base)
            }
            verdict => verdict,
        };
        match verdict {
            ExitVerdict::RestartAfter(delay) => {
                slot.generation += 1;
                let generation = slot.generation;
                let after = self.jitter.jitter(delay, DELAY_JITTER);
                tracing::warn!(%role, why, ?after, "ended and will be started again");
                self.kit.actors.set_state(&role, RoleState::Restarting { after });
                let slot = index;
                if !hooks.has(SupervisionHooks::forgets_restart) {
                    let start = SupervisorMessage::Start { slot, generation };
                    self.timers.arm(after, &self.inbox, start);
                }
                Ok(())
            }
            ExitVerdict::Escalate => {
                let RestartPolicy { max_restarts, window, .. } = self.policy;
                Err(format!(
                    "{role} ended more than {max_restarts} times within {} s, at last: {why}",
                    window.as_secs()
                ))
            }
        }
    }

    /// Stops the children, last started first. One that hangs costs the others no more than their
    /// grace beyond the reserve.
    async fn close(&mut self) {
        let deadline = children_stop_by(&self.kit, &self.guard);
        while let Some(slot) = self.slots.pop() {
            let Some(live) = slot.live else {
                continue;
            };
            let now = self.kit.clock.now().monotonic;
            let others = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
            let whole = deadline.saturating_sub(now);
            // Many children may need more reserve than there is: then each gets an equal share.
            let left = whole
                .saturating_sub(STOP_RESERVE.saturating_mul(others))
                .max(whole / others.saturating_add(1));
            let end_by = now.saturating_add(left.min(slot.spec.role().policy().grace));
            live.ask_to_end(&self.kit, end_by);
            live.join(&self.kit, end_by).await;
        }
    }
}
