//! A value with one writer and many readers that outlives the writer.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::tenure::{Guard, Superseded, Tenure};

/// The latest value that a role has published.
pub struct Cell<T>(Arc<Inner<T>>);

struct Inner<T> {
    guard: Guard,
    value: watch::Sender<Arc<T>>,
}

impl<T: Send + Sync + 'static> Cell<T> {
    /// Holds `initial` until the first publication.
    pub fn new(initial: T) -> Self {
        Self(Arc::new(Inner {
            guard: Guard::new(),
            value: watch::Sender::new(Arc::new(initial)),
        }))
    }

    /// The present value.
    pub fn load(&self) -> Arc<T> {
        Arc::clone(&self.0.value.borrow())
    }

    /// Follows the value.
    pub fn subscribe(&self) -> watch::Receiver<Arc<T>> {
        self.0.value.subscribe()
    }

    /// Replaces the value.
    ///
    /// # Errors
    /// [`Superseded`] if a later life of the writer has published; the value stays.
    pub fn publish(&self, tenure: &Tenure, value: Arc<T>) -> Result<(), Superseded> {
        let replaced = self
            .0
            .guard
            .admit(tenure, || self.0.value.send_replace(value))?;
        // Dropped here, where no lock is held: it may be large.
        drop(replaced);
        Ok(())
    }
}

impl<T> Clone for Cell<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Cell<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Cell")
            .field(&*self.0.value.borrow())
            .finish()
    }
}
