//! Saturation settings by layer: thresholds of the percentage-based analysis, and what the
//! token-based one, the optimizers and the limiters read.

mod analyzer;
mod document;
mod entry;
mod limiter;

use std::sync::Arc;

use super::config_maps::Purpose;
use super::entries::{place, read_scoped};
use super::problem::{Diagnostics, EntryPlace, EntryProblem, FallbackApplied};
use super::sources::PolicySources;
use wva_policy::key::ModelKey;
use wva_policy::params::{DEFAULT_KEY, SaturationLayers, kv_fault, queue_fault};

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
    let mut layers = SaturationLayers { entries };
    refuse_conflicts(&mut layers, band, previous, diagnostics);
    layers
}

/// The entries that ask for budgets to be shared by priority.
pub(super) fn rescaling(layers: &SaturationLayers) -> Vec<EntryPlace> {
    let scopes = std::iter::once(None).chain(layers.entries.namespaces.keys().map(Some));
    scopes
        .filter(|scope| layers.rescale_enabled(scope.map(|namespace| &**namespace)))
        .map(default_place)
        .collect()
}

pub(super) fn limiting(layers: &SaturationLayers) -> Option<EntryPlace> {
    let limiters = layers.limiters().unwrap_or_default();
    (!limiters.is_empty()).then(|| default_place(None))
}

/// Entries that are right by themselves may contradict what they inherit. Such an entry is refused
/// like any other: what stood under its key stays, unless that contradicts as well, and else its
/// contradicting pair is left to the layers below.
fn refuse_conflicts(
    layers: &mut SaturationLayers,
    band: BandUse,
    previous: Option<&SaturationLayers>,
    diagnostics: &mut Diagnostics,
) {
    let named: Vec<(EntryPlace, ModelKey)> = (layers.entries.models_named().into_iter())
        .map(|named| (place(&named, Purpose::Saturation), named.model))
        .collect();
    for (place, model) in named {
        let faults = conflicts(layers, &model, band);
        if faults.is_empty() {
            continue;
        }
        let before = previous
            .and_then(|layers| layers.entries.at(place.namespace.as_ref(), &place.entry))
            .cloned();
        let mut instead = FallbackApplied::Below;
        if let Some(entry) = layers
            .entries
            .at_mut(place.namespace.as_ref(), &place.entry)
        {
            let refused = entry.clone();
            if let Some(before) = before {
                *entry = before;
                instead = FallbackApplied::Previous;
            }
            if !conflicts(layers, &model, band).is_empty() {
                instead = FallbackApplied::Below;
                if let Some(entry) = layers
                    .entries
                    .at_mut(place.namespace.as_ref(), &place.entry)
                {
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

fn conflicts(layers: &SaturationLayers, model: &ModelKey, band: BandUse) -> Vec<String> {
    let merged = layers.merge(model);
    let tokens = layers.selects_tokens(model);
    let faults = [
        kv_fault(merged.kv_cache_threshold, merged.kv_spare_trigger),
        queue_fault(merged.queue_length_threshold, merged.queue_spare_trigger).filter(|_| !tokens),
        (layers.merge_band(model).fault()).filter(|_| tokens || band == BandUse::Everywhere),
    ];
    faults.into_iter().flatten().collect()
}

/// The entry `default` of a scope.
fn default_place(namespace: Option<&Arc<str>>) -> EntryPlace {
    EntryPlace {
        purpose: Purpose::Saturation,
        namespace: namespace.cloned(),
        entry: DEFAULT_KEY.to_owned(),
    }
}

#[cfg(test)]
mod tests;
