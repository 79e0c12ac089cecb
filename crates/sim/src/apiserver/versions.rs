//! The version of the last change, and who waits for the next one.
//!
//! The watch channel of tokio wakes its readers in an order drawn by chance, which would make two runs
//! of one seed differ. Here they are woken in the order in which they came, and only those who follow
//! a resource that has changed.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Notify;

use crate::threads::locked;

#[derive(Debug, Default)]
pub(super) struct Versions {
    current: AtomicU64,
    moved: Notify,
    readers: Mutex<Vec<Weak<Reader>>>,
}

#[derive(Debug)]
struct Reader {
    resources: Vec<String>,
    moved: Notify,
}

#[derive(Debug)]
pub(crate) struct VersionFollower(Arc<Reader>);

impl Versions {
    pub(super) fn set(&self, version: u64, changed: &[&str]) {
        if self.current.swap(version, Ordering::AcqRel) == version {
            return;
        }
        self.moved.notify_waiters();
        locked(&self.readers).retain(|reader| {
            let Some(reader) = reader.upgrade() else {
                return false;
            };
            let follows = |resource: &&str| reader.resources.iter().any(|own| own == resource);
            if changed.iter().any(follows) {
                reader.moved.notify_one();
            }
            true
        });
    }

    pub(super) fn current(&self) -> u64 {
        self.current.load(Ordering::Acquire)
    }

    pub(super) fn follow(&self, resources: &[&str]) -> VersionFollower {
        let reader = Arc::new(Reader {
            resources: resources.iter().map(|&name| name.to_owned()).collect(),
            moved: Notify::new(),
        });
        locked(&self.readers).push(Arc::downgrade(&reader));
        VersionFollower(reader)
    }

    pub(super) async fn reach(&self, version: u64) {
        loop {
            let mut moved = pin!(self.moved.notified());
            // Before the look, so that no move is lost between look and wait.
            moved.as_mut().enable();
            if self.current() >= version {
                return;
            }
            moved.await;
        }
    }
}

impl VersionFollower {
    /// Waits for a change since the last call. At times there is none: the waiter looks for it.
    pub(crate) async fn changed(&mut self) {
        self.0.moved.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readers_are_woken_in_the_order_of_coming() {
        let versions = Versions::default();
        let woken = Arc::new(Mutex::new(Vec::new()));
        for reader in 0..20 {
            let resource = if reader % 2 == 0 { "pods." } else { "nodes." };
            let (mut follower, woken) = (versions.follow(&[resource]), Arc::clone(&woken));
            tokio::spawn(async move {
                follower.changed().await;
                woken.lock().unwrap().push(reader);
            });
        }
        sleep(Duration::from_millis(1)).await;
        assert!(woken.lock().unwrap().is_empty());
        versions.set(1, &["pods."]);
        sleep(Duration::from_millis(1)).await;
        let even: Vec<_> = (0..20).step_by(2).collect();
        assert_eq!(*woken.lock().unwrap(), even, "only those of the resource");
    }

    #[tokio::test(start_paused = true)]
    async fn what_moved_before_the_wait_is_not_lost() {
        let versions = Versions::default();
        let mut follower = versions.follow(&["pods."]);
        versions.set(3, &["pods."]);
        follower.changed().await;
        versions.reach(2).await;
        let waits = timeout(Duration::from_secs(1), follower.changed());
        assert!(waits.await.is_err());
        let waits = timeout(Duration::from_secs(1), versions.reach(4));
        assert!(waits.await.is_err());
    }
}
