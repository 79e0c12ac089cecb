//! Proof that this process may write to the API server, and how it does.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::time::Instant;

use super::client::{RequestError, within};

/// How writes are made: by whom, and how patiently.
#[derive(Clone)]
pub struct WriteApi {
    /// The API server.
    pub client: Client,
    /// Our name as an owner of fields, see [`manager_name`](super::status::manager_name).
    pub manager: Arc<str>,
    /// Longest wait for one request.
    pub timeout: Duration,
}

wva_base::debug_of!(WriteApi: manager, timeout);

/// The right to write would end before the next request. Nothing is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitExpired;

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

    /// Makes one request, provided that it covers it.
    pub(super) async fn request<T>(
        &self,
        timeout: Duration,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<Result<T, RequestError>, PermitExpired> {
        if !self.covers(timeout) {
            return Err(PermitExpired);
        }
        Ok(within(timeout, request).await)
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
