//! Answers of the API server, kept for a moment so that a scraper does not cost two requests each
//! time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use wva_base::moment::Moment;

/// Most entries of one cache. A client with invented tokens fills it with refusals, and
/// then costs the others a review more.
const CAPACITY: usize = 1024;

/// Answers by question, at most [`CAPACITY`].
pub(super) struct Cache<K, V>(Mutex<BTreeMap<K, (Duration, V)>>);

impl<K: Ord, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

wva_base::debug_of!([K, V] Cache<K, V>:);

impl<K: Ord + Clone, V: Clone> Cache<K, V> {
    /// The answer, if it was given no longer than `age` ago.
    pub(super) fn get(&self, key: &K, now: Moment, age: Duration) -> Option<V> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, value) = entries.get(key)?;
        (now.monotonic.saturating_sub(*at) <= age).then(|| value.clone())
    }

    /// Keeps an answer that was given at `now`; the oldest one goes when there is no room.
    pub(super) fn put(&self, key: K, now: Moment, value: V) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CAPACITY && !entries.contains_key(&key) {
            let oldest = entries.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                entries.remove(&oldest);
            }
        }
        entries.insert(key, (now.monotonic, value));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CAPACITY, Cache};
    use wva_base::moment::{Moment, WallTime};

    fn at(milliseconds: u64) -> Moment {
        Moment { monotonic: Duration::from_millis(milliseconds), wall: WallTime(0) }
    }

    #[test]
    fn an_answer_is_good_for_its_age_and_no_longer() {
        let cache = Cache::default();
        let age = Duration::from_secs(10);
        assert_eq!(cache.get(&"a", at(0), age), None);
        cache.put("a", at(0), 1);
        assert_eq!(cache.get(&"a", at(10_000), age), Some(1));
        assert_eq!(cache.get(&"a", at(10_001), age), None);
        cache.put("a", at(20_000), 2);
        assert_eq!(cache.get(&"a", at(20_001), age), Some(2));
    }

    #[test]
    fn the_oldest_answer_makes_room() {
        let cache = Cache::default();
        for number in 0..=CAPACITY {
            cache.put(number, at(u64::try_from(number).unwrap()), ());
        }
        let age = Duration::from_mins(1);
        let kept = |number| cache.get(&number, at(0), age).is_some();
        assert_eq!([kept(0), kept(1), kept(CAPACITY)], [false, true, true]);
        // An answer that is renewed needs no room.
        cache.put(5, at(5_000), ());
        assert!(kept(1));
    }
}
