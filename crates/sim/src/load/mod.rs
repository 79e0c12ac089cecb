//! Who asks what and when: drawn by chance along a rate that changes, or read from a trace.

mod arrivals;
mod lengths;
mod rows;
mod shape;
#[cfg(test)]
mod tests;
mod trace;

pub(crate) use arrivals::{Arrivals, Demand};
pub(crate) use lengths::{Lengths, Sharing, Tokens};
pub use shape::{RateProfile, RateStage};
pub(crate) use trace::RequestTrace;

use std::time::Duration;

use super::engine::Prefix;

/// A request that arrives from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// When, from the origin of the load.
    pub at: Duration,
    /// Tokens of the prompt; at least one.
    pub prompt_tokens: u32,
    /// Tokens of the answer; at least one.
    pub output_tokens: u32,
    /// What the prompt shares with others.
    pub prefix: Option<Prefix>,
    /// Objective of its first token, by which a router may order its queue.
    pub within: Option<Duration>,
}
