//! Every setting: where it may come from, what it means, and what may change while running.

use std::time::Duration;

use crate::policy::key::ModelKey;
use crate::policy::signal::FreshnessBands;

/// The part of the settings that may change while the process runs; replaced as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicSettings {
    /// `GLOBAL_OPT_INTERVAL`.
    pub interval: Duration,
    /// `PROMETHEUS_METRICS_CACHE_{FRESH,STALE,UNAVAILABLE}_THRESHOLD`.
    pub freshness: FreshnessBands,
    /// How long each cause of transition may hold growth back.
    pub transition_limits: TransitionLimits,
    /// Saturation thresholds by layer.
    pub saturation: SaturationLayers,
    /// Scale-to-zero policy by layer.
    pub scale_to_zero: ScaleToZeroLayers,
}

/// Time limits on the causes of transition; 10 minutes each by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransitionLimits {
    /// Replicas that do not become ready.
    pub pending: Duration,
    /// A published count that nobody applies.
    pub unapplied: Duration,
    /// Replicas that do not report.
    pub silent: Duration,
}

/// Saturation thresholds, layered: namespace entry, namespace `default`, global entry, global
/// `default`, built-in; field by field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SaturationLayers {}

impl SaturationLayers {
    /// Thresholds in force for one model.
    pub fn resolve(&self, _model: &ModelKey) -> SaturationThresholds {
        SaturationThresholds::default()
    }
}

/// Thresholds of the V1 analysis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaturationThresholds {
    /// KV share from which a replica is saturated.
    pub kv_cache_threshold: f64,
    /// Queue length from which a replica is saturated.
    pub queue_length_threshold: f64,
    /// Spare KV share below which the model grows.
    pub kv_spare_trigger: f64,
    /// Spare queue below which the model grows.
    pub queue_spare_trigger: f64,
}

impl Default for SaturationThresholds {
    fn default() -> Self {
        Self {
            kv_cache_threshold: 0.80,
            queue_length_threshold: 5.0,
            kv_spare_trigger: 0.10,
            queue_spare_trigger: 3.0,
        }
    }
}

/// Scale-to-zero policy, layered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScaleToZeroLayers {}

impl ScaleToZeroLayers {
    /// Whether the model may go to zero.
    pub fn enabled(&self, _model: &ModelKey) -> bool {
        false
    }
}
