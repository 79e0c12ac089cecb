//! What one stage did to one variant.

use serde::{Deserialize, Serialize};

use super::units::Replicas;

/// A count before and after a stage, with the stage's reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountChange<W> {
    /// The count before.
    pub from: Replicas,
    /// The count after.
    pub to: Replicas,
    /// Why, with its numbers.
    pub why: W,
}

impl<W> CountChange<W> {
    /// Whether the stage grew the variant.
    pub fn is_growth(&self) -> bool {
        self.to > self.from
    }
}
