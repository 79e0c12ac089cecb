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

impl Moment {
    /// So much earlier, not before the process started.
    #[must_use]
    pub fn earlier(self, by: Duration) -> Self {
        let by = by.min(self.monotonic);
        Self { monotonic: self.monotonic.saturating_sub(by), wall: self.wall.earlier(by) }
    }

    /// So much later.
    #[must_use]
    pub fn later(self, by: Duration) -> Self {
        Self { monotonic: self.monotonic.saturating_add(by), wall: self.wall.later(by) }
    }
}

impl WallTime {
    /// Time that has passed since `earlier`; zero if `earlier` lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// So much earlier.
    #[must_use]
    pub fn earlier(self, by: Duration) -> Self {
        let milliseconds = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(milliseconds))
    }

    /// So much later.
    #[must_use]
    pub fn later(self, by: Duration) -> Self {
        let milliseconds = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(milliseconds))
    }
}

/// The start of a state that lasts. It may lie before this process existed, which a [`Moment`]
/// cannot express: its monotonic clock starts at zero with the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Since {
    /// When this process first saw the state.
    pub first_seen: Moment,
    /// How long the state had already lasted by then.
    pub before: Duration,
}

impl Since {
    /// A state that begins now.
    pub fn at(now: Moment) -> Self {
        Self { first_seen: now, before: Duration::ZERO }
    }

    /// A state that began at a time which another machine wrote; a time ahead of ours means now.
    pub fn written(began: WallTime, now: Moment) -> Self {
        Self { first_seen: now, before: now.wall.since(began) }
    }

    /// How long the state has lasted.
    pub fn elapsed(self, now: Moment) -> Duration {
        now.since(self.first_seen).saturating_add(self.before)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Moment, Since, WallTime};

    fn moment(seconds: u64, wall: i64) -> Moment {
        Moment { monotonic: Duration::from_secs(seconds), wall: WallTime(wall) }
    }

    #[test]
    fn a_state_can_be_older_than_the_process() {
        let seen = moment(3, 600_000);
        assert_eq!(Since::at(seen).elapsed(seen), Duration::ZERO);
        let since = Since::written(WallTime(120_000), seen);
        assert_eq!(since.elapsed(seen), Duration::from_mins(8));
        assert_eq!(since.elapsed(moment(63, 0)), Duration::from_mins(9));
    }

    #[test]
    fn a_time_ahead_of_our_clock_means_now() {
        let seen = moment(3, 600_000);
        let since = Since::written(WallTime(900_000), seen);
        assert_eq!(since.elapsed(moment(4, 601_000)), Duration::from_secs(1));
    }
}
