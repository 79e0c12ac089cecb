//! What keeps a variant from a release that its role could do with.

use serde::{Deserialize, Serialize};

use crate::optimize::WantedAmount;
use crate::units::Replicas;

/// Why a variant keeps its replicas although its role could lose some.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseObstacle {
    /// It stands at its minimum.
    Minimum(Replicas),
    /// It has no replicas.
    NoReplicas,
    /// Its replica is the last one of its role.
    LastOfRole,
    /// One of its replicas supplies more than may go.
    TooLarge(WantedAmount),
    /// Others of its role go first, and what may go is used up.
    #[default]
    OthersFirst,
}
