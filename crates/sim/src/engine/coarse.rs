//! A server as a vessel: requests flow in, stay for a while that depends on how many there are, and
//! flow out. It knows no single request, but costs as little at a thousand requests per second as at
//! one.

use std::time::Duration;

use super::page::{Dialect, EngineFigures};
use super::profile::{Limits, Profile};
use super::statistics::Statistics;
use crate::exposition::Page;
use crate::number;

/// The longest time over which flows are taken as constant.
const STRIDE: Duration = Duration::from_secs(1);

/// What requests are like on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Tokens of a prompt.
    pub prompt_tokens: u32,
    /// Tokens of an answer.
    pub output_tokens: u32,
    /// Share of a prompt that is in the prefix cache, 0 to 1.
    pub cached: f64,
}

/// A server without single requests, which obeys the same step times as [`super::Engine`].
#[derive(Debug, Clone)]
pub(crate) struct CoarseEngine {
    profile: Profile,
    limits: Limits,
    mix: Mix,
    now: Duration,
    running: f64,
    waiting: f64,
    /// What has flowed out and does not make a whole request yet.
    rest: f64,
    pub(crate) statistics: Statistics,
}

impl CoarseEngine {
    pub(crate) fn new(profile: Profile, limits: Limits, mix: Mix, start: Duration) -> Self {
        Self {
            profile,
            limits,
            mix,
            now: start,
            running: 0.0,
            waiting: 0.0,
            rest: 0.0,
            statistics: Statistics::new(limits.max_model_len),
        }
    }

    /// One that holds this share of its KV cache and this queue. It stays so for as long as time does
    /// not pass in it.
    #[must_use]
    pub(crate) fn posed(mut self, kv_usage: f64, waiting: f64) -> Self {
        self.running = kv_usage * f64::from(self.profile.kv_tokens) / self.context().max(1.0);
        self.waiting = waiting;
        self
    }

    pub(crate) fn adapt(&mut self, mix: Mix) {
        self.mix = mix;
    }

    pub(crate) fn running(&self) -> f64 {
        self.running
    }

    pub(crate) fn waiting(&self) -> f64 {
        self.waiting
    }

    pub(crate) fn kv_usage(&self) -> f64 {
        let used = self.running * self.context();
        (used / f64::from(self.profile.kv_tokens.max(1))).min(1.0)
    }

    /// More requests at once, like those that a router had held. They wait only where there is no
    /// room for them.
    pub(crate) fn pour(&mut self, requests: f64) {
        let offered = self.waiting + requests.max(0.0);
        let admitted = offered.min((self.most() - self.running).max(0.0));
        self.running += admitted;
        self.waiting = offered - admitted;
    }

    /// Does all work up to `to` while requests come at `rate` per second. A time that has passed
    /// changes nothing. Returns how much time has passed.
    pub(crate) fn advance(&mut self, to: Duration, rate: f64) -> Duration {
        let passed = to.saturating_sub(self.now);
        while self.now < to {
            let stride = to.saturating_sub(self.now).min(STRIDE);
            self.now += stride;
            self.flow(stride.as_secs_f64(), rate.max(0.0));
        }
        passed
    }

    fn flow(&mut self, seconds: f64, rate: f64) {
        let stay = self.stay();
        let freed = self.running * seconds / stay;
        let room = (self.most() - self.running + freed).max(0.0);
        let offered = self.waiting + rate * seconds;
        let admitted = offered.min(room);
        self.waiting = offered - admitted;
        // What was there leaves exponentially, and so does what comes in evenly meanwhile.
        let left = (-seconds / stay).exp();
        let running = self.running * left + admitted / seconds * stay * (1.0 - left);
        let done = self.running + admitted - running;
        self.running = running;
        self.count(done, done / seconds);
    }

    /// How long a request runs, in seconds: its own steps, and the prompts that others bring along
    /// meanwhile.
    fn stay(&self) -> f64 {
        let others = self.running.max(1.0);
        f64::from(self.mix.output_tokens.max(1)) * self.step() + others * self.prefill()
    }

    fn step(&self) -> f64 {
        let timing = &self.profile.timing;
        let running = self.running.max(1.0);
        let beyond = (running - number::real(timing.ridge)).max(0.0);
        timing.step.seconds()
            + running * (timing.sequence.seconds() + self.context() * timing.context.seconds())
            + beyond * timing.surcharge().seconds()
    }

    /// The time that a prompt takes from all others, in seconds.
    fn prefill(&self) -> f64 {
        let missing = f64::from(self.mix.prompt_tokens) * (1.0 - self.mix.cached.clamp(0.0, 1.0));
        missing * self.profile.timing.prompt_token.seconds()
    }

    /// Tokens that a request holds, on average over its stay.
    fn context(&self) -> f64 {
        f64::from(self.mix.prompt_tokens) + f64::from(self.mix.output_tokens) / 2.0
    }

    fn most(&self) -> f64 {
        let fitting = f64::from(self.profile.kv_tokens) / self.context().max(1.0);
        fitting.min(f64::from(self.limits.max_num_seqs)).max(1.0)
    }

    fn count(&mut self, done: f64, rate: f64) {
        self.rest += done;
        let whole = number::rounded(self.rest - 0.5);
        if whole == 0 {
            return;
        }
        self.rest -= f64::from(whole);
        let queued = if rate > 0.0 { self.waiting / rate } else { 0.0 };
        let prefill = self.profile.timing.prompt.seconds() + self.prefill();
        let Mix { prompt_tokens, output_tokens, cached } = self.mix;
        let lengths = (prompt_tokens, output_tokens, cached);
        let times = (queued + prefill, self.stay());
        self.statistics.flowed(u64::from(whole), lengths, times);
    }

    pub(crate) fn page(&self, dialect: Dialect, model: &str) -> Page {
        let block_size = self.limits.block_size.max(1);
        let capacity = self.profile.kv_tokens / block_size;
        let shown = EngineFigures {
            running: self.running.round(),
            waiting: self.waiting.round(),
            used: number::rounded(self.kv_usage() * f64::from(capacity)),
            kept: 0,
            capacity,
            block_size,
            statistics: &self.statistics,
        };
        shown.page(dialect, model)
    }
}
