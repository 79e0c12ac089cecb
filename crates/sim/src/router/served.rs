//! What became of a request, as its client sees it.

use std::time::Duration;

use crate::engine::{Completion, EngineRefusal, RequestId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rejection {
    /// No ready server, and no flow control that would hold it.
    NoEndpoints,
    /// The queue of flow control is full.
    Capacity,
    /// Held for longer than flow control allows.
    Expired,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestVerdict {
    Answered(Completion),
    Lost(Completion),
    Refused(EngineRefusal),
    Rejected(Rejection),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) request: RequestId,
    pub(crate) arrival: Duration,
    pub(crate) at: Duration,
    pub(crate) held: Duration,
    pub(crate) endpoint: Option<String>,
    pub(crate) verdict: RequestVerdict,
}

impl Served {
    /// From its arrival at the router to its first token, if it had one.
    pub(crate) fn time_to_first_token(&self) -> Option<Duration> {
        let (RequestVerdict::Answered(completion) | RequestVerdict::Lost(completion)) =
            &self.verdict
        else {
            return None;
        };
        let first = completion.time_to_first_token?;
        Some(self.held.saturating_add(first))
    }
}
