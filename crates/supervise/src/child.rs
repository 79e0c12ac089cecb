//! A child as its supervisor sees it.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use ractor::{ActorCell, ActorRef, SpawnErr, SupervisionEvent};

use super::hooks::SupervisionHooks;
use super::incarnation::Incarnation;
use super::kit::Kit;
use super::registry::{IncarnationGuard, RoleState};
use super::role::{ActorKind, StopHow, TreeRole};
use super::stall::StallWatch;

/// How often a supervisor looks for children that stand still.
pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Share of a restart delay by which it varies, so that restarts do not march in step.
pub(super) const DELAY_JITTER: f64 = 0.2;

/// How long the end of a killed child is awaited. At an await it ends at once; in a handler without
/// one it ends when it likes.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// How to start a role, again and again.
#[derive(Clone)]
pub struct ChildSpec<R: TreeRole> {
    role: R,
    kind: ActorKind,
    spawn: Arc<Spawn<R>>,
}

type Spawn<R> = dyn Fn(SpawnContext<R>, Option<ActorCell>) -> BoxFuture<'static, Result<ActorCell, SpawnErr>>
    + Send
    + Sync;

pub(super) struct SpawnContext<R: TreeRole> {
    pub(super) kit: Kit<R>,
    pub(super) guard: IncarnationGuard<R>,
}

pub(super) async fn spawn<R: TreeRole, A: ractor::Actor<Arguments = SpawnContext<R>>>(
    actor: A,
    spawn_context: SpawnContext<R>,
    supervisor: Option<ActorCell>,
) -> Result<ActorRef<A::Msg>, SpawnErr> {
    let incarnation = Arc::clone(spawn_context.guard.incarnation());
    let (actor, task) = match supervisor {
        Some(supervisor) => {
            ractor::Actor::spawn_linked(None, actor, spawn_context, supervisor).await?
        }
        None => ractor::Actor::spawn(None, actor, spawn_context).await?,
    };
    incarnation.hooks().hold(&task);
    Ok(actor)
}

impl<R: TreeRole> ChildSpec<R> {
    pub(super) fn new<F, S>(role: R, kind: ActorKind, spawn: F) -> Self
    where
        F: Fn(SpawnContext<R>, Option<ActorCell>) -> S + Send + Sync + 'static,
        S: Future<Output = Result<ActorCell, SpawnErr>> + Send + 'static,
    {
        Self {
            role,
            kind,
            spawn: Arc::new(move |spawn_context, supervisor| {
                spawn(spawn_context, supervisor).boxed()
            }),
        }
    }

    /// The role that is filled.
    pub fn role(&self) -> &R {
        &self.role
    }

    pub(super) fn check(&self, supervisor: Option<&R>) -> Result<(), String> {
        let parent = self.role.parent();
        if parent.as_ref() != supervisor {
            let name = |role: Option<&R>| role.map_or_else(|| "no parent".to_owned(), R::to_string);
            return Err(format!(
                "{} was put under {} but belongs under {}; move its specification",
                self.role,
                name(supervisor),
                name(parent.as_ref()),
            ));
        }
        let expected = self.role.policy().kind;
        if self.kind != expected {
            return Err(format!(
                "{} is specified as a {:?} but its role is that of a {expected:?}; \
                 use the constructor of that shape",
                self.role, self.kind,
            ));
        }
        Ok(())
    }

    pub(super) async fn start(
        &self,
        kit: &Kit<R>,
        supervisor: Option<(&R, ActorCell)>,
    ) -> Result<Live<R>, String> {
        self.check(supervisor.as_ref().map(|(role, _)| *role))?;
        let guard = kit.actors.begin(&self.role, kit.clock.now());
        let incarnation = Arc::clone(guard.incarnation());
        let spawn_context = SpawnContext { kit: kit.clone(), guard };
        match (self.spawn)(spawn_context, supervisor.map(|(_, cell)| cell)).await {
            Ok(cell) => {
                let started = kit.clock.now().monotonic;
                Ok(Live {
                    role: self.role.clone(),
                    cell,
                    incarnation,
                    started,
                    swept: started,
                    stall: StallWatch::default(),
                    kill_reason: None,
                })
            }
            Err(SpawnErr::StartupFailed(why)) => Err(why.to_string()),
            Err(other) => Err(other.to_string()),
        }
    }
}

wva_base::debug_of!([R: TreeRole] ChildSpec<R>: role, kind);

