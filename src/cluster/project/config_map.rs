//! `ConfigMap`: its text entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;

use super::{Interner, Projected, name, namespace_of, shared_key, uid};
use crate::cluster::mirror::ObjectKey;
use crate::policy::object::Lifecycle;

/// Longest entry that is kept, in bytes. The API server takes 1 MiB for all of them; a parser's
/// work grows faster than its text.
pub const ENTRY_LIMIT: usize = 256 * 1024;

/// What is kept of a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMapObject {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// `metadata.uid`, for events on it.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`, so that one edit is reported once.
    pub resource_version: Arc<str>,
    /// Whether it is being deleted.
    pub lifecycle: Lifecycle,
    /// Its entries, apart from binary ones.
    pub data: BTreeMap<String, String>,
    /// Entries above [`ENTRY_LIMIT`], which are not kept, with their size in bytes.
    pub oversized: BTreeMap<String, usize>,
}

impl Projected for ConfigMap {
    type View = ConfigMapObject;

    fn project(self, texts: &mut Interner) -> ConfigMapObject {
        let (data, oversized): (BTreeMap<_, _>, BTreeMap<_, _>) = self
            .data
            .unwrap_or_default()
            .into_iter()
            .partition(|(_, text)| text.len() <= ENTRY_LIMIT);
        ConfigMapObject {
            namespace: namespace_of(&self.metadata, texts),
            name: name(&self.metadata),
            uid: uid(&self.metadata),
            resource_version: Arc::from(
                self.metadata
                    .resource_version
                    .as_deref()
                    .unwrap_or_default(),
            ),
            lifecycle: super::lifecycle(&self.metadata),
            data,
            oversized: oversized
                .into_iter()
                .map(|(key, text)| (key, text.len()))
                .collect(),
        }
    }

    fn key(view: &ConfigMapObject) -> ObjectKey {
        shared_key(&view.namespace, &view.name)
    }
}
