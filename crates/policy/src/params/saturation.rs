//! What the saturation entries of a model say: thresholds, analyzers, limiters.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::analyzers::{AnalyzerSettings, SATURATION, SLO, SaturationMethod};
use super::band::{SLO_RELEASE, StatedBand, UtilizationBand};
use super::entries::{EntryLayer, NamedModel, ScopedEntries};
use super::limiters::Limiter;
use super::slo_term::SloTerm;
use crate::capacity::AnalyzerName;
use crate::key::ModelKey;
use wva_base::text::decimal;

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

/// Everything that a model's saturation entries say.
#[derive(Debug, Clone, PartialEq)]
pub struct SaturationPolicy {
    /// Thresholds of the percentage-based analysis.
    pub thresholds: SaturationThresholds,
    /// Which analysis is selected.
    pub analysis: SaturationMethod,
    /// The band of every analyzer that states none of its own.
    pub common_band: UtilizationBand,
    /// The band of the token-based analysis, with the overrides of `analyzers[]`.
    pub band: UtilizationBand,
    /// What is held for bursts.
    pub burst_reserve: BurstReserve,
    /// Who writes the counts of targets.
    pub actuation: ActuationMode,
    /// A term that the SLO analyzer leaves out.
    pub without: Option<SloTerm>,
    /// Weight among models that share GPUs; positive.
    pub priority: f64,
    /// Analyzers that are listed.
    pub analyzers: Vec<AnalyzerSettings>,
    /// The inline scale-to-zero switch; absent leaves it to the scale-to-zero ConfigMap.
    pub scale_to_zero: Option<bool>,
}

wva_base::named! {
    listed
    /// How much the SLO analyzer holds for bursts that come faster than a replica starts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum BurstReserve {
        /// Nothing.
        None = "none",
        /// What is worth the start of a replica.
        #[default]
        Economical = "economical",
        /// What the needs and the bursts of the last hour take.
        Strict = "strict",
    }
}

wva_base::named! {
    listed
    /// Who writes the count of a target.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ActuationMode {
        /// An HPA or KEDA, which follows what is published.
        #[default]
        Scaler = "scaler",
        /// The controller, as long as no scaler is attached to the target.
        Direct = "direct",
    }
}

impl ActuationMode {
    /// Whether an HPA or KEDA is to follow.
    pub fn is_scaler(&self) -> bool {
        *self == Self::Scaler
    }
}

/// What one entry states. `None` is inherited from the layer below.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SaturationEntry {
    /// KV share from which a replica is saturated.
    pub kv_cache_threshold: Option<f64>,
    /// Queue length from which a replica is saturated.
    pub queue_length_threshold: Option<f64>,
    /// Spare KV share below which the model grows.
    pub kv_spare_trigger: Option<f64>,
    /// Spare queue below which the model grows.
    pub queue_spare_trigger: Option<f64>,
    /// Whether growth is limited to GPUs.
    pub enable_limiter: Option<bool>,
    /// Whether a budget is shared by priority.
    pub enable_rescale: Option<bool>,
    /// The analysis that is selected.
    pub analyzer_name: Option<String>,
    /// Utilization that growth aims at.
    pub scale_up_threshold: Option<f64>,
    /// Utilization below which the model may shrink.
    pub scale_down_boundary: Option<f64>,
    /// What is held for bursts.
    pub burst_reserve: Option<BurstReserve>,
    /// Who writes the counts of targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actuation: Option<ActuationMode>,
    /// A term that the SLO analyzer leaves out; no document states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<SloTerm>,
    /// Weight among models that share GPUs.
    pub priority: Option<f64>,
    /// Analyzers that are listed.
    pub analyzers: Option<Vec<AnalyzerSettings>>,
    /// Limiters that are listed.
    pub limiters: Option<Vec<Limiter>>,
    /// The inline scale-to-zero switch.
    pub scale_to_zero: Option<bool>,
}

impl SaturationEntry {
    /// The entry without what may contradict an inherited value.
    #[must_use]
    pub fn without_pairs(self) -> Self {
        Self {
            kv_cache_threshold: None,
            kv_spare_trigger: None,
            queue_length_threshold: None,
            queue_spare_trigger: None,
            scale_up_threshold: None,
            scale_down_boundary: None,
            ..self
        }
    }
}

/// Saturation thresholds, layered: namespace entry, tier, namespace `default`, global entry, global
/// `default`, built-in; field by field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SaturationLayers {
    /// As they are written.
    pub entries: ScopedEntries<SaturationEntry>,
    /// The tiers of models, as their variants name them: of a fleet, and in no document.
    #[serde(skip)]
    pub tiers: BTreeMap<ModelKey, Arc<str>>,
}

