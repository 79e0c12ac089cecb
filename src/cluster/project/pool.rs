//! `InferencePool`, of either group.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::{Interner, Projected, lifecycle, name, namespace_of, shared_key};
use crate::api::inference_pool::{PickerRef, v1, v1alpha2};
use crate::cluster::mirror::{Mirror, ObjectKey};
use crate::policy::object::Lifecycle;
use crate::settings::pool_group::PoolGroup;

/// What is kept of a pool: the same for both groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolObject {
    /// Its namespace, which is also that of its endpoint picker.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Labels that a pod of the pool carries.
    pub selector: BTreeMap<Arc<str>, Arc<str>>,
    /// Name of the endpoint picker's service.
    pub picker: Option<Arc<str>>,
    /// Whether it is being deleted.
    pub lifecycle: Lifecycle,
}

impl PoolObject {
    /// Whether the pool's selector is part of these labels; an empty one is part of any.
    pub fn selects(&self, labels: &BTreeMap<Arc<str>, Arc<str>>) -> bool {
        self.selector
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
    }
}

impl Projected for v1::InferencePool {
    type View = PoolObject;

    fn project(self, texts: &mut Interner) -> PoolObject {
        let (selector, picker) = (
            self.spec.selector.match_labels,
            self.spec.endpoint_picker_ref,
        );
        pool(&self.metadata, &selector, picker.as_ref(), texts)
    }

    fn key(view: &PoolObject) -> ObjectKey {
        shared_key(&view.namespace, &view.name)
    }
}

impl Projected for v1alpha2::InferencePool {
    type View = PoolObject;

    fn project(self, texts: &mut Interner) -> PoolObject {
        let (selector, picker) = (self.spec.selector, self.spec.extension_ref);
        pool(&self.metadata, &selector, picker.as_ref(), texts)
    }

    fn key(view: &PoolObject) -> ObjectKey {
        shared_key(&view.namespace, &view.name)
    }
}

fn pool(
    metadata: &ObjectMeta,
    selector: &BTreeMap<String, String>,
    picker: Option<&PickerRef>,
    texts: &mut Interner,
) -> PoolObject {
    PoolObject {
        namespace: namespace_of(metadata, texts),
        name: name(metadata),
        selector: selector
            .iter()
            .map(|(key, value)| (texts.intern(key), texts.intern(value)))
            .collect(),
        picker: picker.map(|picker| Arc::from(&*picker.name)),
        lifecycle: lifecycle(metadata),
    }
}

/// The pools of both groups as one set. A pool that is present in both counts once, as v1.
#[derive(Debug, Clone)]
pub struct InferencePools {
    /// Which of the two are watched.
    pub group: PoolGroup,
    /// Pools of `inference.networking.k8s.io`.
    pub v1: Mirror<PoolObject>,
    /// Pools of `inference.networking.x-k8s.io`.
    pub v1alpha2: Mirror<PoolObject>,
}

impl InferencePools {
    /// Whether a pool that is missing here can be taken as not existing.
    pub fn synced(&self) -> bool {
        let (stable, alpha) = (self.group.includes_stable(), self.group.includes_alpha());
        (!stable || self.v1.synced()) && (!alpha || self.v1alpha2.synced())
    }

    /// All pools that are not being deleted.
    pub fn all(&self) -> BTreeMap<ObjectKey, Arc<PoolObject>> {
        let mut pools: BTreeMap<_, _> = self.v1alpha2.all().into_iter().collect();
        pools.extend(self.v1.all());
        pools.retain(|_, pool| pool.lifecycle == Lifecycle::Live);
        pools
    }

    /// The pool of this name, unless it is being deleted.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<PoolObject>> {
        self.v1
            .get(key)
            .or_else(|| self.v1alpha2.get(key))
            .filter(|pool| pool.lifecycle == Lifecycle::Live)
    }

    /// The pools of a namespace that are not being deleted, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<PoolObject>> {
        let mut pools: BTreeMap<_, _> = self.v1alpha2.in_namespace(namespace).into_iter().collect();
        pools.extend(self.v1.in_namespace(namespace));
        let pools = pools.into_values();
        pools
            .filter(|pool| pool.lifecycle == Lifecycle::Live)
            .collect()
    }

    /// The first pool, by name, of the namespace that selects these labels.
    pub fn selecting(
        &self,
        namespace: &str,
        labels: &BTreeMap<Arc<str>, Arc<str>>,
    ) -> Option<Arc<PoolObject>> {
        let mut pools = self.in_namespace(namespace).into_iter();
        pools.find(|pool| pool.selects(labels))
    }
}
