//! Boards: what the actors of a kind of object know, one entry per object. They outlive the actors.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;

use crate::policy::key::{ObjectKey, VariantKey};
use crate::policy::pod_autoscaler::record::AutoscalerRecord;
use crate::policy::snapshot::VariantView;
use wva_supervise::{Epoch, Fenced, Guard};

pub trait BoardEntry {
    type Key;

    fn key(&self) -> &Self::Key;
}

impl BoardEntry for VariantView {
    type Key = VariantKey;

    fn key(&self) -> &VariantKey {
        &self.key
    }
}

impl BoardEntry for AutoscalerRecord {
    type Key = ObjectKey;

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

/// Views by object, to be read.
#[derive(Debug)]
pub struct KeyedBoard<K: Eq + Hash, V>(Arc<DashMap<K, Entry<V>>>);

pub(crate) type Board = KeyedBoard<VariantKey, VariantView>;

pub(crate) type BoardWriter = KeyedBoardWriter<VariantKey, VariantView>;

pub(crate) type AutoscalerBoard = KeyedBoard<ObjectKey, AutoscalerRecord>;

pub(crate) type AutoscalerBoardWriter = KeyedBoardWriter<ObjectKey, AutoscalerRecord>;

/// The half that writes. The registry of the objects has it: each entry is written by the actor of its object, and
/// removed by the registry when the object is gone.
#[derive(Debug)]
pub struct KeyedBoardWriter<K: Eq + Hash, V>(KeyedBoard<K, V>);

#[derive(Debug)]
struct Entry<V> {
    guard: Guard,
    view: Arc<V>,
}

impl<K: Eq + Hash, V> Clone for KeyedBoard<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Eq + Hash, V> Default for KeyedBoard<K, V> {
    fn default() -> Self {
        Self(Arc::new(DashMap::new()))
    }
}

impl<K: Eq + Hash, V> Default for KeyedBoardWriter<K, V> {
    fn default() -> Self {
        Self(KeyedBoard::default())
    }
}

impl<K: Clone + Eq + Hash + Ord, V> KeyedBoard<K, V> {
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.0.get(key).map(|entry| Arc::clone(&entry.view))
    }

    /// All views, sorted.
    pub fn snapshot(&self) -> BTreeMap<K, Arc<V>> {
        self.0.iter().map(|entry| (entry.key().clone(), Arc::clone(&entry.value().view))).collect()
    }
}

impl<K: Clone + Eq + Hash + Ord, V: BoardEntry<Key = K>> KeyedBoardWriter<K, V> {
    pub fn reader(&self) -> KeyedBoard<K, V> {
        self.0.clone()
    }

    /// Puts a view up and hands back the one it replaces.
    pub fn put(&self, epoch: &Epoch, view: Arc<V>) -> Result<Option<Arc<V>>, Fenced> {
        // A view that has not changed is put up as the same one again, so that the one that is there says
        // nothing about whether any was.
        let mut is_first = false;
        let mut entry = self.0.0.entry(view.key().clone()).or_insert_with(|| {
            is_first = true;
            Entry { guard: Guard::new(), view: Arc::clone(&view) }
        });
        let Entry { guard, view: shown } = entry.value_mut();
        guard.admit(epoch, || {
            let replaced = std::mem::replace(shown, view);
            (!is_first).then_some(replaced)
        })
    }

    pub fn remove(&self, key: &K) {
        self.0.0.remove(key);
    }
}
