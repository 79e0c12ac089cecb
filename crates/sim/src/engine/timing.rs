//! How long a step takes.

use std::time::Duration;

use crate::number;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Picoseconds(pub(crate) u64);

impl Picoseconds {
    /// From a duration; what is too long is 213 days, the most that can be counted.
    pub(crate) fn of(duration: Duration) -> Self {
        let exact = duration.as_nanos().saturating_mul(1_000);
        Self(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// As a duration, rounded down to the nanosecond.
    pub(crate) fn duration(self) -> Duration {
        Duration::from_nanos(self.0 / 1_000)
    }

    pub(crate) fn seconds(self) -> f64 {
        number::real(self.0) / 1e12
    }

    #[must_use]
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    pub(super) fn plus(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

/// The cost of a step: that of a batch that decodes, and of the prompt tokens it carries along.
///
/// A step of `B` decoding sequences that hold `C` tokens in all takes `step + B·sequence +
/// C·context`; with `c` thousand tokens in a sequence this is the `a + b·B + k·B·c` to which
/// measured inter-token latencies were fitted. A prompt alone on the server takes `prompt +
/// n·prompt_token`; inside a step that decodes, its tokens add `n·prompt_token`.
///
/// Up to `ridge` sequences, a step waits for the weights to come from memory and computes meanwhile.
/// From there on it waits for arithmetic, so that each further sequence costs what a token of a prompt
/// costs. The ridge of an accelerator is its arithmetic per byte from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) step: Picoseconds,
    /// Each decoding sequence of a step.
    pub(crate) sequence: Picoseconds,
    /// Each token that a decoding sequence looks back on.
    pub(crate) context: Picoseconds,
    /// Decoding sequences up to which `sequence` is the price of one.
    pub(crate) ridge: u64,
    /// Any step without decoding.
    pub(crate) prompt: Picoseconds,
    /// Each prompt token that is not in the prefix cache.
    pub(crate) prompt_token: Picoseconds,
}

/// Steps of one unchanged batch, of which each takes longer than the one before, as contexts grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: Picoseconds,
    pub(super) growth: Picoseconds,
}

impl Run {
    pub(super) fn step(self, done: u64) -> Picoseconds {
        self.first.plus(self.growth.times(done))
    }

    pub(super) fn total(self, steps: u64) -> Picoseconds {
        // One of two neighbours is even, so the division is exact.
        let pairs = if steps.is_multiple_of(2) {
            (steps / 2).saturating_mul(steps.saturating_sub(1))
        } else {
            steps.saturating_mul((steps - 1) / 2)
        };
        self.first.times(steps).plus(self.growth.times(pairs))
    }

    /// How many whole steps, at most `limit`, fit into `time`.
    pub(super) fn fitting(self, time: Picoseconds, limit: u64) -> u64 {
        // No step is shorter than the first.
        let limit = time.0.checked_div(self.first.0).map_or(limit, |most| most.min(limit));
        if self.total(limit) <= time {
            return limit;
        }
        let (mut fits, mut exceeds) = (0, limit);
        while exceeds - fits > 1 {
            let middle = fits + (exceeds - fits) / 2;
            if self.total(middle) <= time {
                fits = middle;
            } else {
                exceeds = middle;
            }
        }
        fits
    }

    /// How many steps, at most `limit`, are no longer than `bound`.
    pub(super) fn no_longer_than(self, bound: Picoseconds, limit: u64) -> u64 {
        if self.first > bound {
            return 0;
        }
        match bound.since(self.first).0.checked_div(self.growth.0) {
            Some(steps) => steps.saturating_add(1).min(limit),
            None => limit,
        }
    }
}

impl Timing {
    pub(super) fn decode(&self, sequences: u64, context: u64) -> Run {
        Run {
            first: self
                .step
                .plus(self.sequence.times(sequences))
                .plus(self.surcharge().times(sequences.saturating_sub(self.ridge)))
                .plus(self.context.times(context)),
            growth: self.context.times(sequences),
        }
    }

    /// What a sequence beyond the ridge costs more than others.
    pub(super) fn surcharge(&self) -> Picoseconds {
        self.prompt_token.since(self.sequence)
    }

    /// A step that also computes `prompt_tokens`; without decoding sequences, a step of its own.
    pub(super) fn mixed(&self, sequences: u64, context: u64, prompt_tokens: u64) -> Picoseconds {
        let base = if sequences == 0 { self.prompt } else { self.decode(sequences, context).first };
        base.plus(self.prompt_token.times(prompt_tokens))
    }
}
