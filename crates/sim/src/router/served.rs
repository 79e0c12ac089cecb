//! What became of a request, as its client sees it.

use std::time::Duration;

use crate::engine::{Completion, EngineRefusal, RequestId};

/// Why the router did not get a request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// No ready server, and no flow control that would hold it.
    NoEndpoints,
    /// The queue of flow control is full.
    Capacity,
    /// Held for longer than flow control allows.
    Expired,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestVerdict {
    /// Answered.
    Answered(Completion),
    /// Its server died.
    Lost(Completion),
    /// Its server refused it.
    Refused(EngineRefusal),
    /// It never got to a server.
    Rejected(Rejection),
}

/// A request that has left the router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Which.
    pub request: RequestId,
    /// When it came.
    pub arrival: Duration,
    /// When it left.
    pub at: Duration,
    /// How long the router held it.
    pub held: Duration,
    /// The server that had it, if one had.
    pub endpoint: Option<String>,
    /// How it ended.
    pub verdict: RequestVerdict,
}

impl Served {
    /// From its arrival at the router to its first token, if it had one.
    pub fn time_to_first_token(&self) -> Option<Duration> {
        let (RequestVerdict::Answered(completion) | RequestVerdict::Lost(completion)) =
            &self.verdict
        else {
            return None;
        };
        let first = completion.time_to_first_token?;
        Some(self.held.saturating_add(first))
    }
}
