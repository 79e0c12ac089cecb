//! The common beat of collector and optimizer: `tick(n) = anchor + n × interval`.

use std::time::Duration;

use wva_base::moment::Moment;

/// A fixed-rate schedule. Both readers compute it from one value, so they agree without talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickSchedule {
    anchor: Moment,
    interval: Duration,
}

impl TickSchedule {
    /// Starts now.
    pub fn starting(now: Moment, interval: Duration) -> Self {
        Self { anchor: now, interval }
    }

    /// The interval between ticks.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Time until the first tick that lies after `now`.
    pub fn until_next(&self, now: Moment) -> Duration {
        let interval = self.interval.as_nanos().max(1);
        let into_tick = now.since(self.anchor).as_nanos() % interval;
        Duration::from_nanos(u64::try_from(interval - into_tick).unwrap_or(u64::MAX))
    }

    /// The same beat with another interval: the next tick comes one new interval after the last
    /// tick, and at once if that lies behind. So a shorter interval acts at once, and a longer one
    /// never postpones a tick that was already due.
    #[must_use]
    pub fn with_interval(&self, now: Moment, interval: Duration) -> Self {
        if interval == self.interval {
            return *self;
        }
        let since_last = self.interval.saturating_sub(self.until_next(now));
        let since_last = since_last.min(interval);
        let anchor = Moment { monotonic: now.monotonic.saturating_sub(since_last), wall: now.wall };
        Self { anchor, interval }
    }

    /// How long a collection may take: a quarter of the interval, at most 10 seconds, so that it
    /// ends before the next tick.
    pub fn query_deadline(&self) -> Duration {
        (self.interval / 4).min(Duration::from_secs(10))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::TickSchedule;
    use wva_base::moment::{Moment, WallTime};

    fn at(millis: u64) -> Moment {
        Moment { monotonic: Duration::from_millis(millis), wall: WallTime(0) }
    }

    fn next(schedule: TickSchedule, now: u64) -> u128 {
        schedule.until_next(at(now)).as_millis()
    }

    #[test]
    fn ticks_come_at_a_fixed_rate_from_the_anchor() {
        let schedule = TickSchedule::starting(at(500), Duration::from_mins(1));
        assert_eq!(next(schedule, 500), 60_000);
        assert_eq!(next(schedule, 60_499), 1);
        assert_eq!(next(schedule, 60_500), 60_000);
        assert_eq!(next(schedule, 200_000), 40_500);
    }

    #[test]
    fn a_shorter_interval_acts_at_once_and_a_longer_one_postpones_nothing_due() {
        let minute = TickSchedule::starting(at(0), Duration::from_mins(1));
        // 30 s into a tick, 2 s asked for: overdue, so the next tick is one interval from now at most.
        let shorter = minute.with_interval(at(30_000), Duration::from_secs(2));
        assert_eq!(next(shorter, 30_000), 2_000);
        // 1 s into a tick, 120 s asked for: the next tick is 120 s after the last one.
        let longer = minute.with_interval(at(61_000), Duration::from_mins(2));
        assert_eq!(next(longer, 61_000), 119_000);
        assert_eq!(minute.with_interval(at(61_000), Duration::from_mins(1)), minute);
    }
}
