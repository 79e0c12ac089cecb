//! The throughput analyzer: how many tokens per second the load requires, and how many one replica
//! delivers.
//!
//! The rate of a full replica is read off straight lines that are learned online (`line`,
//! `window`): latency of a token over KV usage for engines that generate (`decode`), time to
//! first token over prompt tokens for those that read prompts (`prefill`). Demand is counted where
//! requests are accepted, so that it does not shrink with the fleet; `floor` says what the load
//! needs whatever the size of the fleet. Capacity is smoothed, what is known only by a first
//! impression neither orders nor releases, and both directions are confirmed by a second cycle.
//! `learned` keeps what is learned and `assess` puts it together for one model.

pub(crate) mod assess;
mod average;
pub(crate) mod decode;
pub(crate) mod floor;
pub(crate) mod input;
pub(crate) mod learned;
pub(crate) mod line;
pub(crate) mod prefill;
pub(crate) mod readings;
pub(crate) mod role;
pub(crate) mod shape;
pub(crate) mod supply;
pub(crate) mod tracker;
pub(crate) mod variant;
pub(crate) mod window;

pub use assess::ThroughputReport;
pub use decode::LatencyModelSource;

pub(crate) use assess::assess;
pub(crate) use input::{
    Params, ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput,
};
pub(crate) use learned::LearnedThroughput;

#[cfg(test)]
mod tests;
