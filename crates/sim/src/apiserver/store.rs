//! Objects and their history, counted by one resource version.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::list;

/// Changes that are remembered. A watch or a page from before them has expired.
pub(super) const WINDOW: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) resource: String,
    /// Empty for kinds that have none.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn of(resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct StoredChange {
    pub(super) revision: u64,
    pub(super) key: Key,
    pub(super) before: Option<Arc<Value>>,
    /// `None` if the object was removed.
    pub(super) after: Option<Arc<Value>>,
    pub(super) last: Arc<Value>,
}

pub(super) type Objects = BTreeMap<Key, Arc<Value>>;

#[derive(Debug, Default)]
pub(super) struct ObjectStore {
    objects: Objects,
    places: BTreeMap<String, Key>,
    owned: BTreeMap<String, BTreeSet<Key>>,
    log: VecDeque<StoredChange>,
    revision: u64,
}

impl ObjectStore {
    pub(super) fn new() -> Self {
        Self { revision: 1, ..Self::default() }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The first version that changes are known from.
    pub(super) fn horizon(&self) -> u64 {
        self.log.front().map_or(self.revision, |first| first.revision.saturating_sub(1))
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    pub(super) fn list(&self, resource: &str, namespace: Option<&str>) -> Objects {
        let found = self.range(resource, namespace);
        found.map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
    }

    pub(super) fn range(
        &self,
        resource: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        let first = Key::of(resource, namespace.unwrap_or_default(), "");
        self.objects.range(first..).take_while(move |(key, _)| covers(key, resource, namespace))
    }

    /// The same as it was at an earlier version; `None` if that is forgotten.
    pub(super) fn list_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Option<Objects> {
        if revision < self.horizon() {
            return None;
        }
        let mut objects = self.list(resource, namespace);
        let later = self.log.iter().rev();
        for change in later.take_while(|change| change.revision > revision) {
            if !covers(&change.key, resource, namespace) {
                continue;
            }
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), Arc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        Some(objects)
    }

    pub(super) fn place_of(&self, uid: &str) -> Option<&Key> {
        self.places.get(uid)
    }

    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Key> {
        self.owned.get(uid).into_iter().flatten()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Changes of a resource after a version, oldest first; `None` if some are forgotten.
    pub(super) fn changes(
        &self,
        resource: &str,
        namespace: Option<&str>,
        after: u64,
    ) -> Option<impl Iterator<Item = &StoredChange>> {
        let later = self.all_changes(after)?;
        Some(later.filter(move |change| covers(&change.key, resource, namespace)))
    }

    pub(super) fn all_changes(&self, after: u64) -> Option<impl Iterator<Item = &StoredChange>> {
        if after < self.horizon() {
            return None;
        }
        let start = self.log.partition_point(|change| change.revision <= after);
        Some(self.log.range(start..))
    }

    pub(super) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.revision = self.revision.saturating_add(1);
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        self.note(&key, before.as_deref(), Some(&object));
        self.log(StoredChange {
            revision: self.revision,
            key,
            before,
            after: Some(Arc::clone(&object)),
            last: Arc::clone(&object),
        });
        object
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.note(key, Some(&before), None);
        self.revision = self.revision.saturating_add(1);
        let mut last = Value::clone(&before);
        last["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let last = Arc::new(last);
        self.log(StoredChange {
            revision: self.revision,
            key: key.clone(),
            before: Some(before),
            after: None,
            last: Arc::clone(&last),
        });
        Some(last)
    }

    pub(super) fn compact(&mut self) {
        self.log.clear();
    }

    fn note(&mut self, key: &Key, before: Option<&Value>, after: Option<&Value>) {
        if before.map(uid) != after.map(uid) {
            if let Some(before) = before {
                self.places.remove(uid(before));
            }
            if let Some(after) = after {
                self.places.insert(uid(after).to_owned(), key.clone());
            }
        }
        if before.map(owner_references) == after.map(owner_references) {
            return;
        }
        for owner in before.into_iter().flat_map(owners) {
            if let Some(owned) = self.owned.get_mut(owner) {
                owned.remove(key);
                if owned.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
        for owner in after.into_iter().flat_map(owners) {
            let owned = self.owned.entry(owner.to_owned()).or_default();
            owned.insert(key.clone());
        }
    }

    fn log(&mut self, change: StoredChange) {
        self.log.push_back(change);
        while self.log.len() > WINDOW {
            self.log.pop_front();
        }
    }
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn owner_references(object: &Value) -> &Value {
    &object["metadata"]["ownerReferences"]
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let references = list(owner_references(object)).iter();
    references.filter_map(|one| one["uid"].as_str())
}

fn covers(key: &Key, resource: &str, namespace: Option<&str>) -> bool {
    key.resource == resource && namespace.is_none_or(|namespace| key.namespace == namespace)
}
