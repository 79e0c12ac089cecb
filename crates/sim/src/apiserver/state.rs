//! Everything that the server holds.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::builtin;
use super::kind::{self, Kind};
use super::store::{Key, ObjectStore};
use crate::number;
use wva_supervise::{Clock, Generator};

#[derive(Debug)]
pub(super) struct State {
    pub(super) store: ObjectStore,
    pub(super) kinds: Vec<Arc<Kind>>,
    pub(super) definitions: Arc<Map<String, Value>>,
    generator: Generator,
    clock: Clock,
}

impl State {
    pub(super) fn new(clock: Clock, generator: Generator) -> Self {
        let (kinds, definitions) = builtin::kinds();
        let mut state = Self { store: ObjectStore::new(), kinds, definitions, generator, clock };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let object = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": name, "uid": state.uid(), "creationTimestamp": state.stamp(),
                    "labels": {"kubernetes.io/metadata.name": name},
                },
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            state.store.put(namespace_key(name), object);
        }
        state
    }

    pub(super) fn kind(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds
            .iter()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    pub(super) fn kind_of(&self, key: &Key) -> Option<Arc<Kind>> {
        let mut kinds = self.kinds.iter();
        kinds.find(|kind| kind.stored_as == key.resource).cloned()
    }

    pub(super) fn refresh_kinds(&mut self) {
        let stored = self.store.list(DEFINITIONS, None);
        (self.kinds, _) = builtin::kinds();
        for definition in stored.values() {
            let defined = kind::defined(definition, &self.definitions);
            self.kinds.extend(defined.into_iter().map(Arc::new));
        }
    }

    pub(super) fn stamp(&self) -> String {
        let stamp = jiff::Timestamp::from_second(self.seconds());
        stamp.unwrap_or_default().to_string()
    }

    pub(super) fn seconds(&self) -> i64 {
        self.clock.now().wall.0.div_euclid(1000)
    }

    pub(super) fn uid(&mut self) -> String {
        let (high, low) = (self.generator.next_u64(), self.generator.next_u64());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff,
        )
    }

    pub(super) fn suffix(&mut self) -> String {
        number::letters(self.generator.next_u64(), 5)
    }

    pub(super) fn place_of(&self, uid: &Value) -> Option<&Key> {
        self.store.place_of(uid.as_str()?)
    }
}

pub(super) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

pub(super) fn namespace_key(name: &str) -> Key {
    Key::of("namespaces.", "", name)
}
