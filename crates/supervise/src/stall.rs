//! Recognises a life that stands still.

use std::time::Duration;

/// What counts of the time between two observations at most: where they are further from each other,
/// the whole process stood still, and the life with it.
const LOOK: Duration = Duration::from_secs(5);

/// Watches the counters of one life from outside.
#[derive(Debug, Default)]
pub(super) struct StallWatch(Option<Suspicion>);

#[derive(Debug, Clone, Copy)]
struct Suspicion {
    handled: u64,
    at: Duration,
    /// How long it has stood still, as far as it was observed.
    still: Duration,
}

impl StallWatch {
    /// How long messages have waited without one being finished, as far as it was observed;
    /// zero for an idle life. A long idle time does not count: the clock starts at the first
    /// observation with something waiting.
    pub(super) fn observe(&mut self, now: Duration, sent: u64, handled: u64) -> Duration {
        if sent <= handled {
            self.0 = None;
            return Duration::ZERO;
        }
        let known = self.0.filter(|suspicion| suspicion.handled == handled);
        let still = known
            .map_or(Duration::ZERO, |known| known.still + now.saturating_sub(known.at).min(LOOK));
        self.0 = Some(Suspicion { handled, at: now, still });
        still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_the_first_observation_without_progress() {
        // (second, sent, handled, seconds without progress)
        let observations = [
            (0, 0, 0, 0),
            (3_600, 1, 0, 0),
            (3_605, 2, 0, 5),
            (3_606, 2, 1, 0),
            (3_610, 9, 1, 4),
            (3_611, 9, 9, 0),
            (3_620, 10, 9, 0),
            (3_621, 10, 9, 1),
            // The process was paused.
            (3_700, 10, 9, 6),
            (3_701, 10, 9, 7),
        ];
        let mut watch = StallWatch::default();
        for (second, sent, handled, still) in observations {
            assert_eq!(
                watch.observe(Duration::from_secs(second), sent, handled),
                Duration::from_secs(still),
                "at second {second}"
            );
        }
    }
}
