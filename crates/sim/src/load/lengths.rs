//! How long prompts and answers are.

use std::sync::Arc;

use serde::Deserialize;

use crate::engine::Prefix;
use crate::number;
use wva_supervise::Generator;

/// A number of tokens drawn by chance; never below one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tokens {
    Fixed(u32),
    /// Log-normal, cut off at `most`.
    LogNormal {
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        most: u32,
    },
}

impl Tokens {
    pub(crate) fn draw(&self, generator: &mut Generator) -> u32 {
        let drawn = match *self {
            Self::Fixed(tokens) => tokens,
            Self::LogNormal { median, sigma, most } => {
                let factor = (sigma * number::normal(generator)).exp();
                number::rounded(median * factor).min(most)
            }
        };
        drawn.max(1)
    }

    /// The mean, that of a log-normal before it is cut off.
    fn mean(&self) -> f64 {
        match *self {
            Self::Fixed(tokens) => f64::from(tokens),
            Self::LogNormal { median, sigma, most } => {
                (median * (sigma * sigma / 2.0).exp()).min(f64::from(most))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lengths {
    pub(crate) prompt: Tokens,
    pub(crate) output: Tokens,
}

impl Lengths {
    pub(crate) fn draw(&self, generator: &mut Generator) -> (u32, u32) {
        (self.prompt.draw(generator), self.output.draw(generator))
    }

    pub(super) fn mean(&self) -> (f64, f64) {
        (self.prompt.mean(), self.output.mean())
    }
}

/// Prompts that begin alike, as those of one application do.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sharing {
    /// How many of all requests begin with a shared text, 0 to 1.
    pub(crate) share: f64,
    /// How many of these texts there are, each as likely as any other.
    pub(crate) texts: u32,
    /// Tokens of a text; a shorter prompt shares nothing.
    pub(crate) tokens: u32,
}

impl Sharing {
    pub(super) fn draw(&self, generator: &mut Generator) -> Option<Prefix> {
        let shared = number::uniform(generator) < self.share;
        let text = generator.next_u64() % u64::from(self.texts.max(1));
        shared.then(|| Prefix { ids: Arc::new([text]), tokens_per_id: self.tokens })
    }
}
