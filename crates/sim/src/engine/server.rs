//! One model server.

use std::collections::VecDeque;
use std::time::Duration;

use super::batch::Batch;
use super::kv::KvPool;
use super::profile::{Limits, Profile};
use super::request::{Completion, EngineRefusal, Request, RequestEnd, Sequence};
use super::statistics::Statistics;
use super::step::{EngineStep, Prefilling};
use super::timing::Picoseconds;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Ends what it has and takes nothing more.
    Draining,
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EngineReading {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) kv_usage: f64,
}

/// A server with continuous batching.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(super) profile: Profile,
    pub(super) limits: Limits,
    phase: Phase,
    /// The start of the step in flight, or the time up to which all is done.
    pub(super) now: Picoseconds,
    pub(super) admissions: u64,
    pub(super) waiting: VecDeque<Sequence>,
    pub(super) prefilling: VecDeque<Prefilling>,
    pub(super) batch: Batch,
    pub(super) kv: KvPool,
    pub(super) step: Option<EngineStep>,
    pub(super) statistics: Statistics,
    pub(super) completions: Vec<Completion>,
}

impl Engine {
    /// A server that serves from `start` on. Limits below what works are raised to it: one sequence, one
    /// token, as many tokens per step as sequences.
    pub(crate) fn new(profile: Profile, limits: Limits, start: Duration) -> Self {
        let max_num_batched_tokens = limits.max_num_batched_tokens.max(1);
        let limits = Limits {
            max_num_seqs: limits.max_num_seqs.clamp(1, max_num_batched_tokens),
            max_num_batched_tokens,
            block_size: limits.block_size.max(1),
            ..limits
        };
        Self {
            profile,
            limits,
            phase: Phase::Serving,
            now: Picoseconds::of(start),
            admissions: 0,
            waiting: VecDeque::new(),
            prefilling: VecDeque::new(),
            batch: Batch::new(limits.block_size),
            kv: KvPool::new(profile.kv_tokens, limits.block_size),
            step: None,
            statistics: Statistics::new(limits.max_model_len),
            completions: Vec::new(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn reading(&self) -> EngineReading {
        EngineReading {
            running: self.running(),
            waiting: self.waiting.len(),
            kv_usage: self.kv.usage(),
        }
    }

    pub(crate) fn kv(&self) -> &KvPool {
        &self.kv
    }

    /// Requests in the batch, those whose prompt is being computed included.
    pub(super) fn running(&self) -> usize {
        self.batch.len() + self.prefilling.len()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running() == 0 && self.waiting.is_empty()
    }

    /// Queues a request that arrives at `at`. A time that has passed counts as the present.
    pub(crate) fn submit(&mut self, request: Request, at: Duration) -> Result<(), EngineRefusal> {
        self.advance(at);
        if self.phase != Phase::Serving {
            return Err(EngineRefusal::NotServing(self.phase));
        }
        if request.prompt_tokens == 0 || request.output_tokens == 0 {
            return Err(EngineRefusal::Empty);
        }
        let room = self.kv.capacity.saturating_mul(self.kv.block_size);
        let limit = self.limits.max_model_len.min(room);
        let tokens = request.prompt_tokens.saturating_add(request.output_tokens);
        if tokens > limit {
            return Err(EngineRefusal::TooLong { limit });
        }
        self.statistics.submitted += 1;
        let arrival = Picoseconds::of(at).max(self.now);
        self.waiting.push_back(Sequence::new(request, arrival));
        Ok(())
    }

    /// Does all work up to `to`. A time that has passed changes nothing.
    pub(crate) fn advance(&mut self, to: Duration) {
        let to = Picoseconds::of(to);
        loop {
            match self.step.take() {
                Some(step) if step.end > to => {
                    self.step = Some(step);
                    return;
                }
                Some(step) => self.end_step(step),
                // At `to` itself more may arrive that belongs into the step.
                None if self.now < to && !self.is_idle() => self.begin_step(to),
                None => break,
            }
        }
        self.now = self.now.max(to);
    }

    pub(crate) fn drain(&mut self, at: Duration) {
        self.advance(at);
        if self.phase == Phase::Serving {
            self.phase = Phase::Draining;
        }
    }

    /// Dies: whatever it has is aborted.
    pub(crate) fn stop(&mut self, at: Duration) {
        self.advance(at);
        self.phase = Phase::Stopped;
        self.step = None;
        let at = Picoseconds::of(at).max(self.now);
        let waiting = std::mem::take(&mut self.waiting);
        let prefilling = std::mem::take(&mut self.prefilling);
        for left in prefilling.into_iter().map(Prefilling::left) {
            self.complete(&left.sequence, RequestEnd::Aborted, at);
        }
        while let Some(left) = self.batch.remove_youngest() {
            self.complete(&left.sequence, RequestEnd::Aborted, at);
        }
        self.kv = KvPool::new(self.profile.kv_tokens, self.limits.block_size);
        for sequence in waiting {
            self.complete(&sequence, RequestEnd::Aborted, at);
        }
    }

    pub(super) fn complete(&mut self, sequence: &Sequence, outcome: RequestEnd, at: Picoseconds) {
        self.statistics.completed(sequence, outcome, at);
        self.completions.push(sequence.completion(outcome, at));
    }

    pub(crate) fn take_completions(&mut self) -> Vec<Completion> {
        std::mem::take(&mut self.completions)
    }
}
