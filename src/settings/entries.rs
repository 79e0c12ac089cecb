//! What the policy ConfigMaps share: entries under any legal key, their identity in the body, a
//! `default`, and namespace over global, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::config_maps::Purpose;
use super::problem::{EntryPlace, EntryProblem, Findings, Instead, Notice};
use super::sources::{Data, PolicySources};
use super::yaml::{Field, parse_yaml};
use crate::policy::key::ModelKey;

/// Key of the entry for every model that has none of its own.
pub(super) const DEFAULT_KEY: &str = "default";

/// Longest list of faults in a message.
const MAX_FAULTS: usize = 8;

/// A kind of entry.
pub(super) trait Entry: Clone + PartialEq {
    /// Its YAML form.
    type Document: DeserializeOwned + Default;
    /// The ConfigMap it stands in.
    const PURPOSE: Purpose;
    /// Fields of its YAML form.
    const FIELDS: &'static [Field];

    /// Model and namespace that the body names.
    fn identity(document: &Self::Document) -> (Option<&str>, Option<&str>);

    /// A rule on the identity beyond those of every entry.
    fn identity_fault(_document: &Self::Document) -> Option<&'static str> {
        None
    }

    /// Judges a document.
    fn judge(document: Self::Document, entry: EntryKind) -> Verdict<Self>;

    /// Takes over from the entry in force before what [`Verdict::Partly`] left out.
    fn complete(&mut self, _previous: &Self) {}
}

/// Whom an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Every model without an entry.
    Default,
    /// One model.
    Model,
}

/// The judgement of a document.
#[derive(Debug)]
pub(super) enum Verdict<E> {
    /// Accepted.
    Whole(E),
    /// Accepted without the faulty parts, which are named.
    Partly(E, Vec<String>),
    /// Refused, with every fault.
    Refused(Vec<String>),
}

/// Which models an entry is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    model: Arc<str>,
    /// `None` in a global entry for every namespace, and in every namespace's own entries.
    namespace: Option<Arc<str>>,
}

/// The entries of one ConfigMap that are in force.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EntrySet<E> {
    default: Option<E>,
    models: BTreeMap<Identity, (String, E)>,
}

impl<E> Default for EntrySet<E> {
    fn default() -> Self {
        Self {
            default: None,
            models: BTreeMap::new(),
        }
    }
}

impl<E> EntrySet<E> {
    pub(super) fn default_entry(&self) -> Option<&E> {
        self.default.as_ref()
    }

    /// Every entry under its key, with the model it is for.
    fn by_key(&self) -> BTreeMap<&str, (Option<&Identity>, &E)> {
        let default = self
            .default
            .iter()
            .map(|entry| (DEFAULT_KEY, (None, entry)));
        let models = self
            .models
            .iter()
            .map(|(identity, (key, entry))| (key.as_str(), (Some(identity), entry)));
        default.chain(models).collect()
    }

    fn at_key(&self, key: &str) -> Option<(Option<&Identity>, &E)> {
        if key == DEFAULT_KEY {
            return self.default.as_ref().map(|entry| (None, entry));
        }
        self.models
            .iter()
            .find(|(_, (at, _))| at == key)
            .map(|(identity, (_, entry))| (Some(identity), entry))
    }

    fn for_model(&self, model: &ModelKey, namespace: Option<&Arc<str>>) -> Option<&E> {
        let identity = Identity {
            model: model.model.clone(),
            namespace: namespace.cloned(),
        };
        self.models.get(&identity).map(|(_, entry)| entry)
    }
}

/// Global entries and those of namespaces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScopedEntries<E> {
    pub(super) global: EntrySet<E>,
    pub(super) namespaces: BTreeMap<Arc<str>, EntrySet<E>>,
}

impl<E> Default for ScopedEntries<E> {
    fn default() -> Self {
        Self {
            global: EntrySet::default(),
            namespaces: BTreeMap::new(),
        }
    }
}

impl<E> ScopedEntries<E> {
    /// What applies to a model, strongest first: the namespace's entry for it, the namespace's
    /// `default`, the global entry (with the namespace named, then without), the global `default`.
    pub(super) fn layers(&self, model: &ModelKey) -> impl Iterator<Item = &E> {
        let local = self.namespaces.get(&model.namespace);
        [
            local.and_then(|set| set.for_model(model, None)),
            local.and_then(EntrySet::default_entry),
            self.global.for_model(model, Some(&model.namespace)),
            self.global.for_model(model, None),
            self.global.default_entry(),
        ]
        .into_iter()
        .flatten()
    }

