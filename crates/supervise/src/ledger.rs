//! What a supervisor does about a child that ended: restart it after a delay, or give up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use wva_base::backoff::Backoff;

#[cfg(test)]
mod tests;

/// How often and how fast one child may be restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Exits within `window` that are answered with a restart; one more escalates.
    pub max_restarts: usize,
    /// How long an exit counts.
    pub window: Duration,
    /// Delay after the first exit within the window; doubles with every further one.
    pub delay_base: Duration,
    /// Longest delay.
    pub delay_cap: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitVerdict {
    /// Start it again after this delay, to which the supervisor adds jitter.
    RestartAfter(Duration),
    /// The budget is spent: the supervisor fails in its turn.
    Escalate,
}

#[derive(Debug, Clone, Default)]
pub(super) struct RestartLedger {
    exits: VecDeque<Duration>,
}

impl RestartLedger {
    /// Records an exit and decides. `now` is time since the process started and never goes back.
    pub(super) fn record_exit(&mut self, now: Duration, policy: &RestartPolicy) -> ExitVerdict {
        while self.exits.front().is_some_and(|exit| now.saturating_sub(*exit) > policy.window) {
            self.exits.pop_front();
        }
        self.exits.push_back(now);
        if self.exits.len() > policy.max_restarts {
            return ExitVerdict::Escalate;
        }
        let backoff = Backoff { base: policy.delay_base, cap: policy.delay_cap };
        ExitVerdict::RestartAfter(backoff.delay(self.exits.len()))
    }
}

/// How children that are known by key are restarted. One of them never costs the others anything,
/// so there is no budget per key; only a failure of many at once escalates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantinePolicy {
    /// Delay after the first failure in a row; doubles with every further one.
    pub delay_base: Duration,
    /// Longest delay. A life that lasts at least as long ends the row.
    pub delay_cap: Duration,
    /// Failures in a row from which on the key is quarantined.
    pub quarantine_from: usize,
    /// How long a failure counts towards a systemic one.
    pub systemic_window: Duration,
    /// Fewest keys for which a failure of more than half of them is called systemic.
    pub systemic_floor: usize,
}

/// Answer to the exit of a child that is known by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyVerdict {
    /// Start it again after this delay.
    RestartAfter(Duration),
    /// It keeps failing: report it, and try again after a delay or when its object changes.
    Quarantine {
        failures: usize,
        /// Delay until the next attempt.
        retry_in: Duration,
    },
    /// Too many keys failed at once for this to be their own fault: the supervisor fails.
    SystemicFailure { failed: usize, of: usize },
}

/// Recent failures of all children of a keyed supervisor. Holds at most one record per key, and
/// none for a key that was forgotten.
#[derive(Debug, Clone)]
pub(super) struct KeyLedger<K> {
    records: BTreeMap<K, KeyRecord>,
    /// Last failure of each key, oldest first, within the systemic window.
    recent: BTreeSet<(Duration, K)>,
}

#[derive(Debug, Clone, Copy)]
struct KeyRecord {
    failures: usize,
    last: Duration,
}

impl<K: Ord + Clone> KeyLedger<K> {
    pub(super) fn new() -> Self {
        Self { records: BTreeMap::new(), recent: BTreeSet::new() }
    }

    /// Records that `key`, one of `keys` keys, failed at `now` (time since the process started)
    /// after a life of `lived`, and decides.
    pub(super) fn record_exit(
        &mut self,
        key: &K,
        now: Duration,
        lived: Duration,
        keys: usize,
        policy: &QuarantinePolicy,
    ) -> KeyVerdict {
        let failures = self.record(key, now, lived, policy);
        let failed = self.recent.len();
        if keys >= policy.systemic_floor && failed.saturating_mul(2) > keys {
            return KeyVerdict::SystemicFailure { failed, of: keys };
        }
        let backoff = Backoff { base: policy.delay_base, cap: policy.delay_cap };
        let delay = backoff.delay(failures);
        if failures < policy.quarantine_from {
            KeyVerdict::RestartAfter(delay)
        } else {
            KeyVerdict::Quarantine { failures, retry_in: delay }
        }
    }

    /// Drops everything about a key that is gone.
    pub(super) fn forget(&mut self, key: &K) {
        if let Some(record) = self.records.remove(key) {
            self.recent.remove(&(record.last, key.clone()));
        }
    }

    fn record(
        &mut self,
        key: &K,
        now: Duration,
        lived: Duration,
        policy: &QuarantinePolicy,
    ) -> usize {
        let before = self.records.get(key).copied();
        if let Some(record) = before {
            self.recent.remove(&(record.last, key.clone()));
        }
        let failures = match before {
            Some(record) if lived < policy.delay_cap => record.failures.saturating_add(1),
            Some(_) | None => 1,
        };
        self.records.insert(key.clone(), KeyRecord { failures, last: now });
        self.recent.insert((now, key.clone()));
        while self
            .recent
            .first()
            .is_some_and(|(failure, _)| now.saturating_sub(*failure) > policy.systemic_window)
        {
            self.recent.pop_first();
        }
        failures
    }
}
