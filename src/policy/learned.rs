//! What is remembered from one collection to the next. Every replica learns, so that a new leader
//! knows what the old one knew.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::VariantKey;
use super::moment::Since;
use super::units::Replicas;

/// Version of the layout of [`Learned`]; stored snapshots of another version are refused.
pub const LEARNED_VERSION: u32 = 1;

/// Learned state of the whole fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Layout version, see [`LEARNED_VERSION`].
    pub version: u32,
    /// Whether the replicas of each variant report. A variant without an entry has not been seen by
    /// a collection of this process.
    pub reporting: BTreeMap<VariantKey, Reporting>,
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            version: LEARNED_VERSION,
            reporting: BTreeMap::new(),
        }
    }
}

/// Whether as many replicas report as the target has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reporting {
    /// They do.
    Complete,
    /// Fewer or more do.
    Silent {
        /// Since when. Starts anew when replicas are added: those deserve the whole limit.
        since: Since,
        /// Replicas that the target had at the last collection.
        current: Replicas,
    },
}
