//! What a keyed supervisor asks which children it should have, and what it is sent.

use std::fmt::{Debug, Display};
use std::time::Duration;

use crate::actor::Context;
use crate::child::{ChildSpec, SupervisorMessage};
use crate::event::Event;
use crate::role::TreeRole;

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

pub(super) enum Envelope<K, M> {
    Event(Event<M>),
    Internal(SupervisorMessage<K>),
}
