//! Proof that this process may write to the API server.

use std::time::Duration;

use tokio::time::Instant;

/// The right to write, for one unit of work. It can be neither copied nor stored for later: a
/// writing function takes it by value, and it runs out by the clock.
#[derive(Debug)]
pub struct WritePermit {
    term: u64,
    until: Instant,
}

impl WritePermit {
    /// Grants the right for one term of leadership until a moment. Only the claim does that.
    pub(crate) fn new(term: u64, until: Instant) -> Self {
        Self { term, until }
    }

    /// The term of leadership that it belongs to.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Whether a request that starts now and ends within `timeout` ends before the right does.
    /// Asked again before every request, since a process may have been paused since the last one.
    pub fn covers(&self, timeout: Duration) -> bool {
        Instant::now() + timeout <= self.until
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::WritePermit;

    #[tokio::test(start_paused = true)]
    async fn a_permit_runs_out_by_the_clock() {
        let permit = WritePermit::new(3, Instant::now() + Duration::from_secs(10));
        assert_eq!(permit.term(), 3);
        assert!(permit.covers(Duration::from_secs(10)));
        assert!(!permit.covers(Duration::from_millis(10_001)));
        advance(Duration::from_secs(6)).await;
        assert!(!permit.covers(Duration::from_secs(5)));
        assert!(permit.covers(Duration::from_secs(4)));
    }
}
