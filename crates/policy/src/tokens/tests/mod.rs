//! Published cases, invariants, and learning over time.

mod learning;
mod properties;
mod vectors;
mod world;
