//! Kills at a chosen point and other mishaps, for tests that try every point.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};

use crate::locked;

/// When a role is killed, counted in the occasions of all its lives, the first being 1. A
/// supervisor counts its own chores: starts, sweeps, settlements of exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillAt {
    /// When the n-th occasion is about to be handled; that occasion is lost.
    Before(u64),
    /// When the n-th occasion has been handled.
    After(u64),
}

/// What befalls a role while it handles its next occasion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// Its handler panics before it has done anything.
    Panic,
    /// Its handler panics when it has done so many of the things that it decided, and has more to do. An occasion
    /// with fewer passes.
    Torn(usize),
    /// Its handler never ends.
    Hang,
}

/// Kills and mishaps that one role still has before it.
#[derive(Debug, Default)]
pub(crate) struct KillHooks {
    pub(crate) begun: AtomicU64,
    /// How many effects of the present occasion have begun.
    effects: AtomicUsize,
    pub(crate) pending: Mutex<BTreeSet<KillAt>>,
    pub(crate) mishap: Mutex<Option<Mishap>>,
    /// Whether its present handler never ends.
    pub(crate) hangs: AtomicBool,
    /// How often something was done to the role.
    harmed: AtomicU64,
    /// How often each message came since the last query, by its name.
    met: Mutex<BTreeMap<String, u64>>,
    pub(crate) task: Mutex<Option<AbortHandle>>,
}

/// Counts a message by the first piece of what it shows of itself: the name of an enum's variant.
struct FirstPiece<'a> {
    met: &'a mut BTreeMap<String, u64>,
    counted: bool,
}

impl fmt::Write for FirstPiece<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.counted {
            return Err(fmt::Error);
        }
        self.counted = true;
        // Most names are known: no text is made for them.
        match self.met.get_mut(piece) {
            Some(times) => *times += 1,
            None => drop(self.met.insert(piece.to_owned(), 1)),
        }
        Ok(())
    }
}

/// Stands between all handlers of a process and their work: a process that is paused begins none.
#[derive(Debug, Default)]
pub(crate) struct PauseGate {
    closed: AtomicBool,
    moved: Notify,
}

impl PauseGate {
    pub(crate) fn close(&self, closed: bool) {
        self.closed.store(closed, Ordering::Release);
        self.moved.notify_waiters();
    }

    pub(crate) async fn pass(&self) {
        while self.closed.load(Ordering::Acquire) {
            let mut moved = pin!(self.moved.notified());
            // Before the look, so that no move is lost between look and wait.
            moved.as_mut().enable();
            if !self.closed.load(Ordering::Acquire) {
                return;
            }
            moved.await;
        }
    }
}

impl KillHooks {
    pub(crate) fn is_armed(&self) -> bool {
        !locked(&self.pending).is_empty() || locked(&self.mishap).is_some()
    }

    /// Nothing more is to come.
    pub(crate) fn disarm(&self) {
        locked(&self.pending).clear();
        *locked(&self.mishap) = None;
    }

    /// Lets happen what was asked for.
    pub(crate) async fn befall(&self) {
        let mishap = locked(&self.mishap).take_if(|mishap| !matches!(mishap, Mishap::Torn(_)));
        if mishap.is_some() {
            self.harm();
        }
        match mishap {
            Some(Mishap::Panic) => std::panic::resume_unwind(Box::new("a planted panic")),
            Some(Mishap::Hang) => {
                self.hangs.store(true, Ordering::Release);
                std::future::pending::<()>().await;
            }
            Some(Mishap::Torn(_)) | None => {}
        }
    }

    /// Another effect of the present occasion is about to be done; lets happen what was asked for at this point.
    pub(crate) fn begin_effect(&self) {
        let done = self.effects.fetch_add(1, Ordering::AcqRel);
        let torn = locked(&self.mishap).take_if(|mishap| *mishap == Mishap::Torn(done));
        if torn.is_some() {
            self.harm();
            std::panic::resume_unwind(Box::new("a planted panic between two effects"));
        }
    }

    pub(crate) fn hold(&self, task: &JoinHandle<()>) {
        *locked(&self.task) = Some(task.abort_handle());
    }

    pub(crate) fn meet(&self, message: &dyn fmt::Debug) {
        let mut met = locked(&self.met);
        let mut name = FirstPiece { met: &mut met, counted: false };
        // It ends with an error where there is a second piece.
        let _whole = write!(name, "{message:?}");
        // One that shows nothing of itself has the empty name.
        let _named = name.write_str("");
    }

    /// Reports how often each message came since the last call.
    pub(crate) fn take_met(&self, mut report: impl FnMut(&str, u64)) {
        let mut met = locked(&self.met);
        for (name, times) in met.iter_mut().filter(|(_, times)| **times > 0) {
            report(name, std::mem::take(times));
        }
    }

    pub(crate) fn begin(&self) -> u64 {
        self.hangs.store(false, Ordering::Release);
        self.effects.store(0, Ordering::Release);
        self.begun.fetch_add(1, Ordering::AcqRel).saturating_add(1)
    }

    /// Whether the role dies now; each kill strikes once.
    pub(crate) fn strikes(&self, moment: KillAt) -> bool {
        let strikes = locked(&self.pending).remove(&moment);
        if strikes {
            self.harm();
        }
        strikes
    }

    /// Something is done to the role.
    pub(crate) fn harm(&self) {
        self.harmed.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn harmed(&self) -> u64 {
        self.harmed.load(Ordering::Acquire)
    }
}