impl SaturationLayers {
    /// The layers as what an entry names sees them: those of its tier alone, where it is one.
    pub fn seen_by(&self, named: &NamedModel<'_>) -> Cow<'_, Self> {
        let Some(tier) = named.tier else {
            return Cow::Borrowed(self);
        };
        Cow::Owned(Self {
            entries: self.entries.having(&named.model.namespace, tier),
            tiers: BTreeMap::from([(named.model.clone(), Arc::from(tier))]),
        })
    }

    /// Thresholds in force for one model.
    pub fn resolve(&self, model: &ModelKey) -> SaturationThresholds {
        let merged = self.merge(model);
        let built_in = SaturationThresholds::default();
        let is_kv_sound = kv_fault(merged.kv_cache_threshold, merged.kv_spare_trigger).is_none();
        let kv = if is_kv_sound { merged } else { built_in };
        // Spare queues are looked at by percentages only.
        let is_queue_sound = self.selects_tokens(model)
            || queue_fault(merged.queue_length_threshold, merged.queue_spare_trigger).is_none();
        let queue = if is_queue_sound { merged } else { built_in };
        SaturationThresholds {
            kv_cache_threshold: kv.kv_cache_threshold,
            kv_spare_trigger: kv.kv_spare_trigger,
            queue_length_threshold: queue.queue_length_threshold,
            queue_spare_trigger: queue.queue_spare_trigger,
        }
    }

    /// Everything in force for one model.
    pub fn policy(&self, model: &ModelKey) -> SaturationPolicy {
        let analyzers = self.field(model, |entry| entry.analyzers.clone()).unwrap_or_default();
        let top = self.merge_band(model);
        let built_in = UtilizationBand::default();
        let top = if top.fault().is_some() { built_in } else { top };
        SaturationPolicy {
            thresholds: self.resolve(model),
            analysis: self.analysis(model),
            common_band: top,
            band: band_of(top, &analyzers),
            burst_reserve: self.field(model, |entry| entry.burst_reserve).unwrap_or_default(),
            actuation: self.field(model, |entry| entry.actuation).unwrap_or_default(),
            without: self.field(model, |entry| entry.without),
            // Zero is documented as "not set".
            priority: self
                .field(model, |entry| entry.priority)
                .filter(|priority| *priority != 0.0)
                .unwrap_or(1.0),
            analyzers,
            scale_to_zero: self.scale_to_zero(model),
        }
    }

    /// Whether analyzers look at a model, and not percentages.
    pub fn selects_tokens(&self, model: &ModelKey) -> bool {
        let named = self.field(model, |entry| entry.analyzer_name.clone());
        let listed = self.field(model, |entry| entry.analyzers.clone());
        matches!(named.as_deref(), Some(SATURATION | SLO))
            || listed.is_some_and(|list| !list.is_empty())
    }

    /// Whether a model may go to zero, if its entries say so at all.
    pub fn scale_to_zero(&self, model: &ModelKey) -> Option<bool> {
        self.field(model, |entry| entry.scale_to_zero)
    }

    /// Whether a model is sized for its latency objectives.
    pub fn sizes_for_latency(&self, model: &ModelKey) -> bool {
        self.policy(model).asks(AnalyzerName::Slo)
    }

    /// Whether targets of any model are scaled directly.
    pub fn any_direct(&self) -> bool {
        self.any_policy(|policy| policy.actuation == ActuationMode::Direct)
    }

    /// Whether an analyzer is named or listed for any model.
    pub fn asks(&self, analyzer: AnalyzerName) -> bool {
        self.any_policy(|policy| policy.asks(analyzer))
    }

    pub(super) fn any_policy(&self, holds: impl Fn(&SaturationPolicy) -> bool) -> bool {
        let models = self.entries.models_named();
        let mut policies = (models.iter()).map(|named| self.seen_by(named).policy(&named.model));
        policies.any(|policy| holds(&policy))
    }

    pub(super) fn any_to_zero(&self) -> bool {
        self.any_policy(|policy| policy.scale_to_zero == Some(true))
    }

    /// Whether growth is limited to GPUs; only the global `default` says so.
    pub fn limiter_enabled(&self) -> bool {
        let default = self.entries.global.default.as_ref();
        default.is_some_and(|entry| entry.enable_limiter == Some(true))
    }

    /// The limiters of the global `default`; absent means the cluster's inventory.
    pub fn limiters(&self) -> Option<&[Limiter]> {
        let default = self.entries.global.default.as_ref()?;
        default.limiters.as_deref()
    }

    /// Whether the budget of a scope is shared by priority: of one namespace, or of the cluster.
    /// Only that scope's own `default` says so.
    pub fn rescale_enabled(&self, namespace: Option<&str>) -> bool {
        let set = match namespace {
            Some(namespace) => self.entries.namespaces.get(namespace),
            None => Some(&self.entries.global),
        };
        let default = set.and_then(|set| set.default.as_ref());
        default.is_some_and(|entry| entry.enable_rescale == Some(true))
    }

    /// The strongest layer that states a field.
    fn field<T>(
        &self,
        model: &ModelKey,
        read: impl Fn(&SaturationEntry) -> Option<T>,
    ) -> Option<T> {
        self.sources(model).find_map(|(_, entry)| read(entry))
    }

    /// What applies to a model, strongest first.
    pub(super) fn sources(
        &self,
        model: &ModelKey,
    ) -> impl Iterator<Item = (EntryLayer<'_>, &SaturationEntry)> {
        let tier = self.tiers.get(model).map(|tier| &**tier);
        self.entries.sources(model, tier)
    }

    /// The thresholds that apply to a model, whether they fit together or not.
    pub fn merge(&self, model: &ModelKey) -> SaturationThresholds {
        let built_in = SaturationThresholds::default();
        let field = |read: fn(&SaturationEntry) -> Option<f64>, otherwise: f64| {
            self.field(model, read).unwrap_or(otherwise)
        };
        SaturationThresholds {
            kv_cache_threshold: field(
                |entry| entry.kv_cache_threshold,
                built_in.kv_cache_threshold,
            ),
            queue_length_threshold: field(
                |entry| entry.queue_length_threshold,
                built_in.queue_length_threshold,
            ),
            kv_spare_trigger: field(|entry| entry.kv_spare_trigger, built_in.kv_spare_trigger),
            queue_spare_trigger: field(
                |entry| entry.queue_spare_trigger,
                built_in.queue_spare_trigger,
            ),
        }
    }

    /// The same of the band.
    pub fn merge_band(&self, model: &ModelKey) -> UtilizationBand {
        self.stated_band(model).completed(self.analysis(model))
    }

    /// What is wrong with the band of an enabled item of `analyzers[]`, over what it inherits.
    pub fn item_faults(&self, model: &ModelKey) -> Vec<String> {
        let items = self.field(model, |entry| entry.analyzers.clone());
        let inherited = self.stated_band(model);
        let fault = |item: &AnalyzerSettings| {
            let stated = StatedBand::from(item).over(inherited);
            let fault = stated.completed(item.analysis()).fault()?;
            Some(format!("analyzer {:?}: {fault}", item.kind))
        };
        let items = items.iter().flatten().filter(|item| item.enabled);
        items.filter_map(fault).collect()
    }

    fn stated_band(&self, model: &ModelKey) -> StatedBand {
        StatedBand {
            scale_up_threshold: self.field(model, |entry| entry.scale_up_threshold),
            scale_down_boundary: self.field(model, |entry| entry.scale_down_boundary),
        }
    }

    fn analysis(&self, model: &ModelKey) -> SaturationMethod {
        let named = self.field(model, |entry| entry.analyzer_name.clone());
        if named.as_deref() == Some(SLO) {
            SaturationMethod::Slo
        } else if self.selects_tokens(model) {
            SaturationMethod::Tokens
        } else {
            SaturationMethod::Percentage
        }
    }
}

impl SaturationPolicy {
    fn asks(&self, analyzer: AnalyzerName) -> bool {
        let is_named = analyzer == AnalyzerName::Slo && self.analysis == SaturationMethod::Slo;
        let mut listed = self.analyzers.iter();
        is_named || listed.any(|item| item.enabled && item.kind == analyzer.as_str())
    }

