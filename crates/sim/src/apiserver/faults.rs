//! What may go wrong between one client and the server.

use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestFault {
    /// Time before the server sees it.
    pub(crate) latency: Duration,
    /// A status code to answer instead, such as 429, 500 or 503.
    pub(crate) refuse: Option<u16>,
    pub(crate) hang: bool,
    /// How long a watch lasts at most.
    pub(crate) cut_after: Option<Duration>,
}

pub(crate) trait Faults: Send + Sync {
    fn decide(&self) -> RequestFault;
}
