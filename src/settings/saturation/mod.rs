//! Saturation settings by layer: thresholds of the percentage-based analysis, and what the
//! token-based one, the optimizers and the limiters read.

mod analyzer;
mod document;
mod entry;
mod limiter;

pub use analyzer::{AnalyzerSettings, SATURATION};
pub use entry::UtilizationBand;
pub use limiter::{Limiter, LimiterScope, Quota, Quotas};

use std::collections::BTreeSet;
use std::sync::Arc;

use entry::{SaturationEntry, kv_fault, queue_fault};

use super::config_maps::Purpose;
use super::entries::{DEFAULT_KEY, EntrySet, ScopeChange, ScopedEntries, Unserved, read_scoped};
use super::problem::{Diagnostics, EntryPlace, EntryProblem, FallbackApplied};
use super::sources::PolicySources;
use crate::policy::capacity::AnalyzerName;
use crate::policy::key::ModelKey;

/// Fields of an entry, for the documentation.
pub const FIELDS: &[wva_base::yaml::DocumentField] = document::FIELDS;

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
    /// Weight among models that share GPUs; positive.
    pub priority: f64,
    /// Analyzers that are listed.
    pub analyzers: Vec<AnalyzerSettings>,
    /// The inline scale-to-zero switch; absent leaves it to the scale-to-zero ConfigMap.
    pub scale_to_zero: Option<bool>,
}

/// The two ways to look at saturation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaturationMethod {
    /// V1: shares of KV cache and queue lengths.
    Percentage,
    /// V2: tokens.
    Tokens,
}

/// Whose decisions use the band of thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BandUse {
    /// That of models which are looked at by tokens; others may carry anything in its fields.
    Tokens,
    /// That of every model: the queueing model decides.
    Everywhere,
}

/// Saturation thresholds, layered: namespace entry, namespace `default`, global entry, global
/// `default`, built-in; field by field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SaturationLayers {
    entries: ScopedEntries<SaturationEntry>,
}

impl SaturationLayers {
    /// Reads every saturation ConfigMap. What is refused keeps its content of `previous`.
    pub fn read(
        sources: &PolicySources,
        band: BandUse,
        previous: Option<&Self>,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let entries = read_scoped(sources, previous.map(|layers| &layers.entries), diagnostics);
        let mut layers = Self { entries };
        layers.refuse_conflicts(band, previous, diagnostics);
        layers
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
        let analyzers = self
            .field(model, |entry| entry.analyzers.clone())
            .unwrap_or_default();
        let top = self.merge_band(model);
        let built_in = UtilizationBand::default();
        let top = if top.fault().is_some() { built_in } else { top };
        SaturationPolicy {
            thresholds: self.resolve(model),
            analysis: if self.selects_tokens(model) {
                SaturationMethod::Tokens
            } else {
                SaturationMethod::Percentage
            },
            common_band: top,
            band: band_of(top, &analyzers),
            // Zero is documented as "not set".
            priority: self
                .field(model, |entry| entry.priority)
                .filter(|priority| *priority != 0.0)
                .unwrap_or(1.0),
            analyzers,
            scale_to_zero: self.scale_to_zero(model),
        }
    }

    /// Whether a model is looked at by tokens.
    fn selects_tokens(&self, model: &ModelKey) -> bool {
        let named = self.field(model, |entry| entry.analyzer_name.clone());
        let listed = self.field(model, |entry| entry.analyzers.clone());
        named.as_deref() == Some(SATURATION) || listed.is_some_and(|list| !list.is_empty())
    }

    /// Whether a model may go to zero, if its entries say so at all.
    pub fn scale_to_zero(&self, model: &ModelKey) -> Option<bool> {
        self.field(model, |entry| entry.scale_to_zero)
    }

    /// Whether any model is looked at by tokens.
    pub(super) fn any_by_tokens(&self) -> bool {
        let models = self.entries.models_named();
        let mut policies = models.iter().map(|named| self.policy(&named.model));
        policies.any(|policy| policy.analysis == SaturationMethod::Tokens)
    }

    /// Whether the throughput analyzer looks at any model.
    pub fn any_by_throughput(&self) -> bool {
        let kind = AnalyzerName::Throughput.as_str();
        let models = self.entries.models_named();
        let mut policies = models.iter().map(|named| self.policy(&named.model));
        policies.any(|policy| {
            let mut listed = policy.analyzers.iter();
            listed.any(|analyzer| analyzer.enabled && analyzer.kind == kind)
        })
    }

    /// Whether any entry lets models go to zero.
    pub(super) fn any_to_zero(&self) -> bool {
        let models = self.entries.models_named();
        let mut models = models.iter().map(|named| &named.model);
        models.any(|model| self.scale_to_zero(model) == Some(true))
    }

    /// Whether growth is limited to GPUs; only the global `default` says so.
    pub fn limiter_enabled(&self) -> bool {
        self.global_default()
            .and_then(|entry| entry.enable_limiter)
            .unwrap_or(false)
    }

    /// Limits growth no more, as if nobody had asked for it: a planted defect.
    #[cfg(feature = "sim")]
    pub fn forget_limiter(&mut self) {
        if let Some(entry) = self.entries.global.default_entry_mut() {
            entry.enable_limiter = None;
        }
    }

    /// The limiters of the global `default`; absent means the cluster's inventory.
    pub fn limiters(&self) -> Option<&[Limiter]> {
        self.global_default()
            .and_then(|entry| entry.limiters.as_deref())
    }

