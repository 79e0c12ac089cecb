//! Entries in force, and which of them apply to a model.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use super::DEFAULT_KEY;
use crate::policy::key::ModelKey;
use crate::settings::config_maps::Purpose;
use crate::settings::problem::EntryPlace;

/// Which models an entry is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) model: Arc<str>,
    /// `None` in a global entry for every namespace, and in every namespace's own entries.
    pub(super) namespace: Option<Arc<str>>,
}

/// The entries of one ConfigMap that are in force.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::settings) struct EntrySet<E> {
    pub(super) default: Option<E>,
    pub(super) models: BTreeMap<Identity, (String, E)>,
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
    pub(in crate::settings) fn default_entry(&self) -> Option<&E> {
        self.default.as_ref()
    }

    /// The same, to be changed by a planted defect.
    #[cfg(feature = "sim")]
    pub(in crate::settings) fn default_entry_mut(&mut self) -> Option<&mut E> {
        self.default.as_mut()
    }

    /// Every entry, to be changed by a planted defect.
    pub(in crate::settings) fn all_mut(&mut self) -> impl Iterator<Item = &mut E> {
        let models = self.models.values_mut().map(|(_, entry)| entry);
        self.default.iter_mut().chain(models)
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

    pub(super) fn at_key(&self, key: &str) -> Option<(Option<&Identity>, &E)> {
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
pub(in crate::settings) struct ScopedEntries<E> {
    pub(in crate::settings) global: EntrySet<E>,
    pub(in crate::settings) namespaces: BTreeMap<Arc<str>, EntrySet<E>>,
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
    /// The entry at a place.
    pub(in crate::settings) fn at(&self, place: &EntryPlace) -> Option<&E> {
        let set = match &place.namespace {
            Some(namespace) => self.namespaces.get(namespace)?,
            None => &self.global,
        };
        set.at_key(&place.entry).map(|(_, entry)| entry)
    }

    /// The entry at a place, to be changed.
    pub(in crate::settings) fn at_mut(&mut self, place: &EntryPlace) -> Option<&mut E> {
        let set = match &place.namespace {
            Some(namespace) => self.namespaces.get_mut(namespace)?,
            None => &mut self.global,
        };
        if place.entry == DEFAULT_KEY {
            return set.default.as_mut();
        }
        let mut models = set.models.values_mut();
        models
            .find(|(key, _)| *key == place.entry)
            .map(|(_, entry)| entry)
    }

    /// What applies to a model, strongest first: the namespace's entry for it, the namespace's
    /// `default`, the global entry (with the namespace named, then without), the global `default`.
    pub(in crate::settings) fn layers(&self, model: &ModelKey) -> impl Iterator<Item = &E> {
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

    /// A model for every entry: the one that it names, or a stand-in for all others.
    pub(in crate::settings) fn models_named(&self) -> Vec<NamedModel<'_>> {
        let stand_in = Arc::<str>::from("");
        let mut named = Vec::new();
        let scopes = std::iter::once((None, &self.global))
            .chain(self.namespaces.iter().map(|(name, set)| (Some(name), set)));
        for (scope, set) in scopes {
            let home = scope.unwrap_or(&stand_in);
            if set.default.is_some() {
                named.push(NamedModel {
                    scope,
                    entry: DEFAULT_KEY,
                    model: ModelKey::new(home.clone(), stand_in.clone()),
                });
            }
            for (identity, (entry, _)) in &set.models {
                let namespace = identity.namespace.as_ref().unwrap_or(home).clone();
                named.push(NamedModel {
                    scope,
                    entry,
                    model: ModelKey::new(namespace, identity.model.clone()),
                });
            }
        }
        named
    }
}

/// An entry that is for nobody, with the model that it names.
pub(in crate::settings) type Unserved = (EntryPlace, Option<Arc<str>>);

impl<E> ScopedEntries<E> {
    /// Entries that name a model which is not among `served`, with that model's name, and those for all
    /// models of a namespace that serves none.
    pub(in crate::settings) fn unused_entries(
        &self,
        purpose: Purpose,
        served: &BTreeSet<ModelKey>,
    ) -> Vec<Unserved> {
        let scopes = std::iter::once((None, &self.global))
            .chain(self.namespaces.iter().map(|(name, set)| (Some(name), set)));
        let names: BTreeSet<&Arc<str>> = served.iter().map(|key| &key.model).collect();
        let mut unused_entries = Vec::new();
        let homes: BTreeSet<&Arc<str>> = served.iter().map(|key| &key.namespace).collect();
        for (scope, set) in scopes {
            if set.default.is_some() && scope.is_some_and(|scope| !homes.contains(scope)) {
                let place = EntryPlace {
                    purpose,
                    namespace: scope.cloned(),
                    entry: DEFAULT_KEY.to_owned(),
                };
                unused_entries.push((place, None));
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
                    let place = EntryPlace {
                        purpose,
                        namespace: scope.cloned(),
                        entry: entry.clone(),
                    };
                    unused_entries.push((place, Some(Arc::clone(&identity.model))));
                }
            }
        }
        unused_entries
    }
}

/// A model that an entry is for.
#[derive(Debug, Clone)]
pub(in crate::settings) struct NamedModel<'a> {
    /// Namespace of the entry's ConfigMap, or `None` for the global one.
    pub(in crate::settings) scope: Option<&'a Arc<str>>,
    /// Key of the entry.
    pub(in crate::settings) entry: &'a str,
    /// The model.
    pub(in crate::settings) model: ModelKey,
}

impl NamedModel<'_> {
    /// Where the entry is.
    pub(in crate::settings) fn place(&self, purpose: Purpose) -> EntryPlace {
        EntryPlace {
            purpose,
            namespace: self.scope.cloned(),
            entry: self.entry.to_owned(),
        }
    }
}

impl<E: PartialEq> ScopedEntries<E> {
    /// What differs from an earlier state, scope by scope, the global one first.
    pub(in crate::settings) fn changes_since(&self, earlier: &Self) -> Vec<ScopeChange> {
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
            .filter_map(|(namespace, old, new)| {
                ScopeChange::between(namespace, &old.by_key(), &new.by_key())
            })
            .collect()
    }
}

/// What changed in the entries of one ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::settings) struct ScopeChange {
    /// The namespace, or `None` for the global ConfigMap.
    pub(in crate::settings) namespace: Option<Arc<str>>,
    /// Entries that were in force.
    pub(in crate::settings) old: usize,
    /// Entries that are.
    pub(in crate::settings) new: usize,
    /// Keys of entries that changed; those that came or went say so.
    pub(in crate::settings) entries: Vec<String>,
}

impl ScopeChange {
    /// From the entries of both states by their keys; `None` where they are equal.
    pub(in crate::settings) fn between<K: Ord + Display, E: PartialEq>(
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
        (!entries.is_empty()).then_some(Self {
            namespace,
            old: old.len(),
            new: new.len(),
            entries,
        })
    }
}
