//! How long prompts and answers are.

use std::io::BufRead;
use std::sync::Arc;

use super::rows::{TraceError, TraceProblem, fields, lines, tokens};
use crate::engine::Prefix;
use crate::number;
use wva_supervise::Generator;

/// Pairs that a file of lengths may hold.
const MAX_PAIRS: usize = 1_000_000;
/// First line of a file of lengths.
pub(super) const HEADER: &str = "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio";

/// A number of tokens drawn by chance; never below one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tokens {
    /// Always the same.
    Fixed(u32),
    /// Evenly spread, both ends included.
    Uniform {
        /// The fewest.
        from: u32,
        /// The most.
        to: u32,
    },
    /// Log-normal, cut off at `most`.
    LogNormal {
        /// The median.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// The most.
        most: u32,
    },
}

impl Tokens {
    /// One draw.
    pub fn draw(&self, generator: &mut Generator) -> u32 {
        let drawn = match *self {
            Self::Fixed(tokens) => tokens,
            Self::Uniform { from, to } => {
                let span = f64::from(to.saturating_sub(from)) + 1.0;
                let more = number::rounded(span * number::uniform(generator) - 0.5);
                from.saturating_add(more).min(to.max(from))
            }
            Self::LogNormal {
                median,
                sigma,
                most,
            } => {
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
            Self::Uniform { from, to } => f64::midpoint(f64::from(from), f64::from(to)),
            Self::LogNormal {
                median,
                sigma,
                most,
            } => (median * (sigma * sigma / 2.0).exp()).min(f64::from(most)),
        }
    }
}

/// Prompt and answer together.
#[derive(Debug, Clone, PartialEq)]
pub enum Lengths {
    /// Each by itself.
    Independent {
        /// The prompt.
        prompt: Tokens,
        /// The answer.
        output: Tokens,
    },
    /// Pairs as observed, each as likely as any other. Without pairs, one token each.
    Observed(Arc<[(u32, u32)]>),
}

impl Lengths {
    /// A prompt and its answer.
    pub fn draw(&self, generator: &mut Generator) -> (u32, u32) {
        match self {
            Self::Independent { prompt, output } => {
                (prompt.draw(generator), output.draw(generator))
            }
            Self::Observed(pairs) => {
                let position =
                    generator.next_u64() % u64::try_from(pairs.len().max(1)).unwrap_or(1);
                let position = usize::try_from(position).unwrap_or_default();
                pairs.get(position).copied().unwrap_or((1, 1))
            }
        }
    }
}

impl Lengths {
    /// Tokens of a prompt and of an answer, on average.
    pub(super) fn mean(&self) -> (f64, f64) {
        match self {
            Self::Independent { prompt, output } => (prompt.mean(), output.mean()),
            Self::Observed(pairs) => {
                let sum = pairs.iter().fold((0.0, 0.0), |sum, (prompt, output)| {
                    (sum.0 + f64::from(*prompt), sum.1 + f64::from(*output))
                });
                let count = number::length(pairs.len().max(1));
                (sum.0 / count, sum.1 / count)
            }
        }
    }
}

/// Prompts that begin alike, as those of one application do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// How many of all requests begin with a shared text, 0 to 1.
    pub share: f64,
    /// How many such texts there are, each as likely as any other.
    pub texts: u32,
    /// Tokens of a text; a shorter prompt shares nothing.
    pub tokens: u32,
}

impl Sharing {
    pub(super) fn draw(&self, generator: &mut Generator) -> Option<Prefix> {
        let shared = number::uniform(generator) < self.share;
        let text = generator.next_u64() % u64::from(self.texts.max(1));
        shared.then(|| Prefix {
            ids: Arc::new([text]),
            tokens_per_id: self.tokens,
        })
    }
}

/// Reads a file whose first columns are prompt and output tokens, one request per line.
pub fn read_lengths(reader: impl BufRead) -> Result<Lengths, TraceError> {
    let mut pairs = Vec::new();
    let mut rows = lines(reader);
    match rows.next() {
        None => return Err(TraceError::at(0, TraceProblem::Empty)),
        Some(Ok((_, header))) if header == HEADER => {}
        Some(Ok((line, header))) => {
            return Err(TraceError::at(line, TraceProblem::unknown(&header)));
        }
        Some(Err(error)) => return Err(error),
    }
    for row in rows {
        let (line, text) = row?;
        if pairs.len() == MAX_PAIRS {
            return Err(TraceError::at(
                line,
                TraceProblem::TooMany { most: MAX_PAIRS },
            ));
        }
        let [prompt, output, ..] = fields::<4>(line, &text)?;
        pairs.push((
            tokens(line, "num_prefill_tokens", prompt)?,
            tokens(line, "num_decode_tokens", output)?,
        ));
    }
    if pairs.is_empty() {
        return Err(TraceError::at(1, TraceProblem::Empty));
    }
    Ok(Lengths::Observed(pairs.into()))
}