    /// Whether the budget of a scope is shared by priority: of one namespace, or of the cluster.
    /// Only that scope's own `default` says so.
    pub fn rescale_enabled(&self, namespace: Option<&str>) -> bool {
        let set = match namespace {
            Some(namespace) => self.entries.namespaces.get(namespace),
            None => Some(&self.entries.global),
        };
        set.and_then(EntrySet::default_entry)
            .and_then(|entry| entry.enable_rescale)
            .unwrap_or(false)
    }

    /// The entries that ask for budgets to be shared by priority.
    pub(super) fn rescaling(&self) -> Vec<EntryPlace> {
        let scopes = std::iter::once(None).chain(self.entries.namespaces.keys().map(Some));
        scopes
            .filter(|scope| self.rescale_enabled(scope.map(|namespace| &**namespace)))
            .map(default_place)
            .collect()
    }

    /// The entry that lists limiters.
    pub(super) fn limiting(&self) -> Option<EntryPlace> {
        let limiters = self.limiters().unwrap_or_default();
        (!limiters.is_empty()).then(|| default_place(None))
    }

    /// Entries for models and namespaces that are not among `served`.
    pub(super) fn unused_entries(&self, served: &BTreeSet<ModelKey>) -> Vec<Unserved> {
        self.entries.unused_entries(Purpose::Saturation, served)
    }

    /// What differs from an earlier state, scope by scope.
    pub(super) fn changes_since(&self, earlier: &Self) -> Vec<ScopeChange> {
        self.entries.changes_since(&earlier.entries)
    }

    fn global_default(&self) -> Option<&SaturationEntry> {
        self.entries.global.default_entry()
    }

    /// The strongest layer that states a field.
    fn field<T>(
        &self,
        model: &ModelKey,
        read: impl Fn(&SaturationEntry) -> Option<T>,
    ) -> Option<T> {
        self.entries.layers(model).find_map(read)
    }

    fn merge(&self, model: &ModelKey) -> SaturationThresholds {
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

    fn merge_band(&self, model: &ModelKey) -> UtilizationBand {
        let built_in = UtilizationBand::default();
        UtilizationBand {
            scale_up_threshold: self
                .field(model, |entry| entry.scale_up_threshold)
                .unwrap_or(built_in.scale_up_threshold),
            scale_down_boundary: self
                .field(model, |entry| entry.scale_down_boundary)
                .unwrap_or(built_in.scale_down_boundary),
        }
    }

    /// Entries that are right by themselves may contradict what they inherit. Such an entry is refused
    /// like any other: what stood under its key stays, unless that contradicts as well, and else its
    /// contradicting pair is left to the layers below.
    fn refuse_conflicts(
        &mut self,
        band: BandUse,
        previous: Option<&Self>,
        diagnostics: &mut Diagnostics,
    ) {
        let named: Vec<(EntryPlace, ModelKey)> = (self.entries.models_named().into_iter())
            .map(|named| (named.place(Purpose::Saturation), named.model))
            .collect();
        for (place, model) in named {
            let faults = self.conflicts(&model, band);
            if faults.is_empty() {
                continue;
            }
            let before = previous
                .and_then(|layers| layers.entries.at(&place))
                .cloned();
            let mut instead = FallbackApplied::Below;
            if let Some(entry) = self.entries.at_mut(&place) {
                let refused = entry.clone();
                if let Some(before) = before {
                    *entry = before;
                    instead = FallbackApplied::Previous;
                }
                if !self.conflicts(&model, band).is_empty() {
                    instead = FallbackApplied::Below;
                    if let Some(entry) = self.entries.at_mut(&place) {
                        *entry = refused.without_pairs();
                    }
                }
            }
            let why = format!("together with what it inherits {}", faults.join("; "));
            let problem = EntryProblem {
                place,
                why,
                instead,
            };
            diagnostics.problems.push(problem.into());
        }
    }

    /// What contradicts itself in everything that applies to a model.
    fn conflicts(&self, model: &ModelKey, band: BandUse) -> Vec<String> {
        let merged = self.merge(model);
        let tokens = self.selects_tokens(model);
        let faults = [
            kv_fault(merged.kv_cache_threshold, merged.kv_spare_trigger),
            queue_fault(merged.queue_length_threshold, merged.queue_spare_trigger)
                .filter(|_| !tokens),
            (self.merge_band(model).fault()).filter(|_| tokens || band == BandUse::Everywhere),
        ];
        faults.into_iter().flatten().collect()
    }
}

/// The entry `default` of a scope.
fn default_place(namespace: Option<&Arc<str>>) -> EntryPlace {
    EntryPlace {
        purpose: Purpose::Saturation,
        namespace: namespace.cloned(),
        entry: DEFAULT_KEY.to_owned(),
    }
}

/// The band with the overrides of the first enabled `saturation` analyzer.
fn band_of(top: UtilizationBand, analyzers: &[AnalyzerSettings]) -> UtilizationBand {
    let Some(own) = analyzers
        .iter()
        .find(|analyzer| analyzer.enabled && analyzer.kind == SATURATION)
    else {
        return top;
    };
    let band = UtilizationBand {
        scale_up_threshold: own.scale_up_threshold.unwrap_or(top.scale_up_threshold),
        scale_down_boundary: own.scale_down_boundary.unwrap_or(top.scale_down_boundary),
    };
    if band.fault().is_some() { top } else { band }
}

#[cfg(test)]
mod tests;
