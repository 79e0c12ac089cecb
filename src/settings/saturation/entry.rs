//! A checked saturation entry: what it states, and nothing about what it leaves out.

use super::analyzer::{AnalyzerSettings, SATURATION, judge_analyzer};
use super::document::{FIELDS, SaturationDocument};
use super::limiter::{Limiter, judge_limiters};
use crate::settings::config_maps::Purpose;
use crate::settings::entries::{Entry, EntryKind, Verdict};
use crate::settings::yaml::Field;

/// Shares of a model's capacity between which the token-based analysis leaves it alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UtilizationBand {
    /// Utilization that growth aims at; above it the model grows.
    pub scale_up_threshold: f64,
    /// Utilization below which the model may shrink.
    pub scale_down_boundary: f64,
}

impl Default for UtilizationBand {
    fn default() -> Self {
        Self {
            scale_up_threshold: 0.85,
            scale_down_boundary: 0.70,
        }
    }
}

impl UtilizationBand {
    /// What is wrong with the pair, in the documented words.
    pub(super) fn fault(self) -> Option<String> {
        let (up, down) = (self.scale_up_threshold, self.scale_down_boundary);
        let usable = |share: f64| share > 0.0 && share <= 1.0;
        if !usable(up) {
            Some(format!("scaleUpThreshold must be in (0, 1], got {up:.2}"))
        } else if !usable(down) {
            Some(format!(
                "scaleDownBoundary must be in (0, 1], got {down:.2}"
            ))
        } else if up <= down {
            Some(format!(
                "scaleUpThreshold ({up:.2}) must be > scaleDownBoundary ({down:.2})"
            ))
        } else {
            None
        }
    }
}

/// What one entry states. `None` is inherited from the layer below.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::settings) struct SaturationEntry {
    pub(super) kv_cache_threshold: Option<f64>,
    pub(super) queue_length_threshold: Option<f64>,
    pub(super) kv_spare_trigger: Option<f64>,
    pub(super) queue_spare_trigger: Option<f64>,
    pub(super) enable_limiter: Option<bool>,
    pub(super) enable_rescale: Option<bool>,
    pub(super) analyzer_name: Option<String>,
    pub(super) scale_up_threshold: Option<f64>,
    pub(super) scale_down_boundary: Option<f64>,
    pub(super) priority: Option<f64>,
    pub(super) analyzers: Option<Vec<AnalyzerSettings>>,
    pub(super) limiters: Option<Vec<Limiter>>,
    pub(super) scale_to_zero: Option<bool>,
}

impl Entry for SaturationEntry {
    type Document = SaturationDocument;
    const PURPOSE: Purpose = Purpose::Saturation;
    const FIELDS: &'static [Field] = FIELDS;

    fn identity(document: &SaturationDocument) -> (Option<&str>, Option<&str>) {
        (document.model_id.as_deref(), document.namespace.as_deref())
    }

    fn judge(document: SaturationDocument, _kind: EntryKind) -> Verdict<Self> {
        let mut faults = Vec::new();
        judge_thresholds(&document, &mut faults);
        judge_band(&document, &mut faults);
        let inherited = own_band(&document);
        let analyzers = document.analyzers.map(|analyzers| {
            analyzers
                .into_iter()
                .map(|analyzer| judge_analyzer(analyzer, inherited, &mut faults))
                .collect()
        });
        let limiters = document
            .limiters
            .map(|limiters| judge_limiters(limiters, &mut faults));
        if !faults.is_empty() {
            return Verdict::Refused(faults);
        }
        Verdict::Whole(Self {
            kv_cache_threshold: document.kv_cache_threshold,
            queue_length_threshold: document.queue_length_threshold,
            kv_spare_trigger: document.kv_spare_trigger,
            queue_spare_trigger: document.queue_spare_trigger,
            enable_limiter: document.enable_limiter,
            enable_rescale: document.enable_rescale,
            analyzer_name: document.analyzer_name,
            scale_up_threshold: document.scale_up_threshold,
            scale_down_boundary: document.scale_down_boundary,
            priority: document.priority,
            analyzers,
            limiters,
            scale_to_zero: document.scale_to_zero.and_then(|zero| zero.enabled),
        })
    }
}

/// Rules of the percentage-based analysis, on the fields that are written.
fn judge_thresholds(document: &SaturationDocument, faults: &mut Vec<String>) {
    for (name, share) in [
        ("kvCacheThreshold", document.kv_cache_threshold),
        ("kvSpareTrigger", document.kv_spare_trigger),
    ] {
        if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
            faults.push(format!("{name} must be between 0 and 1, got {share:.2}"));
        }
    }
    for (name, length) in [
        ("queueLengthThreshold", document.queue_length_threshold),
        ("queueSpareTrigger", document.queue_spare_trigger),
    ] {
        if let Some(length) = length.filter(|length| *length < 0.0) {
            faults.push(format!("{name} must be >= 0, got {length:.1}"));
        }
    }
    if let (Some(threshold), Some(spare)) = (document.kv_cache_threshold, document.kv_spare_trigger)
        && let Some(fault) = kv_fault(threshold, spare)
    {
        faults.push(fault);
    }
    if let Some(priority) = document.priority.filter(|priority| *priority < 0.0) {
        faults.push(format!("priority must be >= 0, got {priority:.2}"));
    }
}

/// What is wrong with a pair of KV thresholds, in the documented words.
pub(super) fn kv_fault(threshold: f64, spare: f64) -> Option<String> {
    (threshold < spare).then(|| {
        format!("kvCacheThreshold ({threshold:.2}) should be >= kvSpareTrigger ({spare:.2})")
    })
}

/// Rules of the token-based analysis. They bind an entry that selects it; another one may carry
/// anything in these fields.
fn judge_band(document: &SaturationDocument, faults: &mut Vec<String>) {
    let selects_tokens = document.analyzer_name.as_deref() == Some(SATURATION)
        || document
            .analyzers
            .as_ref()
            .is_some_and(|list| !list.is_empty());
    if selects_tokens && let Some(fault) = own_band(document).fault() {
        faults.push(fault);
    }
}

/// The band that the entry states, completed by the built-in one.
fn own_band(document: &SaturationDocument) -> UtilizationBand {
    let built_in = UtilizationBand::default();
    UtilizationBand {
        scale_up_threshold: document
            .scale_up_threshold
            .unwrap_or(built_in.scale_up_threshold),
        scale_down_boundary: document
            .scale_down_boundary
            .unwrap_or(built_in.scale_down_boundary),
    }
}
