//! What an actor does, free of how it is run.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::address::Inbox;
use super::clock::Clock;
use super::epoch::Epoch;
use super::event::Event;
use super::incarnation::Incarnation;
use super::kit::Kit;
use super::role::TreeRole;
use super::seed::SeedTree;
use super::timers::Timers;
use wva_base::moment::Moment;

/// An actor that may await: a pump. Every await needs a deadline, and every await is a point at
/// which it may be killed.
pub trait Actor: Send + 'static {
    /// Its messages.
    type Msg: fmt::Debug + Send + 'static;

    /// Handles one occasion. An error ends this life, and the supervisor starts the next one.
    fn handle(
        &mut self,
        cx: &Context<Self::Msg>,
        event: Event<Self::Msg>,
    ) -> impl Future<Output = ActorResult> + Send;

    /// Called in an orderly stop only, within the grace of the role: flush.
    fn retire(&mut self, _cx: &Context<Self::Msg>) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// A machine with its connections. Between two occasions it can be killed, within one it cannot:
/// nothing in it awaits.
pub trait StateMachine: Send + 'static {
    /// Its messages.
    type Msg: fmt::Debug + Send + 'static;
    /// Its effects.
    type Effect;

    /// Decides: reads cells and mirrors, steps pure policy, and appends what is to be done.
    fn step(&mut self, now: Moment, event: Event<Self::Msg>, effects: &mut Vec<Self::Effect>);

    /// Does one thing that [`StateMachine::step`] returned: sends a message, rings a bell, writes a slot
    /// or cell, arms a timer. Nothing of that can fail in a way that matters.
    fn perform(&mut self, cx: &Context<Self::Msg>, effect: Self::Effect);
}

/// What became of one event.
pub type ActorResult = Result<(), ActorError>;

/// Why a life cannot go on.
pub type ActorError = Box<dyn Error + Send + Sync>;

/// What an actor knows of its own life.
pub struct Context<M> {
    clock: Clock,
    seed: SeedTree,
    incarnation: Arc<Incarnation>,
    inbox: Inbox<Event<M>>,
    timers: Timers,
}

impl<M: Send + 'static> Context<M> {
    pub(super) fn new<R: TreeRole>(
        kit: &Kit<R>,
        incarnation: Arc<Incarnation>,
        inbox: Inbox<Event<M>>,
    ) -> Self {
        Self {
            clock: kit.clock.clone(),
            seed: kit.seed.clone(),
            incarnation,
            inbox,
            timers: Timers::default(),
        }
    }

    /// The present.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The right to write of this life.
    pub fn epoch(&self) -> &Epoch {
        self.incarnation.epoch()
    }

    /// The next thing that this occasion has decided is about to be done.
    pub(super) fn begin_effect(&self) {
        self.incarnation.hooks().begin_effect();
    }

    /// The source of this process's randomness.
    pub fn seed(&self) -> &SeedTree {
        &self.seed
    }

    /// Puts a message at the end of the own mailbox. Without progress in the outside world in
    /// between this would be a busy loop, which stops virtual time: prefer [`Context::arm`].
    pub fn send_self(&self, message: M) {
        self.inbox.deliver(Event::Message(message));
    }

    /// Puts a message into the own mailbox after a while. Timers end with this life and cannot be
    /// taken back: number them where an older one must not count.
    pub fn arm(&self, after: Duration, message: M) {
        self.timers.arm(after, &self.inbox, Event::Message(message));
    }
}

wva_base::debug_of!([M] Context<M>: incarnation, timers);
