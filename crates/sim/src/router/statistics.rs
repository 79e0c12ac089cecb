//! What a router counts, from its start.

use std::collections::BTreeMap;
use std::time::Duration;

use super::served::{Rejection, RequestVerdict, Served};
use crate::exposition::Histogram;

const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0,
    1200.0, 1800.0, 2700.0, 3600.0,
];
const PER_TOKEN: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];
const TOKENS: &[f64] = &[
    1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0,
    32768.0, 65536.0, 131_072.0,
];
const BYTES: &[f64] = &[
    64.0,
    128.0,
    256.0,
    512.0,
    1024.0,
    2048.0,
    4096.0,
    8192.0,
    16384.0,
    32768.0,
    65536.0,
    131_072.0,
    262_144.0,
    524_288.0,
    1_048_576.0,
];
/// Bytes of text behind a token, on average.
pub(super) const BYTES_PER_TOKEN: f64 = 4.0;

/// Counters and histograms of one router.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterStatistics {
    /// Requests that came.
    pub requests: u64,
    /// Requests that failed, by code.
    pub errors: BTreeMap<&'static str, u64>,
    /// Attempts to pick a server that found one.
    pub picked: BTreeMap<String, u64>,
    /// Attempts to pick a server that found none.
    pub not_picked: u64,
    /// What flow control did, by outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Time held by flow control, by outcome, in seconds.
    pub held: BTreeMap<&'static str, Histogram>,
    /// Arrival to end, in seconds.
    pub duration: Histogram,
    /// Arrival to first token, in seconds.
    pub first_token: Histogram,
    /// Duration over tokens answered, in seconds.
    pub normalized_per_token: Histogram,
    /// Mean time between tokens, in seconds.
    pub per_token: Histogram,
    /// Prompt tokens.
    pub input_tokens: Histogram,
    /// Tokens answered.
    pub output_tokens: Histogram,
    /// Prompt tokens from the prefix cache.
    pub cached_tokens: Histogram,
    /// Bytes asked.
    pub request_bytes: Histogram,
    /// Bytes answered.
    pub response_bytes: Histogram,
}

impl Default for RouterStatistics {
    fn default() -> Self {
        Self {
            requests: 0,
            errors: BTreeMap::new(),
            picked: BTreeMap::new(),
            not_picked: 0,
            outcomes: BTreeMap::new(),
            held: BTreeMap::new(),
            duration: Histogram::new(SECONDS),
            first_token: Histogram::new(SECONDS),
            normalized_per_token: Histogram::new(PER_TOKEN),
            per_token: Histogram::new(PER_TOKEN),
            input_tokens: Histogram::new(TOKENS),
            output_tokens: Histogram::new(TOKENS),
            cached_tokens: Histogram::new(TOKENS),
            request_bytes: Histogram::new(BYTES),
            response_bytes: Histogram::new(BYTES),
        }
    }
}

impl RouterStatistics {
    pub(super) fn came(&mut self, prompt_tokens: u32) {
        self.requests += 1;
        self.request_bytes
            .observe(f64::from(prompt_tokens) * BYTES_PER_TOKEN);
    }

    pub(super) fn picked(&mut self, endpoint: &str) {
        if let Some(count) = self.picked.get_mut(endpoint) {
            *count += 1;
        } else {
            self.picked.insert(endpoint.to_owned(), 1);
        }
    }

    /// Flow control let a request go.
    pub(super) fn released(&mut self, outcome: &'static str, held: Duration) {
        *self.outcomes.entry(outcome).or_default() += 1;
        let histogram = self.held.entry(outcome);
        let histogram = histogram.or_insert_with(|| Histogram::new(SECONDS));
        histogram.observe(held.as_secs_f64());
    }

    pub(super) fn left(&mut self, served: &Served) {
        let completion = match &served.verdict {
            RequestVerdict::Answered(completion) => completion,
            RequestVerdict::Lost(_) => return self.error("ModelServerError"),
            RequestVerdict::Refused(_) => return self.error("BadRequest"),
            RequestVerdict::Rejected(rejection) => {
                return self.error(Rejection::error_code(*rejection));
            }
        };
        let duration = served.at.saturating_sub(served.arrival).as_secs_f64();
        let output = f64::from(completion.output_tokens);
        self.duration.observe(duration);
        self.normalized_per_token
            .observe(duration / output.max(1.0));
        if let Some(first) = served.time_to_first_token() {
            self.first_token.observe(first.as_secs_f64());
        }
        if let Some(gap) = completion.time_per_output_token() {
            self.per_token.observe(gap.as_secs_f64());
        }
        self.input_tokens
            .observe(f64::from(completion.prompt_tokens));
        self.output_tokens.observe(output);
        self.cached_tokens
            .observe(f64::from(completion.cached_tokens));
        self.response_bytes.observe(output * BYTES_PER_TOKEN);
    }

    fn error(&mut self, code: &'static str) {
        *self.errors.entry(code).or_default() += 1;
    }
}
