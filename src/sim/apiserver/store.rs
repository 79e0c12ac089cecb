//! Objects and their history, counted by one resource version.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

/// Changes that are remembered. A watch or a page from before them has expired.
pub(super) const WINDOW: usize = 10_000;

/// The place of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) resource: String,
    /// Empty for kinds that have none.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// One write.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) key: Key,
    pub(super) before: Option<Arc<Value>>,
    /// `None` if the object was removed.
    pub(super) after: Option<Arc<Value>>,
    /// The object as it is now or was last, with the version of this change.
    pub(super) last: Arc<Value>,
}

/// Some objects of one resource, by place.
pub(super) type Objects = BTreeMap<Key, Arc<Value>>;

/// All objects.
#[derive(Debug)]
pub(super) struct Store {
    objects: Objects,
    log: VecDeque<Change>,
    revision: u64,
}

impl Store {
    pub(super) fn new() -> Self {
        Self {
            objects: Objects::new(),
            log: VecDeque::new(),
            revision: 1,
        }
    }

    /// The version of the last change.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The first version that changes can be told from.
    pub(super) fn horizon(&self) -> u64 {
        match self.log.front() {
            Some(first) => first.revision.saturating_sub(1),
            None => self.revision,
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// All objects of a resource, in one namespace or in all.
    pub(super) fn list(&self, resource: &str, namespace: Option<&str>) -> Objects {
        let first = Key {
            resource: resource.to_owned(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        self.objects
            .range(first..)
            .take_while(|(key, _)| covers(key, resource, namespace))
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect()
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

    /// Everything, in the order of places.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Changes of a resource after a version, oldest first; `None` if some are forgotten.
    pub(super) fn changes(
        &self,
        resource: &str,
        namespace: Option<&str>,
        after: u64,
    ) -> Option<impl Iterator<Item = &Change>> {
        let later = self.all_changes(after)?;
        Some(later.filter(move |change| covers(&change.key, resource, namespace)))
    }

    /// The same of all resources.
    pub(super) fn all_changes(&self, after: u64) -> Option<impl Iterator<Item = &Change>> {
        if after < self.horizon() {
            return None;
        }
        let start = self.log.partition_point(|change| change.revision <= after);
        Some(self.log.range(start..))
    }

    /// Stores an object under the next version.
    pub(super) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.revision = self.revision.saturating_add(1);
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        self.log(Change {
            revision: self.revision,
            key,
            before,
            after: Some(Arc::clone(&object)),
            last: Arc::clone(&object),
        });
        object
    }

    /// Removes an object, and returns it as it was last.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.revision = self.revision.saturating_add(1);
        let mut last = Value::clone(&before);
        last["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let last = Arc::new(last);
        self.log(Change {
            revision: self.revision,
            key: key.clone(),
            before: Some(before),
            after: None,
            last: Arc::clone(&last),
        });
        Some(last)
    }

    /// Forgets all changes so far, as compaction does.
    pub(super) fn compact(&mut self) {
        self.log.clear();
    }

    fn log(&mut self, change: Change) {
        self.log.push_back(change);
        while self.log.len() > WINDOW {
            self.log.pop_front();
        }
    }
}

fn covers(key: &Key, resource: &str, namespace: Option<&str>) -> bool {
    key.resource == resource && namespace.is_none_or(|namespace| key.namespace == namespace)
}
