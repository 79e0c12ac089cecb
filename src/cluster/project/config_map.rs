//! `ConfigMap`: its text entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;

use super::{Interner, Projected, name, namespace_of, uid};
use crate::policy::object::Lifecycle;
use wva_base::yaml::MAX_TEXT;

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
    /// Its entries, apart from binary ones. Of one above [`MAX_TEXT`], which nothing reads, only as much as shows that
    /// it is.
    pub data: BTreeMap<String, String>,
}

impl Projected for ConfigMap {
    type View = ConfigMapObject;

    fn project(self, texts: &mut Interner) -> ConfigMapObject {
        let mut data = self.data.unwrap_or_default();
        for text in data.values_mut().filter(|text| text.len() > MAX_TEXT) {
            text.truncate(text.ceil_char_boundary(MAX_TEXT + 1));
            text.shrink_to_fit();
        }
        ConfigMapObject {
            namespace: namespace_of(&self.metadata, texts),
            name: name(&self.metadata),
            uid: uid(&self.metadata),
            resource_version: Arc::from(
                self.metadata.resource_version.as_deref().unwrap_or_default(),
            ),
            lifecycle: super::lifecycle(&self.metadata),
            data,
        }
    }
}