    /// The SLO analyzer remembers needs, so that it needs no wide band against reversals: unless an entry of
    /// its own says otherwise, it releases down to just below what it grows at.
    pub(crate) fn slo_band(&self) -> UtilizationBand {
        UtilizationBand {
            scale_down_boundary: self.common_band.scale_up_threshold * SLO_RELEASE,
            ..self.common_band
        }
    }
}

fn band_of(top: UtilizationBand, analyzers: &[AnalyzerSettings]) -> UtilizationBand {
    let Some(own) =
        analyzers.iter().find(|analyzer| analyzer.enabled && analyzer.kind == SATURATION)
    else {
        return top;
    };
    let band = UtilizationBand {
        scale_up_threshold: own.scale_up_threshold.unwrap_or(top.scale_up_threshold),
        scale_down_boundary: own.scale_down_boundary.unwrap_or(top.scale_down_boundary),
    };
    if band.fault().is_some() { top } else { band }
}

/// What is wrong with a pair of KV thresholds, in the documented words.
pub fn kv_fault(threshold: f64, spare: f64) -> Option<String> {
    (threshold < spare).then(|| {
        format!(
            "kvCacheThreshold ({threshold:.2}) should be >= kvSpareTrigger ({spare:.2}): raise the \
             threshold or lower the trigger"
        )
    })
}

/// What is wrong with a pair of queue thresholds: the model would grow for ever.
pub fn queue_fault(threshold: f64, spare: f64) -> Option<String> {
    (threshold < spare).then(|| {
        format!(
            "queueLengthThreshold ({}) should be >= queueSpareTrigger ({}): raise \
             the threshold or lower the trigger",
            decimal(threshold, 1),
            decimal(spare, 1)
        )
    })
}
