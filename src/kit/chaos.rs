//! Kills at a chosen point, for tests that try every point.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// When a role is killed, counted in the occasions of all its lives, the first being 1. A
/// supervisor counts its own chores: starts, sweeps, settlements of exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillAt {
    /// When the n-th occasion is about to be handled; that occasion is lost.
    Before(u64),
    /// When the n-th occasion has been handled.
    After(u64),
}

/// Kills that one role still has before it.
#[derive(Debug, Default)]
pub(super) struct KillHooks {
    begun: AtomicU64,
    pending: Mutex<BTreeSet<KillAt>>,
}

impl KillHooks {
    pub(super) fn add(&self, moment: KillAt) {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(moment);
    }

    /// Number of the occasion that begins.
    pub(super) fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::AcqRel).saturating_add(1)
    }

    /// Whether the role dies now; each kill strikes once.
    pub(super) fn strikes(&self, moment: KillAt) -> bool {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&moment)
    }
}
