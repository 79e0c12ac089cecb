//! The version of the last change, and who waits for the next one.
//!
//! The watch channel of tokio wakes its readers in an order drawn by chance, which would make two runs
//! of one seed differ. Here they are woken in the order in which they began to wait.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Inner {
    current: AtomicU64,
    moved: Notify,
}

/// The version as it moves. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Versions(Arc<Inner>);

/// A reader that knows how far it has read.
#[derive(Debug, Clone)]
pub struct Follower {
    versions: Versions,
    seen: u64,
}

impl Versions {
    /// Wakes all who wait if the version is another one.
    pub(super) fn set(&self, version: u64) {
        if self.0.current.swap(version, Ordering::AcqRel) != version {
            self.0.moved.notify_waiters();
        }
    }

    pub(super) fn current(&self) -> u64 {
        self.0.current.load(Ordering::Acquire)
    }

    /// A reader that has read everything so far.
    pub(super) fn follow(&self) -> Follower {
        Follower {
            seen: self.current(),
            versions: self.clone(),
        }
    }

    /// Waits for a version.
    pub(super) async fn reach(&self, version: u64) {
        self.until(|current| current >= version).await;
    }

    async fn until(&self, reached: impl Fn(u64) -> bool) {
        loop {
            let mut moved = pin!(self.0.moved.notified());
            // Before the look, so that no move is lost between look and wait.
            moved.as_mut().enable();
            if reached(self.current()) {
                return;
            }
            moved.await;
        }
    }
}

impl Follower {
    /// The version now, which counts as read.
    pub fn catch_up(&mut self) -> u64 {
        self.seen = self.versions.current();
        self.seen
    }

    /// Waits for a version that was not read yet; it counts as read.
    pub async fn changed(&mut self) {
        let seen = self.seen;
        self.versions.until(|current| current != seen).await;
        self.seen = self.versions.current();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readers_are_woken_in_the_order_of_waiting() {
        let versions = Versions::default();
        let woken = Arc::new(Mutex::new(Vec::new()));
        for reader in 0..20 {
            let (mut follower, woken) = (versions.follow(), Arc::clone(&woken));
            tokio::spawn(async move {
                follower.changed().await;
                woken.lock().unwrap().push(reader);
            });
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        assert!(woken.lock().unwrap().is_empty());
        versions.set(1);
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn what_moved_before_the_wait_is_not_lost() {
        let versions = Versions::default();
        let mut follower = versions.follow();
        versions.set(3);
        follower.changed().await;
        assert_eq!(follower.catch_up(), 3);
        versions.reach(2).await;
        let waits = follower.changed();
        let waits = tokio::time::timeout(std::time::Duration::from_secs(1), waits);
        assert!(waits.await.is_err());
    }
}
