//! Token analyzer (saturation V2): how many KV tokens a model's replicas hold and are asked to hold.
//!
//! A replica is bound by memory (k1, a share of its KV cache) and by compute (k2, the tokens that it
//! held when its queue grew); the smaller one is its capacity (`instance`). k2 is observed, else
//! remembered (`history`, `learned`), else derived from the engine's arguments (`bound`).
//! Demand is what is resident and what waits (`charge`), in the engines and in the router
//! (`router`), by role (`roles`). `assess` puts it together for one model.
//!
//! Everything is in KV tokens. The budget of one step is another unit, which enters only where it
//! limits how many requests run at once.

mod assess;
mod bound;
mod history;
mod input;
mod instance;
mod learned;
mod roles;
mod router;
mod variant;
mod workload;

#[cfg(test)]
mod tests;

pub use bound::CapacityReason;
pub use instance::Missing;
pub use variant::TokenVariantFigures;

pub(crate) use assess::{TokensReport, assess};
pub(crate) use input::{InstanceInput, RouterQueue, TokenModelInput, TokenVariantInput};
pub(crate) use learned::LearnedTokens;
