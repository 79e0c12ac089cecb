//! A value with one writer and many readers that outlives the writer.

use std::fmt;
use std::mem;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use super::epoch::{Epoch, Fenced, Guard};

/// The half of a cell that only reads: the latest value that a role has published.
pub struct Reader<T>(Arc<Inner<T>>);

/// The half of a cell that also writes. There is one, and it cannot be cloned: the wiring gives it to one role,
/// whose lives share it and write one after the other.
pub struct Writer<T>(Reader<T>);

struct Inner<T> {
    guard: Guard,
    published: RwLock<Published<T>>,
    /// Wakes followers in the order in which they began to wait. A `tokio::sync::watch` wakes its receivers at
    /// random, by which equal seeds would not be equal runs.
    changes: Notify,
}

struct Published<T> {
    value: Arc<T>,
    version: u64,
}

impl<T> Reader<T> {
    /// The present value.
    pub fn load(&self) -> Arc<T> {
        self.0.read(|published| Arc::clone(&published.value))
    }

    /// Looks at the present value, which stays as it is meanwhile: `look` must be short.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.0.read(|published| look(&published.value))
    }

    /// Follows the value from now on.
    pub fn follow(&self) -> CellFollower<T> {
        CellFollower { cell: self.clone(), seen: self.0.read(|published| published.version) }
    }
}

impl<T> Writer<T> {
    /// Makes a cell that holds `initial` until the first publication.
    pub fn new(initial: T) -> Self {
        Self(Reader(Arc::new(Inner {
            guard: Guard::new(),
            published: RwLock::new(Published { value: Arc::new(initial), version: 0 }),
            changes: Notify::new(),
        })))
    }

    /// The half for everybody else.
    pub fn reader(&self) -> Reader<T> {
        self.0.clone()
    }

    /// Replaces the value.
    ///
    /// # Errors
    /// [`Fenced`] if a later life of the writer has published; the value stays.
    pub fn publish(&self, epoch: &Epoch, value: Arc<T>) -> Result<(), Fenced> {
        let replace = |published: &mut Arc<T>| mem::replace(published, value);
        let replaced = self.write(epoch, replace)?;
        // Dropped here, where no lock is held: it may be large.
        drop(replaced);
        Ok(())
    }

    /// Changes the value in place, or a copy of it where readers hold the present one.
    ///
    /// # Errors
    /// [`Fenced`] if a later life of the writer has published; the value stays.
    pub fn update<R>(&self, epoch: &Epoch, change: impl FnOnce(&mut T) -> R) -> Result<R, Fenced>
    where
        T: Clone,
    {
        self.write(epoch, |value| change(Arc::make_mut(value)))
    }

    fn write<R>(&self, epoch: &Epoch, change: impl FnOnce(&mut Arc<T>) -> R) -> Result<R, Fenced> {
        let Inner { guard, published, changes } = &*self.0.0;
        let result = guard.admit(epoch, || {
            let mut published = published.write().unwrap_or_else(PoisonError::into_inner);
            published.version += 1;
            change(&mut published.value)
        })?;
        changes.notify_waiters();
        Ok(result)
    }
}

impl<T> Inner<T> {
    /// A panic while it was locked leaves nothing half done: there is one step under each lock.
    fn read<R>(&self, look: impl FnOnce(&Published<T>) -> R) -> R {
        look(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A reader that waits for what is published.
pub struct CellFollower<T> {
    cell: Reader<T>,
    /// The version that counts as seen.
    seen: u64,
}

impl<T> CellFollower<T> {
    /// The present value, which counts as seen from now on.
    pub fn take(&mut self) -> Arc<T> {
        let (version, value) =
            self.cell.0.read(|published| (published.version, Arc::clone(&published.value)));
        self.seen = version;
        value
    }

    /// Waits until there is a value that was not seen, and takes it. May be dropped at any time: what was
    /// not returned was not seen.
    pub async fn changed(&mut self) -> Arc<T> {
        self.wait_for_version().await;
        self.take()
    }

    /// Waits until the present value fulfils the condition, seen or not, and takes it.
    pub async fn wait_for(&mut self, condition: impl Fn(&T) -> bool) -> Arc<T> {
        loop {
            let value = self.take();
            if condition(&value) {
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

impl<T> Deref for Writer<T> {
    type Target = Reader<T>;

    fn deref(&self) -> &Reader<T> {
        &self.0
    }
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for CellFollower<T> {
    fn clone(&self) -> Self {
        Self { cell: self.cell.clone(), seen: self.seen }
    }
}

impl<T: fmt::Debug> fmt::Debug for Writer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<T: fmt::Debug> fmt::Debug for Reader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = formatter.debug_tuple("Cell");
        self.0.read(|published| tuple.field(&published.value).finish())
    }
}

wva_base::debug_of!([T] CellFollower<T>: seen);
