//! A set of things to do, at most one entry per key, that survives the actor that does them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wva_base::moment::Moment;

/// Work to be done per key. Adding a key that waits already changes nothing; a failed attempt puts
/// the key back with a delay.
pub struct RetryQueue<K>(Arc<Inner<K>>);

struct Inner<K> {
    waiting: Mutex<BTreeMap<K, RetryEntry>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// One thing to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryEntry {
    /// Attempts that failed so far.
    pub failures: u32,
    /// Not before this moment; `None` means at once.
    pub not_before: Option<Moment>,
}

impl RetryEntry {
    /// Another attempt at this moment at the earliest.
    pub fn at(failures: u32, due: Moment) -> Self {
        Self { failures, not_before: Some(due) }
    }
}

impl<K> Clone for RetryQueue<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

wva_base::debug_of!([K] RetryQueue<K>:);

impl<K: Ord + Clone> RetryQueue<K> {
    /// An empty set whose owner is woken by `wake` when the set stops being empty or a key is added.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { waiting: Mutex::default(), wake: Box::new(wake) }))
    }

    /// Adds a key, to be done at once; what is known of its failures is forgotten.
    pub fn add(&self, key: K) {
        let was_idle = {
            let mut waiting = self.waiting();
            let was_idle = waiting.values().all(|intent| intent.not_before.is_some());
            waiting.insert(key, RetryEntry::default());
            was_idle
        };
        if was_idle {
            (self.0.wake)();
        }
    }

    /// Puts a key back after a failed attempt, unless it was added again meanwhile.
    pub fn put_back(&self, key: K, intent: RetryEntry) {
        self.waiting().entry(key).or_insert(intent);
    }

    /// Takes up to `limit` keys that are due, those first that were not tried yet, then those that have been due for
    /// longest: where few can be tried at a time, each has its turn.
    pub fn take_due(&self, now: Moment, limit: usize) -> Vec<(K, RetryEntry)> {
        let mut waiting = self.waiting();
        let mut due: Vec<_> = waiting
            .iter()
            .filter(|(_, intent)| intent.not_before.is_none_or(|at| at <= now))
            .collect();
        due.sort_by_key(|(_, intent)| intent.not_before);
        let due = due.into_iter().take(limit);
        let due: Vec<_> = due.map(|(key, intent)| (key.clone(), *intent)).collect();
        for (key, _) in &due {
            waiting.remove(key);
        }
        due
    }

    /// When the next key becomes due: `now` where one waits for no time.
    pub fn next_due(&self, now: Moment) -> Option<Moment> {
        self.waiting().values().map(|intent| intent.not_before.unwrap_or(now)).min()
    }

    /// Drops everything: what was intended under another claim is not ours to do.
    pub fn clear(&self) {
        self.waiting().clear();
    }

    pub(super) fn waiting(&self) -> MutexGuard<'_, BTreeMap<K, RetryEntry>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{RetryEntry, RetryQueue};
    use crate::state::mirrors::tests::at;

    #[test]
    fn a_storm_of_one_key_is_one_intent_and_one_wake() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&wakes);
        let intents = RetryQueue::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        for _ in 0..1000 {
            intents.add("a");
        }
        assert_eq!((intents.waiting().len(), wakes.load(Ordering::Relaxed)), (1, 1));
        assert_eq!(intents.take_due(at(0), 8).len(), 1);
        assert!(intents.waiting().is_empty());
        intents.add("a");
        assert_eq!(wakes.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_failed_attempt_waits_for_its_time_and_gives_way_to_a_newer_intent() {
        let intents = RetryQueue::new(|| {});
        let later = RetryEntry { failures: 3, not_before: Some(at(10)) };
        intents.put_back("a", later);
        assert_eq!(intents.take_due(at(9), 8), []);
        assert_eq!(intents.next_due(at(9)), Some(at(10)));
        assert_eq!(intents.take_due(at(10), 8), [("a", later)]);

        let sooner = RetryEntry { failures: 1, not_before: Some(at(5)) };
        intents.put_back("b", later);
        intents.put_back("c", sooner);
        intents.add("d");
        let turn = intents.take_due(at(10), 2).into_iter();
        assert_eq!(turn.map(|(key, _)| key).collect::<Vec<_>>(), ["d", "c"]);
        assert_eq!(intents.take_due(at(10), 2), [("b", later)]);

        assert_eq!(intents.next_due(at(10)), None);
        intents.add("a");
        assert_eq!(intents.next_due(at(9)), Some(at(9)));
        intents.put_back("a", later);
        assert_eq!(
            intents.take_due(at(0), 8),
            [("a", RetryEntry { failures: 0, not_before: None })]
        );
    }
}
