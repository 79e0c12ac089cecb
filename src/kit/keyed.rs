//! A supervisor whose children come and go by key.

mod roster;

use std::fmt::{Debug, Display};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tracing::Instrument;

use self::roster::Roster;
use super::address::{Address, Inbox};
use super::behaviour::{Context, Occasion};
use super::child::{Boarding, ChildSpec, Chore, exit_of, give_up, panic_text, spawn};
use super::life::attend;
use super::role::{Role, Shape};
use super::tenure::Tenure;

/// Knows which keys there are. It is stepped like a machine and never awaits; the kit carries out
/// its orders and restarts what fails.
///
/// Its own life ends when too many of its children fail at once, or when it panics. All children end
/// with it, and the next life orders them anew in its full pass.
pub trait Registry: Send + 'static {
    /// Names a child. `Display` is for logs.
    type Key: Ord + Clone + Debug + Display + Send + 'static;
    /// What it can be told.
    type Msg: Debug + Send + 'static;

    /// Orders what should be different. May be repeated: running what runs and ending what is gone
    /// changes nothing. But order [`Order::Run`] for a key that is not new only when its object has
    /// changed, since that brings a pending restart forward.
    fn reconcile(
        &mut self,
        cx: &Context<Self::Msg>,
        occasion: Occasion<Self::Msg>,
    ) -> Vec<Order<Self::Key>>;

    /// How to start the child of this key; asked once for each time it begins to be run.
    fn child(&self, key: &Self::Key) -> ChildSpec;

    /// A life of this child has begun, the first or a later one, and was sent its wake-up.
    fn started(&mut self, key: &Self::Key);

    /// The child has ended on order, and nothing of it runs: clean up what it owned elsewhere.
    fn ended(&mut self, key: &Self::Key);

    /// The child has failed repeatedly, the last time because of `why`, and is left alone until
    /// `retry_in` has passed or it is ordered to run. Called again for every further failure. A new
    /// life of the registry begins with nobody in quarantine.
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
pub fn keyed<R: Registry>(
    role: Role,
    address: &Address<R::Msg>,
    make: impl Fn(&Tenure) -> R + Send + Sync + 'static,
) -> ChildSpec {
    let make: Arc<Make<R>> = Arc::new(make);
    let address = address.clone();
    ChildSpec::new(role, Shape::Supervisor, move |boarding, supervisor| {
        let keyed = Keyed {
            make: Arc::clone(&make),
        };
        let address = address.clone();
        async move {
            let life = Arc::clone(boarding.guard.life());
            let actor = spawn(keyed, boarding, supervisor).await?;
            let cell = actor.get_cell();
            address.publish(Inbox::new(life, move |occasion| {
                actor.send_message(Letter::Occasion(occasion)).is_ok()
            }));
            Ok(cell)
        }
    })
}

type Make<R> = dyn Fn(&Tenure) -> R + Send + Sync;

struct Keyed<R> {
    make: Arc<Make<R>>,
}

enum Letter<K, M> {
    Occasion(Occasion<M>),
    Chore(Chore<K>),
}

impl<R: Registry> Actor for Keyed<R> {
    type Msg = Letter<R::Key, R::Msg>;
    type State = Roster<R>;
    type Arguments = Boarding;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        boarding: Boarding,
    ) -> Result<Self::State, ActorProcessingErr> {
        boarding.guard.seat(myself.get_cell());
        let life = Arc::clone(boarding.guard.life());
        let registry = life.span().in_scope(|| (self.make)(life.tenure()));
        Ok(Roster::open(registry, &myself, boarding)?)
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        letter: Self::Msg,
        roster: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let (kit, life) = (roster.kit.clone(), Arc::clone(roster.guard.life()));
        #[cfg(feature = "sim")]
        match &letter {
            Letter::Occasion(occasion) => occasion.meet(&life),
            Letter::Chore(chore) => life.meet(chore),
        }
        let work = AssertUnwindSafe(roster.read(letter)).catch_unwind();
        match attend(&kit, &life, work).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(give_up(&kit, life.role(), why)),
            Err(panic) => Err(give_up(&kit, life.role(), panic_text(&*panic))),
        }
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        roster: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some((cell, why)) = exit_of(event) {
            roster.note_exit(&cell, why);
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Self::Msg>,
        roster: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let span = roster.guard.life().span();
        roster.close().instrument(span).await;
        Ok(())
    }
}
