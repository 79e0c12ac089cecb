//! What may go wrong between one client and the server.

use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestFault {
    pub(crate) latency: Duration,
    pub(crate) refuse: Option<u16>,
    pub(crate) hang: bool,
    pub(crate) cut_after: Option<Duration>,
}

/// What becomes of a request that comes now.
pub(crate) type Faults = dyn Fn() -> RequestFault + Send + Sync;
