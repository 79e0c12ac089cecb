//! The counters of one life of a role, shared by all that deal with it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tracing::{Span, info_span};

use super::epoch::Epoch;
use super::hooks::RoleHooks;
use wva_base::moment::{Moment, WallTime};

/// One life of a role. Counting is a matter of atomics: no lock is taken per message.
#[derive(Debug)]
pub(super) struct Incarnation {
    epoch: Epoch,
    sent: AtomicU64,
    handled: AtomicU64,
    /// Nanoseconds on the monotonic clock, and milliseconds on the wall clock, at which a handler
    /// last ended, or else this life began.
    progress: (AtomicU64, AtomicI64),
    /// Monotonic time by which its supervisor wants it stopped; the first one that is set counts.
    pub(super) stop_by: OnceLock<Duration>,
    ended: AtomicBool,
    hooks: RoleHooks,
}

impl Incarnation {
    pub(super) fn new(epoch: Epoch, now: Moment, hooks: RoleHooks) -> Self {
        let incarnation = Self {
            epoch,
            sent: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            progress: (AtomicU64::new(0), AtomicI64::new(0)),
            stop_by: OnceLock::new(),
            ended: AtomicBool::new(false),
            hooks,
        };
        incarnation.progress_at(now);
        incarnation
    }

    pub(super) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    pub(super) fn hooks(&self) -> &RoleHooks {
        &self.hooks
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    pub(super) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Acquire)
    }

    /// Counts what `send` delivers; before it is sent, so that it is never handled uncounted.
    pub(super) fn count_sent(&self, send: impl FnOnce() -> bool) -> bool {
        self.sent.fetch_add(1, Ordering::AcqRel);
        let taken = send();
        if !taken {
            self.sent.fetch_sub(1, Ordering::AcqRel);
        }
        taken
    }

    /// When a handler last ended.
    pub(super) fn last_progress(&self) -> Option<Moment> {
        (self.handled() > 0).then(|| self.last_sign())
    }

    /// When a handler last ended, or else this life began.
    pub(super) fn last_sign(&self) -> Moment {
        Moment {
            monotonic: Duration::from_nanos(self.progress.0.load(Ordering::Relaxed)),
            wall: WallTime(self.progress.1.load(Ordering::Relaxed)),
        }
    }

    /// Notes that a handler has ended.
    pub(super) fn note_handled(&self, now: Moment) {
        self.progress_at(now);
        self.handled.fetch_add(1, Ordering::AcqRel);
    }

    fn progress_at(&self, now: Moment) {
        let nanos = u64::try_from(now.monotonic.as_nanos()).unwrap_or(u64::MAX);
        self.progress.0.store(nanos, Ordering::Relaxed);
        self.progress.1.store(now.wall.0, Ordering::Relaxed);
    }

    /// Notes the end; `true` the first time.
    pub(super) fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::AcqRel)
    }

    /// The span of whatever it does. Without a parent: the actor library opens spans with numbers
    /// that mean nothing to a reader and differ between two runs of the same simulation.
    pub(super) fn span(&self) -> Span {
        info_span!(parent: None, "actor", role = self.epoch.role(), incarnation = self.epoch.number())
    }
}