    /// Every namespace and model that an entry names, and one stand-in for all others.
    pub(super) fn models_named(&self) -> Vec<(EntryPlaceOf<'_>, ModelKey)> {
        let stand_in = Arc::<str>::from("");
        let mut named = Vec::new();
        let scopes = std::iter::once((None, &self.global))
            .chain(self.namespaces.iter().map(|(name, set)| (Some(name), set)));
        for (scope, set) in scopes {
            let home = scope.unwrap_or(&stand_in);
            if set.default.is_some() {
                let key = ModelKey::new(home.clone(), stand_in.clone());
                named.push((
                    EntryPlaceOf {
                        scope,
                        key: DEFAULT_KEY,
                    },
                    key,
                ));
            }
            for (identity, (key, _)) in &set.models {
                let namespace = identity.namespace.as_ref().unwrap_or(home).clone();
                let model = ModelKey::new(namespace, identity.model.clone());
                named.push((EntryPlaceOf { scope, key }, model));
            }
        }
        named
    }
}

impl<E: PartialEq> ScopedEntries<E> {
    /// What differs from an earlier state, scope by scope, the global one first.
    pub(super) fn changes_since(&self, earlier: &Self) -> Vec<ScopeChange> {
        let empty = EntrySet::default();
        let namespaces: BTreeSet<_> = self
            .namespaces
            .keys()
            .chain(earlier.namespaces.keys())
            .collect();
        let locals = namespaces.into_iter().map(|name| {
            let old = earlier.namespaces.get(name).unwrap_or(&empty);
            let new = self.namespaces.get(name).unwrap_or(&empty);
            (Some(name.clone()), old, new)
        });
        std::iter::once((None, &earlier.global, &self.global))
            .chain(locals)
            .filter_map(|(namespace, old, new)| ScopeChange::between(namespace, old, new))
            .collect()
    }
}

/// What changed in the entries of one ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScopeChange {
    /// The namespace, or `None` for the global ConfigMap.
    pub(super) namespace: Option<Arc<str>>,
    /// Entries that were in force.
    pub(super) old: usize,
    /// Entries that are.
    pub(super) new: usize,
    /// Keys of entries that came, went or changed.
    pub(super) entries: Vec<String>,
}

impl ScopeChange {
    fn between<E: PartialEq>(
        namespace: Option<Arc<str>>,
        old: &EntrySet<E>,
        new: &EntrySet<E>,
    ) -> Option<Self> {
        let (old, new) = (old.by_key(), new.by_key());
        let keys: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
        let entries: Vec<String> = keys
            .into_iter()
            .filter(|key| old.get(key) != new.get(key))
            .map(str::to_owned)
            .collect();
        (!entries.is_empty()).then(|| Self {
            namespace,
            old: old.len(),
            new: new.len(),
            entries,
        })
    }
}

/// Scope and key of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryPlaceOf<'a> {
    pub(super) scope: Option<&'a Arc<str>>,
    pub(super) key: &'a str,
}

/// Reads every ConfigMap of one purpose. An entry that is refused leaves the others in force; what
/// stood under its key in `previous` stays in force too.
pub(super) fn read_scoped<E: Entry>(
    sources: &PolicySources,
    previous: Option<&ScopedEntries<E>>,
    findings: &mut Findings,
) -> ScopedEntries<E> {
    let mut scoped = ScopedEntries::default();
    if let Some(data) = &sources.global {
        let previous = previous.map(|scoped| &scoped.global);
        scoped.global = read_set(data, None, previous, findings);
    }
    for (namespace, data) in &sources.namespaces {
        let previous = previous.and_then(|scoped| scoped.namespaces.get(namespace));
        let set = read_set(data, Some(namespace), previous, findings);
        scoped.namespaces.insert(namespace.clone(), set);
    }
    scoped
}

fn read_set<E: Entry>(
    data: &Data,
    scope: Option<&Arc<str>>,
    previous: Option<&EntrySet<E>>,
    findings: &mut Findings,
) -> EntrySet<E> {
    let mut set = EntrySet::default();
    for (key, text) in data {
        let place = EntryPlace {
            purpose: E::PURPOSE,
            namespace: scope.cloned(),
            entry: key.clone(),
        };
        let before = previous.and_then(|set| set.at_key(key));
        let Some((identity, entry)) = read_entry(&place, text, before, findings) else {
            continue;
        };
        match identity {
            None => set.default = Some(entry),
            Some(identity) => match set.models.get(&identity) {
                // Keys are walked in order, so the smallest key keeps the model.
                Some((first, _)) => {
                    let why = format!("model {:?} already has entry {first:?}", identity.model);
                    refuse(place, vec![why], Instead::Below, findings);
                }
                None => {
                    set.models.insert(identity, (key.clone(), entry));
                }
            },
        }
    }
    set
}

