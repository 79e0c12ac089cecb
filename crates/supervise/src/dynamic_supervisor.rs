//! A supervisor whose children come and go by key.

mod state;

use std::fmt::{Debug, Display};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use ractor::{ActorProcessingErr, ActorRef, SupervisionEvent};
use tracing::Instrument;

use self::state::DynamicSupervisorState;
use super::actor::{Context, Event};
use super::address::{Address, Inbox};
use super::child::{
    ChildSpec, SpawnContext, SupervisorMessage, exit_of, give_up, panic_text, spawn,
};
use super::epoch::Epoch;
use super::incarnation::run_handler;
use super::role::{ActorKind, TreeRole};
use super::shell::Make;

/// Knows which keys there are. It is stepped like a machine and never awaits; the kit carries out
/// its orders and restarts what fails.
///
/// Its own life ends when too many of its children fail at once, or when it panics. All children end
/// with it, and the next life orders them anew in its full pass.
pub trait Registry: Send + 'static {
    /// The roles of the tree.
    type Role: TreeRole;
    /// Names a child. `Display` is for logs.
    type Key: Ord + Clone + Debug + Display + Send + 'static;
    /// Its messages.
    type Msg: Debug + Send + 'static;

    /// Orders what should be different. May be repeated: running what runs and ending what is gone
    /// changes nothing. But order [`Order::Run`] for a key that is not new only when its object has
    /// changed, since that brings a pending restart forward.
    fn reconcile(
        &mut self,
        cx: &Context<Self::Msg>,
        event: Event<Self::Msg>,
    ) -> Vec<Order<Self::Key>>;

    /// How to start the child of this key; asked once for each time it begins to be run.
    fn child(&self, key: &Self::Key) -> ChildSpec<Self::Role>;

    /// A life of this child has begun, the first or a later one, and was sent its wake-up.
    fn started(&mut self, _key: &Self::Key) {}

    /// The child has ended on order, and nothing of it runs: clean up what it owned elsewhere.
    fn ended(&mut self, key: &Self::Key);

    /// The child has failed repeatedly, the last time because of `why`, and is left alone until
    /// `retry_in` has passed or it is ordered to run. Called again for every further failure. A new
    /// life of the registry begins with no child in quarantine.
    fn quarantined(&mut self, key: &Self::Key, failures: usize, why: &str, retry_in: Duration);

    /// The child was quarantined and has now run for a second with everything handled.
    fn released(&mut self, key: &Self::Key);
}

/// What a [`Registry`] wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order<K> {
    /// Run this key. If a restart of it is pending, it is made at once, though never sooner after a
    /// failure than the shortest delay.
    Run(K),
    /// End this key and forget everything about it.
    End(K),
}

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

enum Envelope<K, M> {
    Event(Event<M>),
    Internal(SupervisorMessage<K>),
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
