//! What one stage did to one variant.

use super::reason::Reason;
use super::units::Replicas;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountChange {
    pub from: Replicas,
    pub to: Replicas,
    pub why: Reason,
}
