//! What a server is asked, and what became of it.

use std::sync::Arc;
use std::time::Duration;

use super::server::Phase;
use super::timing::Picoseconds;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestId(pub(crate) u64);

/// The head of a prompt in pieces that other prompts may share. An id stands for its piece and for all
/// before it, as chained hashes do: where two prompts have the same id, they are equal up to there, and
/// KV blocks can be used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The pieces from the first on.
    pub ids: Arc<[u64]>,
    /// Tokens of one piece.
    pub tokens_per_id: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    /// Tokens of the prompt; at least one.
    pub(crate) prompt_tokens: u32,
    /// Tokens of the answer; at least one.
    pub(crate) output_tokens: u32,
    pub(crate) prefix: Option<Prefix>,
    /// Prompt tokens whose KV cache another server has computed and sent.
    pub(crate) received_tokens: u32,
}

/// Why a server does not take a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineRefusal {
    NotServing(Phase),
    TooLong {
        /// The smaller of `max_model_len` and the KV cache, in tokens.
        limit: u32,
    },
    /// A request needs at least one prompt and one output token.
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestEnd {
    Finished,
    /// The server died under it, or the client left.
    Aborted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) request: RequestId,
    pub(crate) outcome: RequestEnd,
    pub(crate) at: Duration,
    /// From its arrival at the server to its first token, if it had one.
    pub(crate) time_to_first_token: Option<Duration>,
    /// From its arrival at the server to its end.
    pub(crate) duration: Duration,
    pub(crate) prompt_tokens: u32,
    /// Prompt tokens found in the prefix cache when it was first taken up.
    pub(crate) cached_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) preemptions: u32,
}

impl Completion {
    pub(crate) fn time_per_output_token(&self) -> Option<Duration> {
        let first = self.time_to_first_token?;
        let gaps = self.output_tokens.checked_sub(1).filter(|gaps| *gaps > 0)?;
        Some(self.duration.saturating_sub(first) / gaps)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Sequence {
    pub(super) request: Request,
    pub(super) arrival: Picoseconds,
    pub(super) admitted: Option<Picoseconds>,
    pub(super) first_token: Option<Picoseconds>,
    pub(super) last_token: Option<Picoseconds>,
    /// Tokens answered when it last joined the batch; all of them while it waits.
    pub(super) generated: u32,
    pub(super) cached: u32,
    pub(super) preemptions: u32,
}

impl Sequence {
    pub(super) fn new(request: Request, arrival: Picoseconds) -> Self {
        Self {
            request,
            arrival,
            admitted: None,
            first_token: None,
            last_token: None,
            generated: 0,
            cached: 0,
            preemptions: 0,
        }
    }

    /// Tokens to compute before the next one can be answered: after a preemption also what had been
    /// answered.
    pub(super) fn prefill_tokens(&self) -> u32 {
        self.request.prompt_tokens.saturating_add(self.generated)
    }

    /// Of these tokens those that are neither computed, nor cached, nor received. The last one is always computed, and
    /// what was received is gone with the blocks after a preemption.
    pub(super) fn missing(&self, tokens: u32, cached: u32) -> u32 {
        let received = match self.preemptions {
            0 => self.request.received_tokens.min(tokens.saturating_sub(1)),
            _ => 0,
        };
        tokens.saturating_sub(cached.max(received))
    }

    pub(super) fn completion(&self, outcome: RequestEnd, at: Picoseconds) -> Completion {
        let since_arrival = |time: Picoseconds| time.since(self.arrival).duration();
        Completion {
            request: self.request.id,
            outcome,
            at: at.duration(),
            time_to_first_token: self.first_token.map(since_arrival),
            duration: since_arrival(at),
            prompt_tokens: self.request.prompt_tokens,
            cached_tokens: self.cached,
            output_tokens: self.generated,
            preemptions: self.preemptions,
        }
    }
}
