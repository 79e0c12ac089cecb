//! Whether the queueing model is used, and for which latencies it sizes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::entries::ScopedEntries;
use crate::key::ModelKey;

/// Name of the analyzer.
pub const ANALYZER_NAME: &str = "queueing-model";

/// Factor between an idle server's latency and the target when nothing states one.
pub const DEFAULT_SLO_MULTIPLIER: f64 = 3.0;

/// Latencies that a model is to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyTargets {
    /// Time to first token.
    pub time_to_first_token: Duration,
    /// Time between tokens.
    pub inter_token_latency: Duration,
}

/// What one entry states.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueingModelEntry {
    /// Factor between an idle server's latency and the inferred target.
    pub slo_multiplier: Option<f64>,
    /// Whether the parameters of the model are learned.
    pub tuning: Option<bool>,
    /// Latencies to keep.
    pub targets: Option<LatencyTargets>,
}

/// What applies to one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueingModelPolicy {
    /// Factor between an idle server's latency and the inferred target; above 1.
    pub slo_multiplier: f64,
    /// Whether the model's parameters are learned while running.
    pub tuning: bool,
    /// Explicit targets; absent ones are taken from the service class, else inferred.
    pub targets: Option<LatencyTargets>,
}

/// Queueing-model settings, layered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueingModelLayers {
    /// As they are written.
    pub entries: ScopedEntries<QueueingModelEntry>,
}

impl QueueingModelLayers {
    /// Whether the analyzer is used, for every model: the global ConfigMap has a `default`.
    pub fn selected(&self) -> bool {
        self.entries.global.default.is_some()
    }

    /// What applies to a model.
    pub fn policy(&self, model: &ModelKey) -> QueueingModelPolicy {
        let layers = || self.entries.layers(model);
        QueueingModelPolicy {
            slo_multiplier: layers()
                .find_map(|entry| entry.slo_multiplier)
                .unwrap_or(DEFAULT_SLO_MULTIPLIER),
            tuning: layers().find_map(|entry| entry.tuning).unwrap_or(true),
            targets: layers().find_map(|entry| entry.targets),
        }
    }
}
