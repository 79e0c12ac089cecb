//! Entries in force, and which of them apply to a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::key::ModelKey;
use crate::pairs;

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

/// The entries of one ConfigMap that are in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EntrySet<E> {
    /// The entry for every model without one.
    pub default: Option<E>,
    /// Entries for one model each, with their keys.
    #[serde(with = "pairs")]
    pub models: BTreeMap<Identity, (String, E)>,
    /// Tiers: entries for the models whose variants name them, by their keys.
    #[serde(default = "BTreeMap::new", skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, E>,
}

impl<E> EntrySet<E> {
    /// Every entry, to be changed by a planted defect.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut E> {
        let models = self.models.values_mut().map(|(_, entry)| entry);
        let tiers = self.tiers.values_mut();
        self.default.iter_mut().chain(models).chain(tiers)
    }

    /// The entry under a key, with the model it is for, if it is for one.
    pub fn at_key(&self, key: &str) -> Option<(Option<&Identity>, &E)> {
        if key == DEFAULT_KEY {
            return self.default.as_ref().map(|entry| (None, entry));
        }
        let mut models = self.models.iter();
        let of_model = models.find(|(_, (at, _))| at == key);
        let of_model = of_model.map(|(identity, (_, entry))| (Some(identity), entry));
        of_model.or_else(|| Some((None, self.tiers.get(key)?)))
    }

    fn for_model(&self, model: &ModelKey, namespace: Option<&Arc<str>>) -> Option<(&str, &E)> {
        let identity = Identity { model: model.model.clone(), namespace: namespace.cloned() };
        let (key, entry) = self.models.get(&identity)?;
        Some((key, entry))
    }

    fn for_all(&self) -> Option<(&str, &E)> {
        Some((DEFAULT_KEY, self.default.as_ref()?))
    }

    fn for_tier(&self, tier: Option<&str>) -> Option<(&str, &E)> {
        let (key, entry) = self.tiers.get_key_value(tier?)?;
        Some((key, entry))
    }

    /// The `default` and one tier alone.
    fn having(&self, tier: &str) -> Self
    where
        E: Clone,
    {
        let of_tier = self.tiers.get_key_value(tier);
        Self {
            default: self.default.clone(),
            models: BTreeMap::new(),
            tiers: (of_tier.into_iter()).map(|(key, entry)| (key.clone(), entry.clone())).collect(),
        }
    }
}

/// The place of an entry that applies to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryLayer<'a> {
    /// Whose ConfigMap it is in.
    pub scope: LayerScope,
    /// Its key.
    pub key: &'a str,
}

/// Whose ConfigMap an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerScope {
    /// That of the model's namespace.
    Namespace,
    /// The global one.
    Global,
}

wva_base::display_of! { EntryLayer<'_>:
    Self { scope: LayerScope::Namespace, key } => "entry {key:?} of the namespace";
    Self { scope: LayerScope::Global, key } => "global entry {key:?}";
}

/// Global entries and those of namespaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScopedEntries<E> {
    /// Those of the global ConfigMap.
    pub global: EntrySet<E>,
    /// Those of namespaces.
    pub namespaces: BTreeMap<Arc<str>, EntrySet<E>>,
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
        if let Some(entry) = set.tiers.get_mut(key) {
            return Some(entry);
        }
        let mut models = set.models.values_mut();
        models.find(|(at, _)| at == key).map(|(_, entry)| entry)
    }

    /// What applies to a model without a tier, strongest first.
    pub fn layers(&self, model: &ModelKey) -> impl Iterator<Item = &E> {
        self.sources(model, None).map(|(_, entry)| entry)
    }

    /// What applies to a model, strongest first: the namespace's entry for it, its tier (of the namespace,
    /// then the global one), the namespace's `default`, the global entry (with the namespace named, then
    /// without), the global `default`.
    pub fn sources(
        &self,
        model: &ModelKey,
        tier: Option<&str>,
    ) -> impl Iterator<Item = (EntryLayer<'_>, &E)> {
        let local = self.namespaces.get(&model.namespace);
        let global = &self.global;
        let (home, cluster) = (LayerScope::Namespace, LayerScope::Global);
        [
            (home, local.and_then(|set| set.for_model(model, None))),
            (home, local.and_then(|set| set.for_tier(tier))),
            (cluster, global.for_tier(tier)),
            (home, local.and_then(EntrySet::for_all)),
            (cluster, global.for_model(model, Some(&model.namespace))),
            (cluster, global.for_model(model, None)),
            (cluster, global.for_all()),
        ]
        .into_iter()
        .filter_map(|(scope, found)| {
            let (key, entry) = found?;
            Some((EntryLayer { scope, key }, entry))
        })
    }

    /// Whether a model of a namespace may have this tier.
    pub fn has_tier(&self, namespace: &Arc<str>, tier: &str) -> bool {
        let local = self.namespaces.get(namespace);
        let mut sets = local.into_iter().chain([&self.global]);
        sets.any(|set| set.tiers.contains_key(tier))
    }

    /// What applies to the models of a namespace that have this tier and no entry of their own.
    pub(super) fn having(&self, namespace: &Arc<str>, tier: &str) -> Self
    where
        E: Clone,
    {
        let local = self.namespaces.get_key_value(namespace);
        Self {
            global: self.global.having(tier),
            namespaces: (local.into_iter())
                .map(|(namespace, set)| (Arc::clone(namespace), set.having(tier)))
                .collect(),
        }
    }

    /// The entries of each ConfigMap: the global ones, then those of each namespace.
    pub fn scopes(&self) -> impl Iterator<Item = (Option<&Arc<str>>, &EntrySet<E>)> {
        let namespaces = self.namespaces.iter();
        let namespaces = namespaces.map(|(name, set)| (Some(name), set));
        std::iter::once((None, &self.global)).chain(namespaces)
    }

    /// A model for every entry: the one that it names, or a stand-in for all others.
    pub fn models_named(&self) -> Vec<NamedModel<'_>> {
        let stand_in = Arc::<str>::from("");
        let mut named = Vec::new();
        for (scope, set) in self.scopes() {
            let home = scope.unwrap_or(&stand_in);
            let for_all = |entry, tier| NamedModel {
                scope,
                entry,
                model: ModelKey::new(home.clone(), stand_in.clone()),
                tier,
            };
            let default = set.default.iter();
            named.extend(default.map(|_| for_all(DEFAULT_KEY, None)));
            let tiers = set.tiers.keys().map(String::as_str);
            named.extend(tiers.map(|tier| for_all(tier, Some(tier))));
            named.extend(set.models.iter().map(|(identity, (entry, _))| {
                let namespace = identity.namespace.as_ref().unwrap_or(home).clone();
                NamedModel {
                    model: ModelKey::new(namespace, identity.model.clone()),
                    ..for_all(entry.as_str(), None)
                }
            }));
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
    /// The key, where it is a tier.
    pub tier: Option<&'a str>,
}
