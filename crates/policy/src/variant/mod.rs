//! What the actor of one variant keeps in mind.

mod clock;
mod state;

pub(crate) use clock::oldest_unready;
pub use state::{Refreshed, TargetLookupRef, VariantObjects, VariantState, read};
