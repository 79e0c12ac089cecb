//! A supervisor of fixed children, one for one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tracing::Instrument;

use super::address::Inbox;
use super::census::{LifeGuard, RoleState};
use super::child::{
    Boarding, ChildSpec, Chore, DELAY_JITTER, Live, SWEEP_EVERY, children_stop_by, exit_of,
    give_up, spawn,
};
use super::life::attend;
use super::role::{ChildrenPolicy, Role, Shape};
use super::root::Kit;
use super::timers::Timers;
use crate::env::{Flaw, Generator};
use crate::policy::ledger::{RestartLedger, RestartPolicy, Verdict};

/// Grace that is kept for each child still to be stopped, however long the others take.
const STOP_RESERVE: Duration = Duration::from_millis(250);

/// A supervisor. Its children start in the given order, each before the next, and stop in the
/// reverse order. One that ends without being asked to is restarted after a delay, alone; when its
/// budget is spent the supervisor fails, and its own supervisor starts all of them anew.
pub fn supervisor(role: Role, children: Vec<ChildSpec>) -> ChildSpec {
    let children: Arc<[ChildSpec]> = children.into();
    ChildSpec::new(role, Shape::Supervisor, move |boarding, parent| {
        let supervisor = Supervisor {
            children: Arc::clone(&children),
        };
        async move { Ok(spawn(supervisor, boarding, parent).await?.get_cell()) }
    })
}

struct Supervisor {
    children: Arc<[ChildSpec]>,
}

struct Desk {
    policy: RestartPolicy,
    slots: Vec<Slot>,
    /// Reported and not yet settled, by slot.
    exits: BTreeMap<usize, String>,
    myself: ActorCell,
    inbox: Inbox<Chore<usize>>,
    timers: Timers,
    jitter: Generator,
    kit: Kit,
    guard: LifeGuard,
}

struct Slot {
    spec: ChildSpec,
    live: Option<Live>,
    generation: u64,
    ledger: RestartLedger,
}

impl Actor for Supervisor {
    type Msg = Chore<usize>;
    type State = Desk;
    type Arguments = Boarding;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        boarding: Boarding,
    ) -> Result<Self::State, ActorProcessingErr> {
        boarding.guard.seat(myself.get_cell());
        let (kit, life) = (boarding.kit.clone(), Arc::clone(boarding.guard.life()));
        Desk::open(&self.children, myself, boarding)
            .instrument(life.span())
            .await
            .map_err(|why| give_up(&kit, life.role(), why))
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        chore: Self::Msg,
        desk: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let (kit, life) = (desk.kit.clone(), Arc::clone(desk.guard.life()));
        #[cfg(feature = "sim")]
        life.meet(&chore);
        attend(&kit, &life, desk.attend_to(chore))
            .await
            .map_err(|why| give_up(&kit, life.role(), why))
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        desk: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some((cell, why)) = exit_of(event) {
            desk.note_exit(&cell, why);
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Self::Msg>,
        desk: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let span = desk.guard.life().span();
        desk.close().instrument(span).await;
        Ok(())
    }
}

impl Desk {
    async fn open(
        children: &[ChildSpec],
        myself: ActorRef<Chore<usize>>,
        Boarding { kit, guard }: Boarding,
    ) -> Result<Self, String> {
        let tenure = guard.life().tenure();
        let Some(ChildrenPolicy::Restart(policy)) = tenure.role().policy().children else {
            return Err(format!(
                "{} is no supervisor of fixed children; specify it with the constructor it needs",
                tenure.role()
            ));
        };
        let jitter = kit
            .seed
            .child(&format!("{}#{}", tenure.role(), tenure.number()));
        let cell = myself.get_cell();
        let inbox = Inbox::new(Arc::clone(guard.life()), move |chore| {
            myself.send_message(chore).is_ok()
        });
        let mut desk = Self {
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
            spec.check(Some(desk.role()))?;
            if desk
                .slots
                .iter()
                .any(|slot| slot.spec.role() == spec.role())
            {
                return Err(format!("{} is specified twice; remove one", spec.role()));
            }
            desk.slots.push(Slot {
                spec: spec.clone(),
                live: None,
                generation: 0,
                ledger: RestartLedger::default(),
            });
            desk.start(desk.slots.len() - 1).await?;
        }
        desk.arm(SWEEP_EVERY, Chore::Sweep);
        Ok(desk)
    }

    /// An error is the reason to give up.
    async fn attend_to(&mut self, chore: Chore<usize>) -> Result<(), String> {
        match chore {
            Chore::Start { slot, generation } => {
                let due = self
                    .slots
                    .get(slot)
                    .is_some_and(|slot| slot.generation == generation && slot.live.is_none());
                if due { self.start(slot).await } else { Ok(()) }
            }
            Chore::Settle => {
                for (slot, why) in std::mem::take(&mut self.exits) {
                    let live = self.slots.get_mut(slot).and_then(|slot| slot.live.take());
                    if let Some(live) = live {
                        self.restart(slot, &live.verdict_on_death(why))?;
                    }
                }
                Ok(())
            }
            Chore::Sweep => {
                let now = self.kit.clock.now().monotonic;
                let lives = self.slots.iter_mut().filter_map(|slot| slot.live.as_mut());
                for live in lives.filter(|_| !self.kit.census.flaws().has(Flaw::SweepForgotten)) {
                    live.sweep(&self.kit, now);
                }
                self.arm(SWEEP_EVERY, Chore::Sweep);
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
            self.inbox.deliver(Chore::Settle);
        }
        self.exits.insert(slot, why);
    }

    async fn start(&mut self, index: usize) -> Result<(), String> {
        let Some(slot) = self.slots.get_mut(index) else {
            return Ok(());
        };
        let supervisor = (self.guard.life().role(), self.myself.clone());
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
        self.kit.census.failed(&role, why);
        let now = self.kit.clock.now().monotonic;
        let flaws = self.kit.census.flaws();
        let verdict = match slot.ledger.record_exit(now, &self.policy) {
            Verdict::Escalate if flaws.has(Flaw::BudgetIgnored) => {
                Verdict::RestartAfter(self.policy.delay_base)
            }
            verdict => verdict,
        };
        match verdict {
            Verdict::RestartAfter(delay) => {
                slot.generation += 1;
                let generation = slot.generation;
                let after = self.jitter.jitter(delay, DELAY_JITTER);
                tracing::warn!(%role, why, ?after, "ended and will be started again");
                self.kit
                    .census
                    .set_state(&role, RoleState::Restarting { after });
                let slot = index;
                if !flaws.has(Flaw::RestartForgotten) {
                    self.arm(after, Chore::Start { slot, generation });
                }
                Ok(())
            }
            Verdict::Escalate => {
                let RestartPolicy {
                    max_restarts,
                    window,
                    ..
                } = self.policy;
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
        let deadline = children_stop_by(&self.kit, self.guard.life());
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
            live.see_it_end(&self.kit, end_by).await;
        }
    }

    fn role(&self) -> &Role {
        self.guard.life().role()
    }

    fn arm(&self, after: Duration, chore: Chore<usize>) {
        let inbox = self.inbox.clone();
        self.timers.arm(after, move || {
            inbox.deliver(chore);
        });
    }
}
