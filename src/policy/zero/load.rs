//! Whether anybody uses a model.

use serde::{Deserialize, Serialize};

/// Requests of one model, all of its variants together. `None` is not known, 0 is known to be zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelLoad {
    /// Requests that engines work on.
    pub running: Option<f64>,
    /// Requests that wait in engines.
    pub waiting: Option<f64>,
    /// Requests that wait in the router.
    pub queued: Option<f64>,
    /// Requests that ended since the last look, where anybody counts them: short ones are on no
    /// gauge. Not needed to call a model idle.
    pub ended: Option<f64>,
}

/// Whether anybody uses a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Activity {
    /// At least one request is known.
    Busy,
    /// Running, waiting and queued requests are all known to be zero.
    Idle,
    /// Nothing is known to be above zero, and not everything is known.
    Unknown,
}

impl ModelLoad {
    /// Judges the load.
    pub fn activity(&self) -> Activity {
        let needed = [self.running, self.waiting, self.queued];
        let is_busy = needed
            .iter()
            .chain([&self.ended])
            .flatten()
            .any(|requests| *requests > 0.0);
        let is_zero = |requests: &Option<f64>| requests.is_some_and(|requests| requests <= 0.0);
        if is_busy {
            Activity::Busy
        } else if needed.iter().all(is_zero) {
            Activity::Idle
        } else {
            Activity::Unknown
        }
    }
}
