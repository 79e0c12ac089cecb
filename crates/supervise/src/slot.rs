//! The latest value wins.

use std::sync::{Arc, Mutex};

use super::locked;

/// At most one value that waits for its reader; a newer one replaces it.
pub struct Slot<T>(Arc<Inner<T>>);

struct Inner<T> {
    value: Mutex<Option<T>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl<T: Send> Slot<T> {
    /// `wake` is called whenever an empty slot is filled; it should notify the reader.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { value: Mutex::new(None), wake: Box::new(wake) }))
    }

    /// Fills the slot, or replaces what waits in it.
    pub fn put(&self, value: T) {
        let replaced = locked(&self.0.value).replace(value);
        if replaced.is_none() {
            (self.0.wake)();
        }
    }

    /// Empties the slot.
    pub fn take(&self) -> Option<T> {
        locked(&self.0.value).take()
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

wva_base::debug_of!([T] Slot<T>:);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn keeps_the_latest_and_wakes_once_until_taken() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&wakes);
        let slot = Slot::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(slot.take(), None);
        slot.put(1);
        slot.clone().put(2);
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
        assert_eq!(slot.take(), Some(2));
        assert_eq!(slot.take(), None);
        slot.put(3);
        assert_eq!(wakes.load(Ordering::SeqCst), 2);
        assert_eq!(slot.take(), Some(3));
    }
}
