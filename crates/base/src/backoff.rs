//! Exponential backoff.

use std::time::Duration;

/// Waits that double from `base` up to `cap`. The caller adds the jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Wait after the first failure.
    pub base: Duration,
    /// Longest wait.
    pub cap: Duration,
}

impl Backoff {
    /// Wait after so many failures in a row: `base × 2^(failures − 1)`, at most `cap`; zero after
    /// none.
    pub fn delay(&self, failures: usize) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = u32::try_from(doublings)
            .ok()
            .and_then(|doublings| 1_u32.checked_shl(doublings))
            .unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_from_base_to_cap() {
        let backoff = Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(30) };
        let vectors = [
            (0, 0),
            (1, 200),
            (2, 400),
            (3, 800),
            (8, 25_600),
            (9, 30_000),
            (32, 30_000),
            (33, 30_000),
            (1_000_000, 30_000),
            (usize::MAX, 30_000),
        ];
        for (failures, millis) in vectors {
            assert_eq!(
                backoff.delay(failures),
                Duration::from_millis(millis),
                "after {failures} failures"
            );
        }
    }

    #[test]
    fn does_not_overflow() {
        let backoff = Backoff { base: Duration::MAX, cap: Duration::MAX };
        assert_eq!(backoff.delay(40), Duration::MAX);
    }
}
