//! The right to write, held by one life at a time.
//!
//! When a supervisor dies its children are killed as well, but a long handler of an old child may
//! still run while its successor starts. So every write of shared state shows an epoch, and an older
//! one is refused once a newer one has written.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::locked;

/// One life of a role. Numbers grow over all lives of all roles of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    role: Arc<str>,
    number: u64,
}

impl Epoch {
    pub(super) fn new(role: &impl fmt::Display, number: u64) -> Self {
        let role = Arc::from(role.to_string());
        Self { role, number }
    }

    /// A tenure as a supervisor would give it, for tests and benchmarks.
    #[cfg(any(test, feature = "hooks"))]
    pub fn for_test(role: impl fmt::Display, number: u64) -> Self {
        Self::new(&role, number)
    }

    /// The name of the role that is filled.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// Grows from life to life; never repeats within a process.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// A write came too late: a later life of the role has written already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{role} no. {number} was superseded by no. {newest}; it must write nothing more and end")]
pub struct Fenced {
    /// The role that tried to write.
    pub role: Arc<str>,
    /// The life that tried to write.
    pub number: u64,
    /// The newest life that has written.
    pub newest: u64,
}

/// Admits the writes of one role to one place, newest life only. A place that several roles write,
/// each its own part, needs one guard per part.
#[derive(Debug, Default)]
pub struct Guard(Mutex<u64>);

impl Guard {
    /// A guard before the first write.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `write` unless a newer tenure has been admitted before. The guard is held meanwhile, so
    /// `write` must be short and must not use the same guard.
    ///
    /// # Errors
    /// [`Fenced`] if a newer tenure was admitted before; nothing was written then.
    pub fn admit<R>(&self, epoch: &Epoch, write: impl FnOnce() -> R) -> Result<R, Fenced> {
        let mut newest = locked(&self.0);
        if epoch.number < *newest {
            return Err(Fenced {
                role: Arc::clone(&epoch.role),
                number: epoch.number,
                newest: *newest,
            });
        }
        *newest = epoch.number;
        Ok(write())
    }
}
