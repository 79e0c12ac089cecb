//! What may go wrong between one client and the server.

use std::time::Duration;

use http::Method;

/// A request, as faults see it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path.
    pub path: &'a str,
    /// Whether it opens a watch.
    pub watch: bool,
}

/// What happens to one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestFault {
    /// Time before the server sees it.
    pub latency: Duration,
    /// A status code to answer instead, such as 429, 500 or 503, and what to say of a retry.
    pub refuse: Option<(u16, Option<u64>)>,
    /// Never answers.
    pub hang: bool,
    /// How long a watch lasts at most.
    pub cut_after: Option<Duration>,
}

/// Decides about every request of one client.
pub trait Faults: Send + Sync {
    /// What happens to a request.
    fn decide(&self, call: Call<'_>) -> RequestFault;
}

/// Nothing goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

impl Faults for NoFaults {
    fn decide(&self, _call: Call<'_>) -> RequestFault {
        RequestFault::default()
    }
}
