//! Time as the decision core sees it: given, never asked for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant on both clocks of this process. Durations are computed on the monotonic one only;
/// the wall clock is for display and for comparing with times that other machines wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// Time since this process started, on the monotonic clock.
    pub monotonic: Duration,
    /// Wall-clock time.
    pub wall: WallTime,
}

impl Moment {
    /// Time that has passed since `earlier`; zero if `earlier` lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        self.monotonic.saturating_sub(earlier.monotonic)
    }
}

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(pub i64);

impl WallTime {
    /// Time that has passed since `earlier`; zero if `earlier` lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
