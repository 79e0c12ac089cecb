//! What the actor of one variant keeps in mind.

mod clock;
mod state;

pub use state::{Facts, Lookup, Pods, Refreshed, VariantState, read};
