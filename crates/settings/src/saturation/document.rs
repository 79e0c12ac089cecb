//! The YAML form of a saturation entry.

use std::sync::Arc;

use serde::Deserialize;
use serde_yaml::Value;

use wva_base::yaml::DocumentField;

pub(super) const FIELDS: &[DocumentField] = &[
    DocumentField::named("modelId").also(&["modelID", "model_id"]),
    DocumentField::named("namespace"),
    DocumentField::named("kvCacheThreshold"),
    DocumentField::named("queueLengthThreshold"),
    DocumentField::named("kvSpareTrigger"),
    DocumentField::named("queueSpareTrigger"),
    DocumentField::named("enableLimiter"),
    DocumentField::named("enableRescale"),
    DocumentField::named("analyzerName"),
    DocumentField::named("scaleUpThreshold"),
    DocumentField::named("scaleDownBoundary"),
    DocumentField::named("burstReserve"),
    DocumentField::named("actuation"),
    DocumentField::named("priority"),
    DocumentField::named("analyzers").holds(ANALYZER_FIELDS),
    DocumentField::named("limiters").holds(LIMITER_FIELDS),
    DocumentField::named("scaleToZero").holds(&[DocumentField::named("enabled")]),
];

const ANALYZER_FIELDS: &[DocumentField] = &[
    DocumentField::named("name"),
    DocumentField::named("type"),
    DocumentField::named("enabled"),
    DocumentField::named("score"),
    DocumentField::named("scaleUpThreshold"),
    DocumentField::named("scaleDownBoundary"),
    DocumentField::named("parameters"),
];

const LIMITER_FIELDS: &[DocumentField] = &[
    DocumentField::named("name"),
    DocumentField::named("type"),
    DocumentField::named("scope"),
    DocumentField::named("quotas"),
    DocumentField::named("namespaceQuotas"),
    DocumentField::named("exclude"),
];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SaturationDocument {
    #[serde(alias = "modelID", alias = "model_id")]
    pub(super) model_id: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) kv_cache_threshold: Option<f64>,
    pub(super) queue_length_threshold: Option<f64>,
    pub(super) kv_spare_trigger: Option<f64>,
    pub(super) queue_spare_trigger: Option<f64>,
    pub(super) enable_limiter: Option<bool>,
    pub(super) enable_rescale: Option<bool>,
    pub(super) analyzer_name: Option<String>,
    pub(super) scale_up_threshold: Option<f64>,
    pub(super) scale_down_boundary: Option<f64>,
    pub(super) burst_reserve: Option<String>,
    pub(super) actuation: Option<String>,
    pub(super) priority: Option<f64>,
    pub(super) analyzers: Option<Vec<AnalyzerDocument>>,
    pub(super) limiters: Option<Vec<LimiterDocument>>,
    pub(super) scale_to_zero: Option<InlineScaleToZero>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AnalyzerDocument {
    pub(super) name: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) enabled: Option<bool>,
    pub(super) score: Option<f64>,
    pub(super) scale_up_threshold: Option<f64>,
    pub(super) scale_down_boundary: Option<f64>,
    pub(super) parameters: Option<AnalyzerParameters>,
}

/// The same settings in a second place; a field of the entry itself wins. Other keys are left to the
/// analyzer of that type.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AnalyzerParameters {
    pub(super) enabled: Option<bool>,
    pub(super) score: Option<f64>,
    pub(super) scale_up_threshold: Option<f64>,
    pub(super) scale_down_boundary: Option<f64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LimiterDocument {
    pub(super) name: Option<Arc<str>>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) scope: Option<String>,
    /// Of any type, so that a wrong one is named with the other faults of the entry.
    pub(super) quotas: Option<Value>,
    pub(super) namespace_quotas: Option<Value>,
    pub(super) exclude: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct InlineScaleToZero {
    pub(super) enabled: Option<bool>,
}
