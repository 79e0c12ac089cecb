//! Where to reach a role, whichever life of it is running.

use std::sync::{Arc, PoisonError, RwLock};

use super::event::Event;
use super::incarnation::Incarnation;

/// Whether a message was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a message that is not taken is gone"]
pub enum Delivery {
    /// It is in the mailbox of the present life; that life may still end before it handles it.
    Taken,
    /// No life is running. The next one begins with [`Event::Started`] and finds what waits in
    /// doorbells and slots.
    Vacant,
}

/// Reaches a role over all its lives. Vacant until a supervisor starts the role.
pub struct Address<M>(Arc<RwLock<Option<Inbox<Event<M>>>>>);

impl<M: Send + 'static> Address<M> {
    /// An address that no life answers yet.
    pub fn vacant() -> Self {
        Self(Arc::new(RwLock::new(None)))
    }

    /// Sends a message to the present life.
    pub fn send(&self, message: M) -> Delivery {
        let present = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match &*present {
            Some(inbox) if inbox.deliver(Event::Message(message)) => Delivery::Taken,
            Some(_) | None => Delivery::Vacant,
        }
    }

    /// Sends a message that may be lost: the full pass of the next life finds the same.
    pub fn hint(&self, message: M) {
        match self.send(message) {
            Delivery::Taken | Delivery::Vacant => {}
        }
    }

    /// Leads to a new life from now on. Its wake-up is sent under the lock: no message can come
    /// before it, and a sender that found the address vacant had rung before it.
    pub(super) fn publish(&self, inbox: Inbox<Event<M>>) {
        let mut present = self.0.write().unwrap_or_else(PoisonError::into_inner);
        inbox.deliver(Event::Started);
        *present = Some(inbox);
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Send + 'static> Default for Address<M> {
    fn default() -> Self {
        Self::vacant()
    }
}

wva_base::debug_of!([M] Address<M>:);

/// The counted mailbox of one life.
pub(super) struct Inbox<M> {
    send: Arc<dyn Fn(M) -> bool + Send + Sync>,
    incarnation: Arc<Incarnation>,
}

impl<M> Inbox<M> {
    /// `send` returns `false` if the life has ended.
    pub(super) fn new(
        incarnation: Arc<Incarnation>,
        send: impl Fn(M) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { send: Arc::new(send), incarnation }
    }

    /// `false` if the life has ended.
    pub(super) fn deliver(&self, message: M) -> bool {
        self.incarnation.count_sent(|| (self.send)(message))
    }
}

impl<M> Clone for Inbox<M> {
    fn clone(&self) -> Self {
        Self { send: Arc::clone(&self.send), incarnation: Arc::clone(&self.incarnation) }
    }
}
