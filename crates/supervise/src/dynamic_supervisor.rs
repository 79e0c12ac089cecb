//! A supervisor whose children come and go by key.

mod registry;
mod state;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use ractor::{ActorProcessingErr, ActorRef, SupervisionEvent};
use tracing::Instrument;

pub use self::registry::{Order, Registry};

use self::registry::Envelope;
use self::state::DynamicSupervisorState;
use super::address::{Address, Inbox};
use super::child::{ChildSpec, SpawnContext, exit_of, give_up, panic_text, spawn};
use super::epoch::Epoch;
use super::handler::run_handler;
use super::role::ActorKind;
use super::shell::Make;

/// A keyed supervisor. `make` is called for every life.
pub fn dynamic_supervisor<R: Registry>(
    role: R::Role,
    address: &Address<R::Msg>,
    make: impl Fn(&Epoch) -> R + Send + Sync + 'static,
) -> ChildSpec<R::Role> {
    let make: Arc<Make<R>> = Arc::new(make);
    let address = address.clone();
    ChildSpec::new(role, ActorKind::Supervisor, move |spawn_context, supervisor| {
        let keyed = DynamicSupervisor { make: Arc::clone(&make) };
        let address = address.clone();
        async move {
            let incarnation = Arc::clone(spawn_context.guard.incarnation());
            let actor = spawn(keyed, spawn_context, supervisor).await?;
            let cell = actor.get_cell();
            address.publish(Inbox::new(incarnation, move |event| {
                actor.send_message(Envelope::Event(event)).is_ok()
            }));
            Ok(cell)
        }
    })
}

struct DynamicSupervisor<R> {
    make: Arc<Make<R>>,
}

impl<R: Registry> ractor::Actor for DynamicSupervisor<R> {
    type Msg = Envelope<R::Key, R::Msg>;
    type State = DynamicSupervisorState<R>;
    type Arguments = SpawnContext<R::Role>;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        spawn_context: SpawnContext<R::Role>,
    ) -> Result<Self::State, ActorProcessingErr> {
        spawn_context.guard.seat(myself.get_cell());
        let incarnation = Arc::clone(spawn_context.guard.incarnation());
        let registry = incarnation.span().in_scope(|| (self.make)(incarnation.epoch()));
        Ok(DynamicSupervisorState::open(registry, &myself, spawn_context)?)
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        envelope: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let (kit, role) = (state.kit.clone(), state.guard.role().clone());
        let incarnation = Arc::clone(state.guard.incarnation());
        match &envelope {
            Envelope::Event(event) => event.meet(&incarnation),
            Envelope::Internal(message) => incarnation.hooks().meet(message),
        }
        let work = AssertUnwindSafe(state.read(envelope)).catch_unwind();
        match run_handler(&kit, &role, &incarnation, work).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(give_up(&kit, &role, why)),
            Err(panic) => Err(give_up(&kit, &role, panic_text(&*panic))),
        }
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
