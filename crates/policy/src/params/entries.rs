//! Entries in force, and which of them apply to a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::key::ModelKey;

/// Key of the entry for every model that has none of its own.
pub const DEFAULT_KEY: &str = "default";

/// Which models an entry is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// Name of the model.
    pub model: Arc<str>,
    /// `None` in a global entry for every namespace, and in every namespace's own entries.
    pub namespace: Option<Arc<str>>,
}

/// A map whose keys are no texts, as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer, K: Serialize, V: Serialize>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        D: Deserializer<'de>,
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}

/// The entries of one ConfigMap that are in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntrySet<E> {
    /// The entry for every model without one.
    pub default: Option<E>,
    /// Entries for one model each, with their keys.
    #[serde(with = "pairs")]
    pub models: BTreeMap<Identity, (String, E)>,
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
    /// The entry for every model without one.
    pub(crate) fn default_entry(&self) -> Option<&E> {
        self.default.as_ref()
    }

    /// Every entry, to be changed by a planted defect.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut E> {
        let models = self.models.values_mut().map(|(_, entry)| entry);
        self.default.iter_mut().chain(models)
    }

    /// The entry under a key, with the model it is for.
    pub fn at_key(&self, key: &str) -> Option<(Option<&Identity>, &E)> {
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScopedEntries<E> {
    /// Those of the global ConfigMap.
    pub global: EntrySet<E>,
    /// Those of namespaces.
    pub namespaces: BTreeMap<Arc<str>, EntrySet<E>>,
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
    /// The entry under a key, of a namespace or of the cluster.
    pub fn at(&self, namespace: Option<&Arc<str>>, key: &str) -> Option<&E> {
        let set = match namespace {
            Some(namespace) => self.namespaces.get(namespace)?,
            None => &self.global,
        };
        set.at_key(key).map(|(_, entry)| entry)
    }

    /// The same, to be changed.
    pub fn at_mut(&mut self, namespace: Option<&Arc<str>>, key: &str) -> Option<&mut E> {
        let set = match namespace {
            Some(namespace) => self.namespaces.get_mut(namespace)?,
            None => &mut self.global,
        };
        if key == DEFAULT_KEY {
            return set.default.as_mut();
        }
        let mut models = set.models.values_mut();
        models.find(|(at, _)| at == key).map(|(_, entry)| entry)
    }

    /// What applies to a model, strongest first: the namespace's entry for it, the namespace's
    /// `default`, the global entry (with the namespace named, then without), the global `default`.
    pub fn layers(&self, model: &ModelKey) -> impl Iterator<Item = &E> {
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
    pub fn models_named(&self) -> Vec<NamedModel<'_>> {
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

/// A model that an entry is for.
#[derive(Debug, Clone)]
pub struct NamedModel<'a> {
    /// Namespace of the entry's ConfigMap, or `None` for the global one.
    pub scope: Option<&'a Arc<str>>,
    /// Key of the entry.
    pub entry: &'a str,
    /// The model.
    pub model: ModelKey,
}
