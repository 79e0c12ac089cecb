//! The shape of the requests that a variant serves: their lengths and how much is cached.

use serde::{Deserialize, Serialize};

/// Relative change of a length from which on the requests are different ones.
const CHANGE_TOLERANCE: f64 = 0.20;

/// Mean request of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestShape {
    /// Prompt tokens.
    pub input: f64,
    /// Generated tokens.
    pub output: f64,
    /// Share of the prompt found in the prefix cache, 0 to 1.
    pub hit_rate: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputClass {
    /// Below 100 tokens.
    Short,
    /// Below 500 tokens.
    Medium,
    /// 500 tokens and more.
    Long,
}

impl OutputClass {
    pub(crate) fn of(output_tokens: f64) -> Self {
        match output_tokens {
            short if short < 100.0 => Self::Short,
            medium if medium < 500.0 => Self::Medium,
            _ => Self::Long,
        }
    }
}

impl RequestShape {
    /// Prompt tokens that have to be computed.
    pub(crate) fn effective_input(self) -> f64 {
        self.input * (1.0 - self.hit_rate.clamp(0.0, 1.0))
    }

    /// KV tokens that a request holds on average while it is generated.
    pub fn kv_tokens(self) -> f64 {
        self.effective_input() + self.output / 2.0
    }

    pub fn class(self) -> OutputClass {
        OutputClass::of(self.output)
    }

    /// Whether prompt or output length moved by more than a fifth.
    pub(crate) fn differs_from(self, previous: Self) -> bool {
        let moved = |now: f64, before: f64| {
            before > 0.0 && (now - before).abs() / before > CHANGE_TOLERANCE
        };
        moved(self.input, previous.input) || moved(self.output, previous.output)
    }

    /// Mean of the shapes of replicas, weighted by their request rates; unweighted when no replica
    /// has any. None without a replica.
    pub fn weighted(replicas: &[(Self, f64)]) -> Option<Self> {
        let mut replicas: Vec<_> = replicas.to_vec();
        replicas.sort_by(|(a, x), (b, y)| {
            (a.input.total_cmp(&b.input))
                .then(a.output.total_cmp(&b.output))
                .then(a.hit_rate.total_cmp(&b.hit_rate))
                .then(x.total_cmp(y))
        });
        let is_idle = replicas.iter().all(|(_, rate)| *rate <= 0.0);
        let (mut sum, mut total) = ((0.0, 0.0, 0.0), 0.0);
        for (shape, rate) in replicas {
            let weight = if is_idle { 1.0 } else { rate.max(0.0) };
            sum.0 += weight * shape.input;
            sum.1 += weight * shape.output;
            sum.2 += weight * shape.hit_rate;
            total += weight;
        }
        (total > 0.0).then(|| Self {
            input: sum.0 / total,
            output: sum.1 / total,
            hit_rate: sum.2 / total,
        })
    }
}
