//! From the texts of ConfigMaps to entries in force. A refused entry leaves the others alone.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{DocumentVerdict, Entry, EntryKind};
use crate::problem::{Diagnostics, EntryPlace, EntryProblem, FallbackApplied, Severity, Warning};
use crate::sources::{Data, PolicySources};
use wva_base::text::bounded;
use wva_base::yaml::{DocumentField, parse_yaml, sift_yaml};
use wva_policy::params::{DEFAULT_KEY, EntrySet, Identity, ScopedEntries};

const MAX_FAULTS: usize = 32;

/// Longest fault; some repeat names of any length.
const MAX_FAULT: usize = 300;

/// Reads every ConfigMap of one purpose. An entry that is refused leaves the others in force; what
/// stood under its key in `previous` stays in force too.
pub(crate) fn read_scoped<E: Entry>(
    sources: &PolicySources,
    previous: Option<&ScopedEntries<E>>,
    diagnostics: &mut Diagnostics,
) -> ScopedEntries<E> {
    let mut scoped = ScopedEntries::default();
    if let Some(data) = &sources.global {
        let previous = previous.map(|scoped| &scoped.global);
        scoped.global = read_set(data, None, previous, diagnostics);
    }
    for (namespace, data) in &sources.namespaces {
        let previous = previous.and_then(|scoped| scoped.namespaces.get(namespace));
        let set = read_set(data, Some(namespace), previous, diagnostics);
        if set != EntrySet::default() {
            scoped.namespaces.insert(namespace.clone(), set);
        }
    }
    scoped
}

fn read_set<E: Entry>(
    data: &Data,
    scope: Option<&Arc<str>>,
    previous: Option<&EntrySet<E>>,
    diagnostics: &mut Diagnostics,
) -> EntrySet<E> {
    let mut set = EntrySet::default();
    for (key, text) in data {
        let place = EntryPlace::new(E::PURPOSE, scope, key);
        let before = previous.and_then(|set| set.at_key(key));
        let Some((identity, entry)) = read_entry(&place, text, before, diagnostics) else {
            continue;
        };
        match identity {
            None if key == DEFAULT_KEY => set.default = Some(entry),
            None => {
                set.tiers.insert(key.clone(), entry);
            }
            Some(identity) => match set.models.get(&identity) {
                // Keys are walked in order, so the smallest key keeps the model.
                Some((first, _)) => {
                    let why = format!(
                        "model {:?} already has entry {first:?}: remove one of them",
                        identity.model
                    );
                    refuse(place, vec![why], FallbackApplied::Below, diagnostics);
                }
                None => {
                    set.models.insert(identity, (key.clone(), entry));
                }
            },
        }
    }
    set
}

/// An entry with its identity; without one it is the `default` or a tier.
type Identified<E> = (Option<Identity>, E);

fn read_entry<E: Entry>(
    place: &EntryPlace,
    text: &str,
    before: Option<(Option<&Identity>, &E)>,
    diagnostics: &mut Diagnostics,
) -> Option<Identified<E>> {
    let (instead, kept) = match before {
        Some((identity, entry)) => {
            (FallbackApplied::Previous, Some((identity.cloned(), entry.clone())))
        }
        None => (FallbackApplied::Below, None),
    };
    let document: E::Document = match read_document(text, E::FIELDS, place, diagnostics) {
        Ok(document) => document,
        Err((faults, rest)) => {
            let faults = every_fault::<E>(place, faults, rest, diagnostics);
            refuse(place.clone(), faults, instead, diagnostics);
            return kept;
        }
    };
    let identity = match identify::<E>(place, &document, diagnostics) {
        Ok(identity) => identity,
        Err(why) => {
            let mut faults = vec![why];
            faults.extend(E::judge(document, EntryKind::Model).into_faults());
            refuse(place.clone(), faults, instead, diagnostics);
            return kept;
        }
    };
    let kind = match identity {
        None if place.entry == DEFAULT_KEY => EntryKind::Default,
        None => EntryKind::Tier,
        Some(_) => EntryKind::Model,
    };
    mention_strange::<E>(place, &document, kind, diagnostics);
    match E::judge(document, kind) {
        DocumentVerdict::Whole(entry) => {
            let lints = entry.lints().into_iter();
            (diagnostics.notices).extend(lints.map(|text| Warning::advice(place, &text)));
            Some((identity, entry))
        }
        DocumentVerdict::Partly(mut entry, faults) => {
            if let Some((_, previous)) = before {
                entry.complete(previous);
            }
            refuse(place.clone(), faults, instead, diagnostics);
            Some((identity, entry))
        }
        DocumentVerdict::Refused(faults) => {
            refuse(place.clone(), faults, instead, diagnostics);
            kept
        }
    }
}