/// An entry with its identity; without one it is the `default`.
type Identified<E> = (Option<Identity>, E);

fn read_entry<E: Entry>(
    place: &EntryPlace,
    text: &str,
    before: Option<(Option<&Identity>, &E)>,
    findings: &mut Findings,
) -> Option<Identified<E>> {
    let (instead, kept) = match before {
        Some((identity, entry)) => (Instead::Previous, Some((identity.cloned(), entry.clone()))),
        None => (Instead::Below, None),
    };
    let document = match parse_yaml::<E::Document>(text, E::FIELDS) {
        Ok(document) => document,
        Err(error) => {
            refuse(place.clone(), vec![error.to_string()], instead, findings);
            return kept;
        }
    };
    mention_fields(place, document.unknown, document.not_yet, findings);
    let identity = match identify::<E>(place, &document.content, findings) {
        Ok(identity) => identity,
        Err(why) => {
            refuse(place.clone(), vec![why], instead, findings);
            return kept;
        }
    };
    let kind = match identity {
        None => EntryKind::Default,
        Some(_) => EntryKind::Model,
    };
    match E::judge(document.content, kind) {
        Verdict::Whole(entry) => Some((identity, entry)),
        Verdict::Partly(mut entry, faults) => {
            if let Some((_, previous)) = before {
                entry.complete(previous);
            }
            refuse(place.clone(), faults, instead, findings);
            Some((identity, entry))
        }
        Verdict::Refused(faults) => {
            refuse(place.clone(), faults, instead, findings);
            kept
        }
    }
}

/// Whom the entry is for: everybody under `default`, else the model that the body names.
fn identify<E: Entry>(
    place: &EntryPlace,
    document: &E::Document,
    findings: &mut Findings,
) -> Result<Option<Identity>, String> {
    if let Some(fault) = E::identity_fault(document) {
        return Err(fault.to_owned());
    }
    let (model, namespace) = E::identity(document);
    let (model, namespace) = (
        model.filter(|name| !name.is_empty()),
        namespace.filter(|name| !name.is_empty()),
    );
    if place.entry == DEFAULT_KEY {
        if model.is_some() || namespace.is_some() {
            findings.notices.push(Notice::EntryAdvice {
                place: place.clone(),
                text: "it is for every model; modelId and namespace have no effect here".to_owned(),
            });
        }
        return Ok(None);
    }
    let Some(model) = model else {
        return Err("it names no model; write modelId: <the model's ID>".to_owned());
    };
    let namespace = match (namespace, &place.namespace) {
        (Some(named), Some(home)) if named != home.as_ref() => {
            return Err(format!(
                "it names namespace {named:?}, but a namespace's own ConfigMap is for itself only"
            ));
        }
        (Some(named), None) => Some(Arc::from(named)),
        (None, _) | (Some(_), Some(_)) => None,
    };
    Ok(Some(Identity {
        model: Arc::from(model),
        namespace,
    }))
}

/// Names fields that nobody knows, and those that steer nothing yet.
pub(super) fn mention_fields(
    place: &EntryPlace,
    unknown: Vec<(String, Option<&'static str>)>,
    not_yet: Vec<String>,
    findings: &mut Findings,
) {
    for (field, nearest) in unknown {
        findings.notices.push(Notice::UnknownField {
            place: place.clone(),
            field,
            nearest,
        });
    }
    if !not_yet.is_empty() {
        findings.notices.push(Notice::FieldsNotYetActive {
            place: place.clone(),
            fields: not_yet,
        });
    }
}

/// Records a refusal with a bounded list of faults.
pub(super) fn refuse(
    place: EntryPlace,
    mut faults: Vec<String>,
    instead: Instead,
    findings: &mut Findings,
) {
    let more = faults.len().saturating_sub(MAX_FAULTS);
    faults.truncate(MAX_FAULTS);
    let mut why = faults.join("; ");
    if more > 0 {
        why.push_str(&format!("; and {more} more"));
    }
    findings.problems.push(
        EntryProblem {
            place,
            why,
            instead,
        }
        .into(),
    );
}
