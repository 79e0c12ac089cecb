//! Whether anybody uses a model.

use serde::{Deserialize, Serialize};

/// Signs of use of one model, all of its variants together. `None` is not known, 0 is known to be
/// zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelLoad {
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    /// Requests that wait in the router.
    pub queued: Option<f64>,
    /// Requests that end per second: short ones are on no gauge.
    pub ended: Option<f64>,
    /// Tokens that engines write per second.
    pub written: Option<f64>,
    /// Requests per second that routers accept, or send to engines; the higher of the two.
    pub arriving: Option<f64>,
}

/// Whether anybody uses a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ModelActivity {
    /// At least one sign of use is known.
    Busy,
    /// Every sign of use is known to be zero.
    Idle,
    /// No sign is known to be above zero, and not every one is known.
    #[default]
    Unknown,
}

impl ModelLoad {
    pub fn activity(&self) -> ModelActivity {
        ModelActivity::of([
            self.running,
            self.waiting,
            self.queued,
            self.ended,
            self.written,
            self.arriving,
        ])
    }
}

impl ModelActivity {
    /// Judges signs of use, each of which may not be known.
    pub fn of(signs: impl IntoIterator<Item = Option<f64>>) -> Self {
        let mut activity = Self::Idle;
        for sign in signs {
            match sign {
                Some(sign) if sign > 0.0 => return Self::Busy,
                Some(_) => {}
                None => activity = Self::Unknown,
            }
        }
        activity
    }
}
