//! The policy in force for one model, value by value, with the entry that states each.

use super::analyzers::SaturationMethod;
use super::dynamic::DynamicSettings;
use super::entries::EntryLayer;
use super::saturation::{SaturationEntry, SaturationLayers};
use super::scale_to_zero::ScaleToZeroEntry;
use crate::key::ModelKey;
use wva_base::duration::format_duration;

/// The setting below every entry of scale to zero.
pub const SCALE_TO_ZERO_SETTING: &str = "WVA_SCALE_TO_ZERO";

/// One value of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyValue<'a> {
    /// The field, as a document states it.
    pub field: &'static str,
    /// What is in force.
    pub value: String,
    /// The entry that states it; `None` where it is built in.
    pub source: Option<EntryLayer<'a>>,
}

impl DynamicSettings {
    /// The policy of one model, without what entries of `analyzers` state for themselves. Whether it may go to zero is
    /// shown by the field that decides.
    pub fn effective(&self, model: &ModelKey) -> Vec<PolicyValue<'_>> {
        let mut values = self.saturation.effective(model);
        let stated = |is_stated: fn(&ScaleToZeroEntry) -> bool| {
            let mut sources = self.scale_to_zero.entries.sources(model, None);
            sources.find_map(|(layer, entry)| is_stated(entry).then_some(layer))
        };
        let source = stated(|entry| entry.enabled.is_some());
        let field = match source {
            Some(_) => "enable_scale_to_zero",
            None => SCALE_TO_ZERO_SETTING,
        };
        let of_saturation = self.saturation.to_zero(model);
        values.push(of_saturation.unwrap_or_else(|| PolicyValue {
            field,
            value: self.scale_to_zero.enabled(model).to_string(),
            source,
        }));
        values.push(PolicyValue {
            field: "retention_period",
            value: format_duration(self.scale_to_zero.retention(model)),
            source: stated(|entry| entry.retention.is_some()),
        });
        values
    }
}

impl SaturationLayers {
    fn to_zero(&self, model: &ModelKey) -> Option<PolicyValue<'_>> {
        let value = self.scale_to_zero(model)?.to_string();
        Some(self.value(model, "scaleToZero.enabled", value, |entry| {
            Some(entry.scale_to_zero?.to_string())
        }))
    }

    /// The policy of one model. A pair of values that contradict each other is not in force, so that what an entry
    /// states counts as its source only where both are alike.
    pub(crate) fn effective(&self, model: &ModelKey) -> Vec<PolicyValue<'_>> {
        let policy = self.policy(model);
        let thresholds = policy.thresholds;
        let band = match policy.analysis {
            SaturationMethod::Slo => policy.slo_band(),
            SaturationMethod::Tokens | SaturationMethod::Percentage => policy.common_band,
        };
        let enabled = policy.analyzers.iter().filter(|analyzer| analyzer.enabled);
        let analyzers: Vec<&str> = enabled.map(|analyzer| analyzer.kind.as_str()).collect();
        let named = self.sources(model).find_map(|(_, entry)| entry.analyzer_name.clone());
        let number = |field, value: f64, read: fn(&SaturationEntry) -> Option<f64>| {
            self.value(model, field, value.to_string(), |entry| Some(read(entry)?.to_string()))
        };
        vec![
            self.value(model, "analyzerName", named.unwrap_or_default(), |entry| {
                entry.analyzer_name.clone()
            }),
            self.value(model, "analyzers", analyzers.join(", "), |entry| {
                entry.analyzers.as_ref().map(|_| analyzers.join(", "))
            }),
            number("kvCacheThreshold", thresholds.kv_cache_threshold, |entry| {
                entry.kv_cache_threshold
            }),
            number("queueLengthThreshold", thresholds.queue_length_threshold, |entry| {
                entry.queue_length_threshold
            }),
            number("kvSpareTrigger", thresholds.kv_spare_trigger, |entry| entry.kv_spare_trigger),
            number("queueSpareTrigger", thresholds.queue_spare_trigger, |entry| {
                entry.queue_spare_trigger
            }),
            number("scaleUpThreshold", band.scale_up_threshold, |entry| entry.scale_up_threshold),
            number("scaleDownBoundary", band.scale_down_boundary, |entry| {
                entry.scale_down_boundary
            }),
            self.value(model, "burstReserve", policy.burst_reserve.as_str().to_owned(), |entry| {
                Some(entry.burst_reserve?.as_str().to_owned())
            }),
            self.value(model, "actuation", policy.actuation.as_str().to_owned(), |entry| {
                Some(entry.actuation?.as_str().to_owned())
            }),
            number("priority", policy.priority, |entry| entry.priority),
        ]
    }

    fn value(
        &self,
        model: &ModelKey,
        field: &'static str,
        value: String,
        read: impl Fn(&SaturationEntry) -> Option<String>,
    ) -> PolicyValue<'_> {
        let stated = self.sources(model).find_map(|(layer, entry)| Some((layer, read(entry)?)));
        let source = stated.filter(|(_, stated)| *stated == value).map(|(layer, _)| layer);
        PolicyValue { field, value, source }
    }
}
