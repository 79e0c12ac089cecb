//! Entries without a use, and what a change of the sources made of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use crate::problem::EntryPlace;
use crate::purpose::Purpose;
use wva_policy::key::ModelKey;
use wva_policy::params::{DEFAULT_KEY, EntrySet, Identity, NamedModel, ScopedEntries};

/// An entry that serves no variant, with the model that it names.
pub(crate) type Unserved = (EntryPlace, Option<Arc<str>>);

/// Entries that name a model which is not among `served`, with that model's name, and those for all
/// models of a namespace that serves none.
pub(crate) fn unused_entries<E>(
    entries: &ScopedEntries<E>,
    purpose: Purpose,
    served: &BTreeSet<ModelKey>,
) -> Vec<Unserved> {
    let names: BTreeSet<&Arc<str>> = served.iter().map(|key| &key.model).collect();
    let mut unused_entries = Vec::new();
    let homes: BTreeSet<&Arc<str>> = served.iter().map(|key| &key.namespace).collect();
    for (scope, set) in entries.scopes() {
        if set.default.is_some() && scope.is_some_and(|scope| !homes.contains(scope)) {
            unused_entries.push((EntryPlace::new(purpose, scope, DEFAULT_KEY), None));
        }
        for (identity, (entry, _)) in &set.models {
            let model = &identity.model;
            let is_served = match identity.namespace.as_ref().or(scope) {
                Some(namespace) => {
                    served.contains(&ModelKey::new(namespace.clone(), model.clone()))
                }
                None => names.contains(model),
            };
            if !is_served {
                let place = EntryPlace::new(purpose, scope, entry);
                unused_entries.push((place, Some(Arc::clone(&identity.model))));
            }
        }
    }
    unused_entries
}

pub(crate) fn place(named: &NamedModel<'_>, purpose: Purpose) -> EntryPlace {
    EntryPlace::new(purpose, named.scope, named.entry)
}

/// What differs from an earlier state, scope by scope, the global one first.
pub(crate) fn changes<E: Default + PartialEq>(
    earlier: &ScopedEntries<E>,
    later: &ScopedEntries<E>,
) -> Vec<ScopeChange> {
    let empty = EntrySet::default();
    let namespaces: BTreeSet<_> =
        later.namespaces.keys().chain(earlier.namespaces.keys()).collect();
    let locals = namespaces.into_iter().map(|name| {
        let old = earlier.namespaces.get(name).unwrap_or(&empty);
        let new = later.namespaces.get(name).unwrap_or(&empty);
        (Some(name.clone()), old, new)
    });
    std::iter::once((None, &earlier.global, &later.global))
        .chain(locals)
        .filter_map(|(namespace, old, new)| {
            ScopeChange::between(namespace, &by_key(old), &by_key(new))
        })
        .collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScopeChange {
    pub(crate) namespace: Option<Arc<str>>,
    /// Entries that were in force.
    pub(crate) old: usize,
    pub(crate) new: usize,
    /// Keys of entries that changed; those that came or went say so.
    pub(crate) entries: Vec<String>,
}

impl ScopeChange {
    /// From the entries of both states by their keys; `None` where they are equal.
    pub(crate) fn between<K: Ord + Display, E: PartialEq>(
        namespace: Option<Arc<str>>,
        old: &BTreeMap<K, E>,
        new: &BTreeMap<K, E>,
    ) -> Option<Self> {
        let keys: BTreeSet<&K> = old.keys().chain(new.keys()).collect();
        let entries: Vec<String> = keys
            .into_iter()
            .filter_map(|key| match (old.get(key), new.get(key)) {
                (Some(_), None) => Some(format!("{key} (removed)")),
                (None, Some(_)) => Some(format!("{key} (new)")),
                (before, after) => (before != after).then(|| key.to_string()),
            })
            .collect();
        (!entries.is_empty()).then_some(Self { namespace, old: old.len(), new: new.len(), entries })
    }
}

fn by_key<E>(set: &EntrySet<E>) -> BTreeMap<&str, (Option<&Identity>, &E)> {
    let default = set.default.iter().map(|entry| (DEFAULT_KEY, (None, entry)));
    let models =
        set.models.iter().map(|(identity, (key, entry))| (key.as_str(), (Some(identity), entry)));
    let tiers = set.tiers.iter();
    let tiers = tiers.map(|(key, entry)| (key.as_str(), (None, entry)));
    default.chain(models).chain(tiers).collect()
}
