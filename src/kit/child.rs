//! A child as its supervisor sees it.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use ractor::{Actor, ActorCell, ActorRef, SpawnErr, SupervisionEvent};

use super::census::LifeGuard;
use super::life::Life;
use super::role::{Role, Shape, StopHow};
use super::root::Kit;
use super::stall::StallWatch;
use crate::env::Flaw;

/// How often a supervisor looks for children that stand still.
pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Share of a restart delay by which it varies, so that restarts do not march in step.
pub(super) const DELAY_JITTER: f64 = 0.2;

/// How long the end of a killed child is awaited. At an await it ends at once; in a handler without
/// one it ends when it likes.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// How to start a role, again and again.
#[derive(Clone)]
pub struct ChildSpec {
    role: Role,
    shape: Shape,
    spawn: Arc<Spawn>,
}

type Spawn = dyn Fn(Boarding, Option<ActorCell>) -> BoxFuture<'static, Result<ActorCell, SpawnErr>>
    + Send
    + Sync;

/// What a life is given to begin with.
pub(super) struct Boarding {
    pub(super) kit: Kit,
    pub(super) guard: LifeGuard,
}

/// Starts an actor, under a supervisor unless it is the root.
pub(super) async fn spawn<A: Actor<Arguments = Boarding>>(
    actor: A,
    boarding: Boarding,
    supervisor: Option<ActorCell>,
) -> Result<ActorRef<A::Msg>, SpawnErr> {
    #[cfg(feature = "sim")]
    let (census, life) = (
        boarding.kit.census.clone(),
        Arc::clone(boarding.guard.life()),
    );
    let (actor, task) = match supervisor {
        Some(supervisor) => Actor::spawn_linked(None, actor, boarding, supervisor).await?,
        None => Actor::spawn(None, actor, boarding).await?,
    };
    #[cfg(feature = "sim")]
    census.hold(life.role(), task.abort_handle());
    #[cfg(not(feature = "sim"))]
    drop(task);
    Ok(actor)
}

impl ChildSpec {
    pub(super) fn new<F, S>(role: Role, shape: Shape, spawn: F) -> Self
    where
        F: Fn(Boarding, Option<ActorCell>) -> S + Send + Sync + 'static,
        S: Future<Output = Result<ActorCell, SpawnErr>> + Send + 'static,
    {
        Self {
            role,
            shape,
            spawn: Arc::new(move |boarding, supervisor| spawn(boarding, supervisor).boxed()),
        }
    }

    /// The role that is filled.
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// Says what is wrong with this child at this place of the tree.
    pub(super) fn check(&self, supervisor: Option<&Role>) -> Result<(), String> {
        let parent = self.role.parent();
        if parent.as_ref() != supervisor {
            let name =
                |role: Option<&Role>| role.map_or_else(|| "nobody".to_owned(), Role::to_string);
            return Err(format!(
                "{} was put under {} but belongs under {}; move its specification",
                self.role,
                name(supervisor),
                name(parent.as_ref()),
            ));
        }
        let expected = self.role.policy().shape;
        if self.shape != expected {
            return Err(format!(
                "{} is specified as a {:?} but its role is that of a {expected:?}; \
                 use the constructor of that shape",
                self.role, self.shape,
            ));
        }
        Ok(())
    }