/// Reads a document and mentions fields that it does not have. Where some have a wrong type, the error is what is wrong
/// with each, and the rest if it can be read.
pub(crate) fn read_document<T: DeserializeOwned + Default>(
    text: &str,
    fields: &'static [DocumentField],
    place: &EntryPlace,
    diagnostics: &mut Diagnostics,
) -> Result<T, (Vec<String>, Option<T>)> {
    let first = match parse_yaml::<T>(text, fields) {
        Ok(document) => {
            mention_unknown(place, document.unknown, diagnostics);
            return Ok(document.content);
        }
        Err(error) => error.to_string(),
    };
    match sift_yaml::<T>(text, fields) {
        Some(sifted) => {
            mention_unknown(place, sifted.unknown, diagnostics);
            Err((located(sifted.faults, &first), Some(sifted.rest)))
        }
        None => Err((vec![first], None)),
    }
}

/// Every fault of an entry of which fields have a wrong type. `faults` are those of the fields, and `rest` is what
/// else it states.
fn every_fault<E: Entry>(
    place: &EntryPlace,
    mut faults: Vec<String>,
    rest: Option<E::Document>,
    diagnostics: &mut Diagnostics,
) -> Vec<String> {
    let Some(rest) = rest else {
        return faults;
    };
    let kind = if place.entry == DEFAULT_KEY { EntryKind::Default } else { EntryKind::Model };
    mention_strange::<E>(place, &rest, kind, diagnostics);
    let left_out: Vec<String> = faults.iter().map(|fault| field_of(fault)).collect();
    let mut others = E::judge(rest, kind).into_faults();
    // What a field that was left out does to others is known once it is mended.
    others.retain(|fault| !left_out.iter().any(|field| fault.contains(field)));
    faults.extend(others);
    faults
}

fn located(mut faults: Vec<String>, first: &str) -> Vec<String> {
    let met = faults.iter_mut().find(|fault| first.starts_with(fault.as_str()));
    if let Some(met) = met {
        first.clone_into(met);
    }
    faults
}

/// The name of the field that a fault begins with the path of.
fn field_of(fault: &str) -> String {
    let path = fault.split(": ").next().unwrap_or_default();
    let field = path.rsplit('.').next().unwrap_or_default();
    field.split('[').next().unwrap_or_default().to_owned()
}

fn mention_strange<E: Entry>(
    place: &EntryPlace,
    document: &E::Document,
    kind: EntryKind,
    diagnostics: &mut Diagnostics,
) {
    let strange = E::strange(document, kind, place.namespace.as_deref()).into_iter();
    let strange = strange.map(|text| Warning::of_entry(Severity::Mistake, place, &text));
    diagnostics.notices.extend(strange);
}

/// What the entry is for: every model under `default`, else the model that the body names, if it names one.
fn identify<E: Entry>(
    place: &EntryPlace,
    document: &E::Document,
    diagnostics: &mut Diagnostics,
) -> Result<Option<Identity>, String> {
    if let Some(fault) = E::identity_fault(document) {
        return Err(fault.to_owned());
    }
    let (model, namespace) = E::identity(document);
    let (model, namespace) =
        (model.filter(|name| !name.is_empty()), namespace.filter(|name| !name.is_empty()));
    if place.entry == DEFAULT_KEY {
        if model.is_some() || namespace.is_some() {
            let text = "it is for every model; modelId and namespace have no effect here";
            diagnostics.notices.push(Warning::advice(place, text));
        }
        return Ok(None);
    }
    let Some(model) = model else {
        if E::TIERS && namespace.is_none() {
            return Ok(None);
        }
        return Err("it names no model; write modelId: <the model's ID>".to_owned());
    };
    let namespace = match (namespace, &place.namespace) {
        (Some(named), Some(home)) if named != home.as_ref() => {
            return Err(format!(
                "it names namespace {named:?}, but a namespace's own ConfigMap is for itself only: leave \
                 namespace out, or move the entry to the global ConfigMap"
            ));
        }
        (Some(named), None) => Some(Arc::from(named)),
        (None, _) | (Some(_), Some(_)) => None,
    };
    Ok(Some(Identity { model: Arc::from(model), namespace }))
}

fn mention_unknown(
    place: &EntryPlace,
    unknown: Vec<(String, String)>,
    diagnostics: &mut Diagnostics,
) {
    let unknown = unknown.into_iter();
    let unknown = unknown.map(|(field, remedy)| Warning::unknown_field(place, &field, &remedy));
    diagnostics.notices.extend(unknown);
}

pub(crate) fn refuse(
    place: EntryPlace,
    mut faults: Vec<String>,
    instead: FallbackApplied,
    diagnostics: &mut Diagnostics,
) {
    let more = faults.len().saturating_sub(MAX_FAULTS);
    if more > 0 {
        faults.truncate(MAX_FAULTS);
        faults.push(format!("and {more} more"));
    }
    let faults: Vec<String> = faults.iter().map(|fault| bounded(fault, MAX_FAULT)).collect();
    let problem = EntryProblem { place, why: faults.join("; "), instead };
    diagnostics.problems.push(problem.into());
}
