//! V1: percentage-based saturation analysis of one model, and the one step it leads to.
//!
//! A replica is saturated when its KV share or its queue reaches a threshold. A model grows when the
//! mean spare capacity of the other replicas falls below a trigger, and shrinks when the load of one
//! replica fits on the rest without that.

mod analysis;
mod targets;

pub(super) use analysis::{SaturationAnalysis, analyze};
pub(super) use targets::{decide, pass_on};