    /// Starts a life. The error says why there is none.
    pub(super) async fn start(
        &self,
        kit: &Kit,
        supervisor: Option<(&Role, ActorCell)>,
    ) -> Result<Live, String> {
        self.check(supervisor.as_ref().map(|(role, _)| *role))?;
        let guard = kit.census.begin(&self.role, kit.clock.now());
        let life = Arc::clone(guard.life());
        let boarding = Boarding {
            kit: kit.clone(),
            guard,
        };
        match (self.spawn)(boarding, supervisor.map(|(_, cell)| cell)).await {
            Ok(cell) => {
                let started = kit.clock.now().monotonic;
                Ok(Live {
                    cell,
                    life,
                    started,
                    swept: started,
                    stall: StallWatch::default(),
                    doom: None,
                })
            }
            Err(SpawnErr::StartupFailed(why)) => Err(why.to_string()),
            Err(other) => Err(other.to_string()),
        }
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ChildSpec")
            .field("role", &self.role)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// The present life of a child.
pub(super) struct Live {
    pub(super) cell: ActorCell,
    pub(super) life: Arc<Life>,
    /// Monotonic time of its start.
    pub(super) started: Duration,
    /// When it was last looked at.
    swept: Duration,
    stall: StallWatch,
    doom: Option<String>,
}

impl Live {
    /// Kills it if it stands still.
    pub(super) fn sweep(&mut self, kit: &Kit, now: Duration) {
        let role = self.life.role();
        let Some(limit) = role.policy().stall_after else {
            return;
        };
        // In this order, so that a message handled in between cannot look as if it were waiting.
        let handled = self.life.handled();
        let told = self.life.told();
        let mut still = self.stall.observe(now, told, handled);
        let before = std::mem::replace(&mut self.swept, now);
        if kit.census.flaws().has(Flaw::PauseTakenForHang) && told > handled {
            still = still.max(now.saturating_sub(before));
        }
        if still < limit || self.doom.is_some() {
            return;
        }
        let why = format!(
            "hung: {} messages waited for {} s without one being finished, more than the {} s \
             this role may take",
            told.saturating_sub(handled),
            still.as_secs(),
            limit.as_secs(),
        );
        kit.census.stalled(role);
        self.cell.kill();
        self.doom = Some(why);
    }

    /// Why it ended: what this supervisor killed it for, else what was reported.
    pub(super) fn verdict_on_death(self, reported: String) -> String {
        self.doom.unwrap_or(reported)
    }

    /// Asks it to end by `deadline` (monotonic).
    pub(super) fn ask_to_end(&self, kit: &Kit, deadline: Duration) {
        self.life.set_stop_by(deadline);
        match self.life.role().policy().stop {
            StopHow::Stop => self.cell.stop(None),
            StopHow::Kill => kit.census.fell(self.life.role()),
        }
    }

    /// Waits for its end until `deadline`, then kills it.
    pub(super) async fn see_it_end(&self, kit: &Kit, deadline: Duration) {
        let left = deadline.saturating_sub(kit.clock.now().monotonic);
        if self.cell.wait(Some(left)).await.is_err() {
            let role = self.life.role();
            tracing::warn!(%role, "did not stop within its grace and is killed");
            kit.census.count_overdue();
            kit.census.fell(role);
            if self.cell.wait(Some(LAST_WAIT)).await.is_err() {
                return;
            }
        }
        kit.census.end(&self.life);
    }
}

/// What supervisors remind themselves of. `S` names the child.
#[derive(Debug)]
pub(super) enum Chore<S> {
    /// Start a child, unless something else happened to it since.
    Start { slot: S, generation: u64 },
    /// Look for children that stand still.
    Sweep,
    /// Deal with the exits that have been reported, in the order of the children.
    Settle,
}

/// Who ended, and why, if the event tells of an end. What the dead life owned is dropped here.
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
pub(super) fn children_stop_by(kit: &Kit, life: &Life) -> Duration {
    let now = kit.clock.now().monotonic;
    let left = match life.stop_by() {
        Some(deadline) => deadline.saturating_sub(now),
        None => life.role().policy().grace,
    };
    now.saturating_add(left.saturating_mul(7) / 8)
}

/// Ends a supervisor that cannot help itself: its children first, in order, since the actor library
/// would kill them in the random order of a hash map.
pub(super) fn give_up(kit: &Kit, role: &Role, why: String) -> ractor::ActorProcessingErr {
    tracing::error!(%role, why, "gives up and ends with all its children");
    kit.census.failed(role, &why);
    kit.census.fell_children(role);
    why.into()
}

/// Text of a caught panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!(
        "panicked: {}",
        text.unwrap_or("with a value that is no text")
    )
}
