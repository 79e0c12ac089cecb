//! The throughput analyzer: how many tokens per second the load requires, and how many one replica
//! delivers.
//!
//! The rate of a full replica is read off straight lines that are learned online ([`line`],
//! [`window`]): latency of a token over KV usage for engines that generate ([`decode`]), time to
//! first token over prompt tokens for those that read prompts ([`prefill`]). Demand is counted where
//! requests are accepted, so that it does not shrink with the fleet; [`floor`] says what the load
//! needs whatever the size of the fleet. Capacity is smoothed, what is known only by a first
//! impression neither orders nor releases, and both directions are confirmed by a second cycle.
//! [`learned`] keeps what is learned and [`assess()`] puts it together for one model.

pub mod assess;
mod average;
pub mod decode;
pub mod floor;
pub mod input;
pub mod learned;
pub mod line;
pub mod model;
pub mod prefill;
pub mod readings;
pub mod role;
pub mod shape;
pub mod streak;
pub mod supply;
pub mod tracker;
pub mod variant;
pub mod window;

pub use assess::{ThroughputReport, assess};
pub use input::{Params, ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
pub use learned::LearnedThroughput;

#[cfg(test)]
mod tests;
