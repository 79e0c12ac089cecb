//! Saturation settings by layer: thresholds of the percentage-based analysis, and what the
//! token-based one, the optimizers and the limiters read.

mod document;
mod entry;
mod limiter;
mod unread;

use std::sync::Arc;

use super::entries::{place, read_scoped};
use super::problem::{Diagnostics, EntryPlace, EntryProblem, FallbackApplied};
use super::purpose::Purpose;
use super::sources::PolicySources;
use wva_policy::capacity::AnalyzerName;
use wva_policy::key::ModelKey;
use wva_policy::params::{
    DEFAULT_KEY, NamedModel, SLO, SaturationEntry, SaturationLayers, kv_fault, queue_fault,
};

pub use limiter::FleetTypes;
pub(crate) use limiter::without_variants;
pub(crate) use unread::unread_fields;

/// Fields of an entry, for the documentation.
pub const FIELDS: &[wva_base::yaml::DocumentField] = document::FIELDS;

/// Whose decisions use the band of thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BandUse {
    /// That of models which are looked at by tokens; others may carry anything in its fields.
    Tokens,
    /// That of every model: the queueing model decides.
    Everywhere,
}

/// Reads every saturation ConfigMap. What is refused keeps its content of `previous`.
pub fn read(
    sources: &PolicySources,
    band: BandUse,
    previous: Option<&SaturationLayers>,
    diagnostics: &mut Diagnostics,
) -> SaturationLayers {
    let entries = read_scoped(sources, previous.map(|layers| &layers.entries), diagnostics);
    let mut layers = SaturationLayers { entries, ..SaturationLayers::default() };
    refuse_conflicts(&mut layers, band, previous, diagnostics);
    contradicted_at_home(&layers, band, diagnostics);
    layers
}

pub(super) fn rescaling(layers: &SaturationLayers) -> Vec<EntryPlace> {
    let scopes = layers.entries.scopes().map(|(scope, _)| scope);
    scopes
        .filter(|scope| layers.rescale_enabled(scope.map(|namespace| &**namespace)))
        .map(default_place)
        .collect()
}

pub(super) fn tiers(layers: &SaturationLayers) -> impl Iterator<Item = EntryPlace> {
    let all = layers.entries.models_named().into_iter();
    let tiers = all.filter(|named| named.tier.is_some());
    tiers.map(|named| place(&named, Purpose::Saturation))
}

pub(super) fn selecting(layers: &SaturationLayers) -> Vec<EntryPlace> {
    let asked = [AnalyzerName::Saturation, AnalyzerName::QueueingModel].map(AnalyzerName::as_str);
    let selects = |entry: &SaturationEntry| {
        let mut listed = entry.analyzers.iter().flatten();
        entry.analyzer_name.as_deref() == Some(SLO)
            || listed.any(|item| item.enabled && !asked.contains(&item.kind.as_str()))
    };
    let sets = layers.entries.scopes();
    sets.filter(|(_, set)| set.default.as_ref().is_some_and(selects))
        .map(|(scope, _)| default_place(scope))
        .collect()
}

pub(super) fn limiting(layers: &SaturationLayers) -> Option<EntryPlace> {
    let limiters = layers.limiters().unwrap_or_default();
    (!limiters.is_empty()).then(|| default_place(None))
}

/// Entries that are right by themselves may contradict what they inherit. This entry is refused
/// like any other: what stood under its key stays, unless that contradicts as well, and else its
/// contradicting pair is left to the layers below.
fn refuse_conflicts(
    layers: &mut SaturationLayers,
    band: BandUse,
    previous: Option<&SaturationLayers>,
    diagnostics: &mut Diagnostics,
) {
    let all: Vec<_> = (layers.entries.models_named().into_iter())
        .map(|named| {
            let place = place(&named, Purpose::Saturation);
            (place, named.tier.is_some(), named.model)
        })
        .collect();
    for (place, is_tier, model) in all {
        let named = NamedModel {
            scope: place.namespace.as_ref(),
            entry: &place.entry,
            model,
            tier: is_tier.then_some(&place.entry),
        };
        let faults = conflicts(layers, &named, band);
        if faults.is_empty() {
            continue;
        }
        let before = previous
            .and_then(|layers| layers.entries.at(place.namespace.as_ref(), &place.entry))
            .cloned();
        let mut instead = FallbackApplied::Below;
        if let Some(entry) = layers.entries.at_mut(place.namespace.as_ref(), &place.entry) {
            let refused = entry.clone();
            if let Some(before) = before {
                *entry = before;
                instead = FallbackApplied::Previous;
            }
            if !conflicts(layers, &named, band).is_empty() {
                instead = FallbackApplied::Below;
                if let Some(entry) = layers.entries.at_mut(place.namespace.as_ref(), &place.entry) {
                    *entry = refused.without_pairs();
                }
            }
        }
        let why = format!("together with what it inherits {}", faults.join("; "));
        let problem = EntryProblem { place, why, instead };
        diagnostics.problems.push(problem.into());
    }
}

/// What the entry of a model for all namespaces contradicts in one of them. It stays for the others.
fn contradicted_at_home(layers: &SaturationLayers, band: BandUse, diagnostics: &mut Diagnostics) {
    let all = layers.entries.models_named();
    let everywhere =
        all.iter().filter(|named| named.scope.is_none() && named.model.namespace.is_empty());
    for named in everywhere.filter(|named| !named.model.model.is_empty()) {
        for namespace in layers.entries.namespaces.keys() {
            let model = ModelKey::new(Arc::clone(namespace), named.model.model.clone());
            let at_home = NamedModel { model, ..named.clone() };
            let faults = conflicts(layers, &at_home, band);
            if !faults.is_empty() {
                let problem = EntryProblem {
                    place: place(named, Purpose::Saturation),
                    why: format!(
                        "together with the entries of namespace {namespace} {}",
                        faults.join("; ")
                    ),
                    instead: FallbackApplied::BuiltIn,
                };
                diagnostics.problems.push(problem.into());
            }
        }
    }
}

fn conflicts(layers: &SaturationLayers, named: &NamedModel<'_>, band: BandUse) -> Vec<String> {
    let layers = layers.seen_by(named);
    let model = &named.model;
    let merged = layers.merge(model);
    let tokens = layers.selects_tokens(model);
    let faults = [
        kv_fault(merged.kv_cache_threshold, merged.kv_spare_trigger),
        queue_fault(merged.queue_length_threshold, merged.queue_spare_trigger).filter(|_| !tokens),
        (layers.merge_band(model).fault()).filter(|_| tokens || band == BandUse::Everywhere),
    ];
    let items = layers.item_faults(model);
    faults.into_iter().flatten().chain(items).collect()
}

fn default_place(namespace: Option<&Arc<str>>) -> EntryPlace {
    EntryPlace::new(Purpose::Saturation, namespace, DEFAULT_KEY)
}

#[cfg(test)]
mod tests;
