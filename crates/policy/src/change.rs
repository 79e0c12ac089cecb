//! What one stage did to one variant.

use super::reason::Reason;
use super::units::Replicas;

/// A count before and after a stage, with the stage's reason.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountChange {
    /// The count before.
    pub from: Replicas,
    /// The count after.
    pub to: Replicas,
    /// Why, with its numbers.
    pub why: Reason,
}
