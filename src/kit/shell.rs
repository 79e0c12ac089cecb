//! Runs a behaviour as an actor.

use std::sync::Arc;

use ractor::{ActorProcessingErr, ActorRef};
use tracing::Instrument;

use super::actor::{Actor, ActorError, Context, Event};
use super::address::{Address, Inbox};
use super::child::{ChildSpec, SpawnContext, spawn};
use super::epoch::Epoch;
use super::incarnation::{Incarnation, run_handler};
use super::machine::{Machine, StateMachine};
use super::registry::IncarnationGuard;
use super::role::{ActorKind, Role};
use super::root::Kit;

/// A pump that fills a role. `make` is called for every life; what it must not lose lives elsewhere.
pub fn child<B: Actor>(
    role: Role,
    address: &Address<B::Msg>,
    make: impl Fn(&Epoch) -> B + Send + Sync + 'static,
) -> ChildSpec {
    leaf(role, ActorKind::Pump, address, make)
}

/// A machine that fills a role. `make` is called for every life; what it must not lose lives
/// elsewhere.
pub fn machine<D: StateMachine>(
    role: Role,
    address: &Address<D::Msg>,
    make: impl Fn(&Epoch) -> D + Send + Sync + 'static,
) -> ChildSpec {
    leaf(role, ActorKind::Machine, address, move |epoch| {
        Machine(make(epoch))
    })
}

fn leaf<B: Actor>(
    role: Role,
    kind: ActorKind,
    address: &Address<B::Msg>,
    make: impl Fn(&Epoch) -> B + Send + Sync + 'static,
) -> ChildSpec {
    let make: Arc<Make<B>> = Arc::new(make);
    let address = address.clone();
    ChildSpec::new(role, kind, move |spawn_context, supervisor| {
        let shell = Shell {
            make: Arc::clone(&make),
        };
        let address = address.clone();
        async move {
            let incarnation = Arc::clone(spawn_context.guard.incarnation());
            let actor = spawn(shell, spawn_context, supervisor).await?;
            let cell = actor.get_cell();
            address.publish(inbox(incarnation, actor));
            Ok(cell)
        }
    })
}

type Make<B> = dyn Fn(&Epoch) -> B + Send + Sync;

struct Shell<B> {
    make: Arc<Make<B>>,
}

/// Everything that belongs to one life; dropped with it.
struct RunningActor<B: Actor> {
    behaviour: B,
    cx: Context<B::Msg>,
    kit: Kit,
    guard: IncarnationGuard,
}

impl<B: Actor> ractor::Actor for Shell<B> {
    type Msg = Event<B::Msg>;
    type State = RunningActor<B>;
    type Arguments = SpawnContext;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        SpawnContext { kit, guard }: SpawnContext,
    ) -> Result<Self::State, ActorProcessingErr> {
        guard.seat(myself.get_cell());
        let incarnation = guard.incarnation();
        let behaviour = incarnation
            .span()
            .in_scope(|| (self.make)(incarnation.epoch()));
        let cx = Context::new(
            kit.clone(),
            Arc::clone(incarnation),
            inbox(Arc::clone(incarnation), myself),
        );
        Ok(RunningActor {
            behaviour,
            cx,
            kit,
            guard,
        })
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        event: Self::Msg,
        running: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let RunningActor {
            behaviour,
            cx,
            kit,
            guard,
        } = running;
        #[cfg(feature = "sim")]
        event.meet(guard.incarnation());
        run_handler(kit, guard.incarnation(), behaviour.handle(cx, event))
            .await
            .map_err(ActorError::into_inner)
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Self::Msg>,
        running: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let span = running.guard.incarnation().span();
        running.behaviour.retire(&running.cx).instrument(span).await;
        Ok(())
    }
}

fn inbox<M: Send + 'static>(
    incarnation: Arc<Incarnation>,
    actor: ActorRef<Event<M>>,
) -> Inbox<Event<M>> {
    Inbox::new(incarnation, move |event| actor.send_message(event).is_ok())
}
