//! What may go wrong between one client and the server.

use std::time::Duration;

/// What happens to one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestFault {
    /// Time before the server sees it.
    pub latency: Duration,
    /// A status code to answer instead, such as 429, 500 or 503.
    pub refuse: Option<u16>,
    /// Never answers.
    pub hang: bool,
    /// How long a watch lasts at most.
    pub cut_after: Option<Duration>,
}

/// Decides about every request of one client.
pub trait Faults: Send + Sync {
    /// What happens to a request that is made now.
    fn decide(&self) -> RequestFault;
}
