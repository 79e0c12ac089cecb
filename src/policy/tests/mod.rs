//! Tests of the decision core as a whole: published cases, properties, timelines.

mod conditions;
mod decisions;
mod fleet;
mod properties;
mod records;
mod timeline;
mod variant_state;
pub(crate) mod vectors;
mod vectors_analysis;
mod vectors_object;
mod vectors_plan;
mod violations;
mod world;
