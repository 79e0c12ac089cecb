//! Which models may go to zero, and how long they must have been idle.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::entries::ScopedEntries;
use crate::key::ModelKey;

/// Idle time before zero when nothing states one.
pub const DEFAULT_RETENTION: Duration = Duration::from_mins(10);

/// What one entry states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleToZeroEntry {
    /// Whether the model may go to zero.
    pub enabled: Option<bool>,
    /// How long it must have been idle.
    pub retention: Option<Duration>,
}

/// Scale-to-zero policy, layered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScaleToZeroLayers {
    /// As they are written.
    pub entries: ScopedEntries<ScaleToZeroEntry>,
    /// `WVA_SCALE_TO_ZERO`, below every entry.
    pub otherwise: bool,
}

impl ScaleToZeroLayers {
    /// Whether the model may go to zero.
    pub fn enabled(&self, model: &ModelKey) -> bool {
        self.entries.layers(model).find_map(|entry| entry.enabled).unwrap_or(self.otherwise)
    }

    pub(super) fn any(&self) -> bool {
        let models = self.entries.models_named();
        self.otherwise || models.iter().any(|named| self.enabled(&named.model))
    }

    /// How long the model must have been idle before it goes to zero.
    pub fn retention(&self, model: &ModelKey) -> Duration {
        self.entries.layers(model).find_map(|entry| entry.retention).unwrap_or(DEFAULT_RETENTION)
    }
}
