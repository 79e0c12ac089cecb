//! Published cases, invariants, and learning over time.

mod answers;
mod learning;
mod model;
mod properties;
mod vectors;
