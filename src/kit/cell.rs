//! A value with one writer and many readers that outlives the writer.

use std::fmt;
use std::mem;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use super::epoch::{Epoch, Fenced, Guard};

/// The latest value that a role has published.
pub struct Cell<T>(Arc<Inner<T>>);

struct Inner<T> {
    guard: Guard,
    published: RwLock<Published<T>>,
    /// Wakes followers in the order in which they began to wait. A `tokio::sync::watch` wakes its receivers at
    /// random, by which equal seeds would not be equal runs.
    changes: Notify,
}

struct Published<T> {
    value: Arc<T>,
    /// Grows with every publication.
    version: u64,
}

impl<T: Send + Sync + 'static> Cell<T> {
    /// Holds `initial` until the first publication.
    pub fn new(initial: T) -> Self {
        Self(Arc::new(Inner {
            guard: Guard::new(),
            published: RwLock::new(Published {
                value: Arc::new(initial),
                version: 0,
            }),
            changes: Notify::new(),
        }))
    }

    /// The present value.
    pub fn load(&self) -> Arc<T> {
        self.0.read(|published| Arc::clone(&published.value))
    }

    /// Follows the value from now on.
    pub fn follow(&self) -> CellFollower<T> {
        CellFollower {
            cell: self.clone(),
            seen: self.0.read(|published| published.version),
        }
    }

    /// Replaces the value.
    ///
    /// # Errors
    /// [`Fenced`] if a later life of the writer has published; the value stays.
    pub fn publish(&self, epoch: &Epoch, value: Arc<T>) -> Result<(), Fenced> {
        let replaced = self.0.guard.admit(epoch, || self.0.replace(value))?;
        self.0.changes.notify_waiters();
        // Dropped here, where no lock is held: it may be large.
        drop(replaced);
        Ok(())
    }
}

impl<T> Inner<T> {
    /// A panic while it was locked left nothing half done: there is one step under each lock.
    fn read<R>(&self, look: impl FnOnce(&Published<T>) -> R) -> R {
        look(
            &self
                .published
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn replace(&self, value: Arc<T>) -> Arc<T> {
        let mut published = self
            .published
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        published.version += 1;
        mem::replace(&mut published.value, value)
    }
}

/// A reader that waits for what is published.
pub struct CellFollower<T> {
    cell: Cell<T>,
    /// The version that counts as seen.
    seen: u64,
}

impl<T: Send + Sync + 'static> CellFollower<T> {
    /// The present value, which counts as seen from now on.
    pub fn take(&mut self) -> Arc<T> {
        let (version, value) = self
            .cell
            .0
            .read(|published| (published.version, Arc::clone(&published.value)));
        self.seen = version;
        value
    }

    /// Waits until there is a value that was not seen, and takes it. May be dropped at any time: what was
    /// not returned was not seen.
    pub async fn changed(&mut self) -> Arc<T> {
        self.wait_for_version().await;
        self.take()
    }

    /// Waits until the present value is such, seen or not, and takes it.
    pub async fn wait_for(&mut self, is_such: impl Fn(&T) -> bool) -> Arc<T> {
        loop {
            let value = self.take();
            if is_such(&value) {
                return value;
            }
            self.wait_for_version().await;
        }
    }

    async fn wait_for_version(&self) {
        loop {
            // Takes part in every wake-up from here on, so that none falls between the look and the wait.
            let change = self.cell.0.changes.notified();
            if self.cell.0.read(|published| published.version) != self.seen {
                return;
            }
            change.await;
        }
    }
}

impl<T> Clone for Cell<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for CellFollower<T> {
    fn clone(&self) -> Self {
        Self {
            cell: self.cell.clone(),
            seen: self.seen,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Cell<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = formatter.debug_tuple("Cell");
        self.0
            .read(|published| tuple.field(&published.value).finish())
    }
}

impl<T> fmt::Debug for CellFollower<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CellFollower")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
