//! Requests between the servers that read their prompts and those that write their answers.

use std::collections::BTreeMap;
use std::time::Duration;

use super::pool::Held;
use crate::engine::{Completion, Request, RequestEnd, RequestId};

#[derive(Debug, Clone)]
pub(super) struct Handover {
    /// How long the KV cache of one token takes.
    per_token: Duration,
    /// Requests whose prompt is being computed.
    computing: BTreeMap<RequestId, Request>,
    /// Requests whose cache is on its way, by when it is there.
    moving: BTreeMap<(Duration, RequestId), Held>,
}

impl Handover {
    pub(super) fn new(per_token: Duration) -> Self {
        Self { per_token, computing: BTreeMap::new(), moving: BTreeMap::new() }
    }

    /// What a prefill server gets of a request: the prompt, and one token to answer.
    pub(super) fn prompt_of(&mut self, request: Request) -> Request {
        let prompt = Request { output_tokens: request.output_tokens.min(1), ..request.clone() };
        self.computing.insert(request.id, request);
        prompt
    }

    /// Takes a prompt that was computed; false where the request has ended by this completion.
    pub(super) fn takes(&mut self, completion: &Completion, arrival: Duration) -> bool {
        let Some(request) = self.computing.remove(&completion.request) else {
            return false;
        };
        if completion.outcome != RequestEnd::Finished {
            return false;
        }
        let time = self.per_token.saturating_mul(request.prompt_tokens);
        let request = Request { received_tokens: request.prompt_tokens, ..request };
        let due = completion.at.saturating_add(time);
        self.moving.insert((due, request.id), Held { request, arrival, deadline: due });
        true
    }

    /// A server did not take the prompt of a request, which has ended.
    pub(super) fn forget(&mut self, request: RequestId) {
        self.computing.remove(&request);
    }

    pub(super) fn next(&mut self, now: Duration) -> Option<Held> {
        let first = self.moving.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub(super) fn moving(&self) -> usize {
        self.moving.len()
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.computing.is_empty() || !self.moving.is_empty()
    }
}
