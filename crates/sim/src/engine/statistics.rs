//! What a server counts, from its start.

use super::request::{RequestEnd, Sequence};
use super::timing::{Picoseconds, Run};
use crate::exposition::Histogram;
use crate::number;

const FIRST_TOKEN: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
const BETWEEN_TOKENS_MILLIS: &[u64] = &[
    10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000, 20_000,
    40_000, 80_000,
];
const WHOLE_REQUEST: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

fn one_two_five(most: u32) -> Vec<f64> {
    let decades = (0..10).map(|power| 10_u64.pow(power));
    decades
        .flat_map(|unit| [unit, 2 * unit, 5 * unit])
        .take_while(|bound| *bound <= u64::from(most))
        .map(number::real)
        .collect()
}

/// Counters and histograms of one server. Tokens are counted when their request gets its first token
/// (the prompt) and when they are answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) submitted: u64,
    pub(crate) finished: u64,
    pub(crate) aborted: u64,
    /// Prompt tokens, cached ones included, counted once however often a request is preempted.
    pub(crate) prompt_tokens: u64,
    pub(crate) generation_tokens: u64,
    pub(crate) prefix_queries: u64,
    pub(crate) prefix_hits: u64,
    /// Sequences sent back to the queue for lack of KV cache.
    pub(crate) preemptions: u64,
    /// Arrival to first token, in seconds.
    pub(crate) first_token: Histogram,
    /// Between two tokens of a request, in seconds.
    pub(crate) between_tokens: Histogram,
    /// Mean of the former per request.
    pub(crate) per_output_token: Histogram,
    /// Arrival to end, in seconds.
    pub(crate) whole: Histogram,
    pub(crate) prompt_lengths: Histogram,
    pub(crate) output_lengths: Histogram,
}

impl Statistics {
    pub(super) fn new(max_model_len: u32) -> Self {
        let lengths = Histogram::new(one_two_five(max_model_len));
        let millis = BETWEEN_TOKENS_MILLIS.iter();
        let seconds = millis.map(|millis| number::real(*millis) / 1e3);
        let between_tokens = Histogram::new(seconds.collect::<Vec<f64>>());
        Self {
            first_token: Histogram::new(FIRST_TOKEN),
            per_output_token: between_tokens.clone(),
            between_tokens,
            whole: Histogram::new(WHOLE_REQUEST),
            output_lengths: lengths.clone(),
            prompt_lengths: lengths,
            ..Self::default()
        }
    }

    pub(super) fn admitted(&mut self, sequence: &Sequence) {
        self.prefix_queries += u64::from(sequence.request.prompt_tokens);
        self.prefix_hits += u64::from(sequence.cached);
    }

    pub(super) fn prefilled(&mut self, sequence: &Sequence, now: Picoseconds) {
        self.generation_tokens += 1;
        if let Some(last) = sequence.last_token {
            self.between_tokens.observe(now.since(last).seconds());
        }
        if sequence.first_token.is_none() {
            self.prompt_tokens += u64::from(sequence.request.prompt_tokens);
            let waited = now.since(sequence.arrival);
            self.first_token.observe(waited.seconds());
        }
    }

    pub(super) fn stepped(&mut self, length: Picoseconds, decoding: u64) {
        self.generation_tokens += decoding;
        if decoding > 0 {
            self.between_tokens.observe_many(length.seconds(), decoding);
        }
    }

    /// `steps` steps of a run in which `decoding` sequences gained a token each.
    pub(super) fn decoded(&mut self, run: Run, steps: u64, decoding: u64) {
        self.generation_tokens += steps.saturating_mul(decoding);
        let tokens = number::real(decoding);
        let longest = run.step(steps.saturating_sub(1));
        let mut before = 0;
        let mut bucket = self.between_tokens.bucket(run.first.seconds());
        while before < steps {
            // Steps grow, so every bucket holds a stretch of them.
            let bound = BETWEEN_TOKENS_MILLIS.get(bucket);
            let bound = bound.map(|millis| Picoseconds(millis * 1_000_000_000));
            let upto = match bound {
                Some(bound) if longest > bound => run.no_longer_than(bound, steps),
                _ => steps,
            };
            let upto = upto.max(before);
            let time = run.total(upto).since(run.total(before)).seconds();
            let times = (upto - before).saturating_mul(decoding);
            self.between_tokens.add(bucket, times, time * tokens);
            before = upto;
            bucket += 1;
        }
    }

    pub(super) fn completed(&mut self, sequence: &Sequence, outcome: RequestEnd, at: Picoseconds) {
        if outcome == RequestEnd::Aborted {
            self.aborted += 1;
            return;
        }
        self.finished += 1;
        let request = &sequence.request;
        self.prompt_lengths.observe(f64::from(request.prompt_tokens));
        self.output_lengths.observe(f64::from(sequence.generated));
        self.whole.observe(at.since(sequence.arrival).seconds());
        if let Some(first) = sequence.first_token
            && sequence.generated > 1
        {
            let gaps = f64::from(sequence.generated - 1);
            self.per_output_token.observe(at.since(first).seconds() / gaps);
        }
    }

    /// Requests that were like these on average: tokens of a prompt and of an answer, the share of a prompt that was
    /// cached, and the seconds until the first token and from there on.
    pub(super) fn flowed(
        &mut self,
        requests: u64,
        (prompt, output, cached): (u32, u32, f64),
        (until_first, decode): (f64, f64),
    ) {
        let found = number::rounded(f64::from(prompt) * cached);
        let (prompt, output) = (u64::from(prompt), u64::from(output));
        self.submitted += requests;
        self.finished += requests;
        self.prompt_tokens += requests * prompt;
        self.generation_tokens += requests * output;
        self.prefix_queries += requests * prompt;
        self.prefix_hits += requests * u64::from(found);
        let gaps = output.saturating_sub(1);
        let gap = decode / number::real(gaps.max(1));
        self.between_tokens.observe_many(gap, requests * gaps);
        for (histogram, value) in [
            (&mut self.first_token, until_first),
            (&mut self.per_output_token, gap),
            (&mut self.whole, until_first + decode),
            (&mut self.prompt_lengths, number::real(prompt)),
            (&mut self.output_lengths, number::real(output)),
        ] {
            histogram.observe_many(value, requests);
        }
    }
}
