//! How every single request ended, for those who score a whole run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::router::{RequestVerdict, Served};
use crate::threads::locked;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestResult {
    Answered {
        /// From its arrival at the router to its first token.
        first_token: Duration,
        /// Mean time between its tokens; none with a single token.
        per_token: Option<Duration>,
        tokens: u32,
    },
    /// A server or the router did not take it.
    Refused,
    /// Its server died, or the router held it for too long.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedRequest {
    /// Its place in the order of arrival, from 0.
    pub(crate) index: u64,
    pub(crate) arrival: Duration,
    pub(crate) at: Duration,
    pub(crate) result: RequestResult,
}

/// Ends of requests in the order of leaving. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Arc<Mutex<Vec<EndedRequest>>>);

impl RequestLog {
    pub(super) fn ended(&self, served: &Served) {
        use crate::router::Rejection;
        let result = match &served.verdict {
            RequestVerdict::Answered(completion) => match served.time_to_first_token() {
                Some(first_token) => RequestResult::Answered {
                    first_token,
                    per_token: completion.time_per_output_token(),
                    tokens: completion.output_tokens,
                },
                None => RequestResult::Failed,
            },
            RequestVerdict::Lost(_) | RequestVerdict::Rejected(Rejection::Expired) => {
                RequestResult::Failed
            }
            RequestVerdict::Refused(_) | RequestVerdict::Rejected(_) => RequestResult::Refused,
        };
        locked(&self.0).push(EndedRequest {
            index: served.request.0.saturating_sub(1),
            arrival: served.arrival,
            at: served.at,
            result,
        });
    }

    /// Takes what has ended since this was last called.
    pub(crate) fn take(&self) -> Vec<EndedRequest> {
        std::mem::take(&mut *locked(&self.0))
    }
}
