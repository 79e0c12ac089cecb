//! Timers that end with their owner.

use std::sync::Mutex;
use std::time::Duration;

use tokio::task::JoinSet;

use super::address::Inbox;
use super::locked;

/// The number of a timer, where only the newest of several counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimerEpoch(u64);

impl TimerEpoch {
    /// The number of the next timer, after which older ones count no more.
    #[must_use]
    pub fn advance(&mut self) -> Self {
        self.0 += 1;
        *self
    }

    /// How many timers there were.
    pub fn number(self) -> u64 {
        self.0
    }
}

#[derive(Default)]
pub(super) struct Timers(Mutex<JoinSet<()>>);

impl Timers {
    /// Delivers a message once `after` has passed.
    pub(super) fn arm<M: Send + 'static>(&self, after: Duration, inbox: &Inbox<M>, message: M) {
        let inbox = inbox.clone();
        let mut pending = locked(&self.0);
        while pending.try_join_next().is_some() {}
        pending.spawn(async move {
            tokio::time::sleep(after).await;
            inbox.deliver(message);
        });
    }
}

wva_base::debug_of!(Timers:);
