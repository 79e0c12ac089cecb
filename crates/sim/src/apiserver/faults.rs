//! What may go wrong between one client and the server.

use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestFault {
    pub(crate) latency: Duration,
    pub(crate) refuse: Option<u16>,
    pub(crate) hang: bool,
    pub(crate) cut_after: Option<Duration>,
}

pub(crate) trait Faults: Send + Sync {
    fn decide(&self) -> RequestFault;
}
