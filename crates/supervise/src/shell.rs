//! Runs a behaviour as an actor.

use std::marker::PhantomData;
use std::sync::Arc;

use ractor::{ActorProcessingErr, ActorRef};
use tracing::Instrument;

use super::actor::{Actor, ActorResult, Context, StateMachine};
use super::address::{Address, Inbox};
use super::child::{ChildSpec, SpawnContext, spawn};
use super::epoch::Epoch;
use super::event::Event;
use super::handler::run_handler;
use super::incarnation::Incarnation;
use super::kit::Kit;
use super::registry::IncarnationGuard;
use super::role::{ActorKind, TreeRole};

/// A pump that fills a role. `make` is called for every life; what it must not lose lives elsewhere.
pub fn child<R: TreeRole, B: Actor>(
    role: R,
    address: &Address<B::Msg>,
    make: impl Fn(&Epoch) -> B + Send + Sync + 'static,
) -> ChildSpec<R> {
    leaf(role, ActorKind::Pump, address, make)
}

/// A machine that fills a role. `make` is called for every life; what it must not lose lives
/// elsewhere.
pub fn machine<R: TreeRole, D: StateMachine>(
    role: R,
    address: &Address<D::Msg>,
    make: impl Fn(&Epoch) -> D + Send + Sync + 'static,
) -> ChildSpec<R> {
    leaf(role, ActorKind::Machine, address, move |epoch| Machine(make(epoch)))
}

fn leaf<R: TreeRole, B: Actor>(
    role: R,
    kind: ActorKind,
    address: &Address<B::Msg>,
    make: impl Fn(&Epoch) -> B + Send + Sync + 'static,
) -> ChildSpec<R> {
    let make: Arc<Make<B>> = Arc::new(make);
    let address = address.clone();
    ChildSpec::new(role, kind, move |spawn_context, supervisor| {
        let shell = Shell { make: Arc::clone(&make), role: PhantomData };
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

/// Makes an actor of a machine.
struct Machine<D>(D);

impl<D: StateMachine> Actor for Machine<D> {
    type Msg = D::Msg;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        let mut effects = Vec::new();
        self.0.step(cx.now(), event, &mut effects);
        for effect in effects {
            cx.begin_effect();
            self.0.perform(cx, effect);
        }
        Ok(())
    }
}

pub(super) type Make<B> = dyn Fn(&Epoch) -> B + Send + Sync;

struct Shell<R, B> {
    make: Arc<Make<B>>,
    role: PhantomData<fn() -> R>,
}

/// Everything that belongs to one life; dropped with it.
struct RunningActor<R: TreeRole, B: Actor> {
    behaviour: B,
    cx: Context<B::Msg>,
    kit: Kit<R>,
    guard: IncarnationGuard<R>,
}

impl<R: TreeRole, B: Actor> ractor::Actor for Shell<R, B> {
    type Msg = Event<B::Msg>;
    type State = RunningActor<R, B>;
    type Arguments = SpawnContext<R>;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        SpawnContext { kit, guard }: SpawnContext<R>,
    ) -> Result<Self::State, ActorProcessingErr> {
        guard.seat(myself.get_cell());
        let incarnation = guard.incarnation();
        let behaviour = incarnation.span().in_scope(|| (self.make)(incarnation.epoch()));
        let cx =
            Context::new(&kit, Arc::clone(incarnation), inbox(Arc::clone(incarnation), myself));
        Ok(RunningActor { behaviour, cx, kit, guard })
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        event: Self::Msg,
        running: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let RunningActor { behaviour, cx, kit, guard } = running;
        event.meet(guard.incarnation());
        let work = behaviour.handle(cx, event);
        run_handler(kit, guard.role(), guard.incarnation(), work).await
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
