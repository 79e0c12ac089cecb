//! What is remembered from one collection to the next. Every replica learns, so that a new leader
//! knows what the old one knew.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::VariantKey;
use super::moment::Moment;

/// Version of the layout of [`Learned`]; stored snapshots of another version are refused.
pub const LEARNED_VERSION: u32 = 1;

/// Learned state of the whole fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Layout version, see [`LEARNED_VERSION`].
    pub version: u32,
    /// Since when fewer or more replicas report than the target has.
    pub silent_since: BTreeMap<VariantKey, Moment>,
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            version: LEARNED_VERSION,
            silent_since: BTreeMap::new(),
        }
    }
}
