//! The only place that reads the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use wva_base::moment::{Moment, WallTime};

/// Both clocks of this process. The monotonic one is that of the runtime, so paused time pauses it.
#[derive(Debug, Clone)]
pub struct Clock {
    start: Instant,
    /// Wall time at the start, from which it moves with the monotonic clock. Without one the system is asked every
    /// time: it may be set while the process runs, and samples of other machines are dated by theirs, which are set as
    /// well.
    virtual_start: Option<WallTime>,
}

impl Clock {
    /// Starts now, on the clocks of the system.
    pub fn real() -> Self {
        Self { start: Instant::now(), virtual_start: None }
    }

    /// Starts now, at a wall time of choice that moves with the runtime's clock alone.
    pub fn at(wall: WallTime) -> Self {
        Self { start: Instant::now(), virtual_start: Some(wall) }
    }

    /// The same with a virtual wall clock that is so many milliseconds ahead, behind where that is negative; the
    /// monotonic clock is the same, and that of the system is not ours to set.
    #[must_use]
    pub fn ahead(&self, milliseconds: i64) -> Self {
        let moved = |WallTime(start)| WallTime(start.saturating_add(milliseconds));
        Self { virtual_start: self.virtual_start.map(moved), ..*self }
    }

    /// The present on both clocks.
    pub fn now(&self) -> Moment {
        let monotonic = self.start.elapsed();
        let wall = match self.virtual_start {
            None => system_time(),
            Some(WallTime(start)) => {
                let passed = i64::try_from(monotonic.as_millis()).unwrap_or(i64::MAX);
                WallTime(start.saturating_add(passed))
            }
        };
        Moment { monotonic, wall }
    }
}

#[expect(clippy::disallowed_methods, reason = "every other reader of the time asks this clock")]
fn system_time() -> WallTime {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_moves_with_paused_time_only() {
        let clock = Clock::at(WallTime(1_000));
        let start = clock.now();
        assert_eq!(start.monotonic, Duration::ZERO);
        assert_eq!(start.wall, WallTime(1_000));
        tokio::time::advance(Duration::from_millis(2_500)).await;
        let later = clock.clone().now();
        assert_eq!(later.monotonic, Duration::from_millis(2_500));
        assert_eq!(later.wall, WallTime(3_500));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_ahead_has_the_same_monotonic_time() {
        let clock = Clock::at(WallTime(10_000));
        tokio::time::advance(Duration::from_secs(1)).await;
        for (by, wall) in [(2_500, 13_500), (0, 11_000), (-2_500, 8_500)] {
            let now = clock.ahead(by).now();
            assert_eq!(now.monotonic, clock.now().monotonic);
            assert_eq!(now.wall, WallTime(wall));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_real_clock_knows_the_date() {
        let first_of_2025 = WallTime(1_735_689_600_000);
        assert!(Clock::real().now().wall > first_of_2025);
    }
}