pub(super) struct Live<R> {
    role: R,
    pub(super) cell: ActorCell,
    pub(super) incarnation: Arc<Incarnation>,
    pub(super) started: Duration,
    /// When it was last looked at.
    swept: Duration,
    stall: StallWatch,
    kill_reason: Option<String>,
}

impl<R: TreeRole> Live<R> {
    /// Kills it if it stands still.
    pub(super) fn sweep(&mut self, kit: &Kit<R>, now: Duration) {
        let role = &self.role;
        let Some(limit) = role.policy().stall_after else {
            return;
        };
        // In this order, so that a message handled in between cannot look as if it were waiting.
        let handled = self.incarnation.handled();
        let sent = self.incarnation.sent();
        let mut still = self.stall.observe(now, sent, handled);
        let before = std::mem::replace(&mut self.swept, now);
        let hooks = kit.actors.hooks();
        if hooks.has(SupervisionHooks::counts_pause_as_stall) && sent > handled {
            still = still.max(now.saturating_sub(before));
        }
        if still < limit || self.kill_reason.is_some() {
            return;
        }
        let why = format!(
            "hung: {} messages waited for {} s without one being finished, more than the {} s \
             this role may take",
            sent.saturating_sub(handled),
            still.as_secs(),
            limit.as_secs(),
        );
        kit.actors.set_state(role, RoleState::Stalled);
        self.cell.kill();
        self.kill_reason = Some(why);
    }

    /// Why it ended: what this supervisor killed it for, else what was reported.
    pub(super) fn verdict_on_death(self, reported: String) -> String {
        self.kill_reason.unwrap_or(reported)
    }

    /// Asks it to end by `deadline` (monotonic).
    pub(super) fn ask_to_end(&self, kit: &Kit<R>, deadline: Duration) {
        self.incarnation.stop_by.get_or_init(|| deadline);
        match self.role.policy().stop {
            StopHow::Stop => self.cell.stop(None),
            StopHow::Kill => kit.actors.kill_tree(&self.role),
        }
    }

    /// Waits for its end until `deadline`, then kills it.
    pub(super) async fn join(&self, kit: &Kit<R>, deadline: Duration) {
        let left = deadline.saturating_sub(kit.clock.now().monotonic);
        if self.cell.wait(Some(left)).await.is_err() {
            let role = &self.role;
            tracing::warn!(%role, "did not stop within its grace and is killed");
            kit.actors.count_overdue();
            kit.actors.kill_tree(role);
            if self.cell.wait(Some(LAST_WAIT)).await.is_err() {
                return;
            }
        }
        kit.actors.end(&self.role, &self.incarnation);
    }
}

/// What supervisors remind themselves of. `S` names the child.
#[derive(Debug)]
pub(super) enum SupervisorMessage<S> {
    /// Start a child, unless something else happened to it since.
    Start { slot: S, generation: u64 },
    /// Look for children that stand still.
    Sweep,
    /// Deal with the exits that have been reported, in the order of the children.
    Settle,
}

/// Who ended, and why, if the event is an end. What the dead life owned is dropped here.
pub(super) fn exit_of(event: SupervisionEvent) -> Option<(ActorCell, String)> {
    match event {
        SupervisionEvent::ActorTerminated(cell, _state, reason) => {
            let why = reason.unwrap_or_else(|| "stopped without being asked to".to_owned());
            Some((cell, why))
        }
        SupervisionEvent::ActorFailed(cell, error) => Some((cell, error.to_string())),
        SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => None,
    }
}

/// Until when a supervisor has to have stopped its children: a little before it has to be gone
/// itself, or it would be killed with children that have not flushed.
pub(super) fn children_stop_by<R: TreeRole>(kit: &Kit<R>, guard: &IncarnationGuard<R>) -> Duration {
    let now = kit.clock.now().monotonic;
    let left = match guard.incarnation().stop_by.get() {
        Some(deadline) => deadline.saturating_sub(now),
        None => guard.role().policy().grace,
    };
    now.saturating_add(left.saturating_mul(7) / 8)
}

/// Ends a supervisor that cannot help itself: its children first, in order, since the actor library
/// would kill them in the random order of a hash map.
pub(super) fn give_up<R: TreeRole>(
    kit: &Kit<R>,
    role: &R,
    why: String,
) -> ractor::ActorProcessingErr {
    tracing::error!(%role, why, "gives up and ends with all its children");
    kit.actors.failed(role, &why);
    kit.actors.kill_children(role);
    why.into()
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("with a value that is no text"))
}
