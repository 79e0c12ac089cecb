//! The SLO analyzer: how much work arrives, how much of it one replica does within the latency
//! objectives, and what is to be ordered now so that no request waits once it is ready.
//!
//! Work is counted in generated tokens, prompt tokens at a fixed weight ([`work`]). Demand is measured
//! where requests are accepted, over a short and a long window ([`demand`]), and remembered as the
//! largest need of a learned horizon ([`memory`]). What one replica can do is read off its own latency
//! over concurrency ([`curve`], [`capacity`]). A backlog is projected to the moment at which a replica
//! ordered now is ready, and is drained from then on ([`landing`]). [`learned`] keeps what is learned
//! and [`assess()`] puts it together for one model.

pub mod assess;
pub mod capacity;
pub mod curve;
pub mod demand;
pub mod figures;
mod goal;
pub mod imbalance;
pub mod landing;
pub mod learned;
mod load;
pub mod memory;
pub mod release;
pub mod reserve;
pub mod straggler;
mod terms;
pub mod work;

pub use assess::assess;
pub use figures::SloReport;
pub use goal::{GoalSource, SloGoal};
pub use learned::LearnedSlo;
pub(crate) use load::hidden_sequences;

#[cfg(test)]
mod tests;
