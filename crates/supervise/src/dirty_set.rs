//! A storm of hints becomes one message.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex};

use super::locked;

/// The set of keys to look at. It outlives its owner; what the owner had taken
/// when it died is found again by the full pass of its successor.
pub struct DirtySet<K>(Arc<Inner<K>>);

struct Inner<K> {
    keys: Mutex<BTreeSet<K>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl<K: Ord + Send> DirtySet<K> {
    /// `wake` is called whenever the first key is added to an empty set; it should notify
    /// the owner.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { keys: Mutex::new(BTreeSet::new()), wake: Box::new(wake) }))
    }

    /// Adds a key.
    pub fn insert(&self, key: K) {
        self.insert_all([key]);
    }

    /// Adds keys, with one wake-up at most.
    pub fn insert_all(&self, keys: impl IntoIterator<Item = K>) {
        let wakes = {
            let mut waiting = locked(&self.0.keys);
            let was_quiet = waiting.is_empty();
            waiting.extend(keys);
            was_quiet && !waiting.is_empty()
        };
        if wakes {
            (self.0.wake)();
        }
    }

    /// Takes all keys. Clear before reading: what changes after this call rings again.
    pub fn drain(&self) -> BTreeSet<K> {
        mem::take(&mut *locked(&self.0.keys))
    }
}

impl<K> Clone for DirtySet<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

wva_base::debug_of!([K] DirtySet<K>:);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn counted() -> (DirtySet<u8>, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&wakes);
        let bell = DirtySet::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        (bell, wakes)
    }

    #[test]
    fn a_storm_wakes_once_until_it_is_answered() {
        let (bell, wakes) = counted();
        assert_eq!(wakes.load(Ordering::SeqCst), 0);
        bell.insert(2);
        bell.insert(1);
        bell.clone().insert(2);
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
        assert_eq!(bell.drain(), BTreeSet::from([1, 2]));
        assert_eq!(bell.drain(), BTreeSet::new());
        bell.insert_all([3, 4]);
        assert_eq!(wakes.load(Ordering::SeqCst), 2);
        assert_eq!(bell.drain(), BTreeSet::from([3, 4]));
    }

    #[test]
    fn ringing_for_nothing_wakes_no_actor() {
        let (bell, wakes) = counted();
        bell.insert_all([]);
        assert_eq!(wakes.load(Ordering::SeqCst), 0);
    }
}
