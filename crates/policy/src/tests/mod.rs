//! Tests of the decision core as a whole: published cases, properties, timelines.

mod conditions;
mod decisions;
mod deletion;
mod direct;
pub(super) mod fleet;
mod gated;
mod metrics_gaps;
mod properties;
mod records;
mod stalled;
mod targets;
mod tiers;
mod timeline;
mod variant_state;
pub(crate) mod vectors;
mod vectors_analysis;
mod vectors_combine;
mod vectors_headroom;
mod vectors_limit;
mod vectors_object;
mod vectors_optimize;
mod vectors_plan;
mod vectors_rescale;
mod vectors_share;
mod vectors_zero;
mod violations;
pub(super) mod world;
