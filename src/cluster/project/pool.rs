//! `InferencePool`, of any group.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::{Interner, Projected, lifecycle, name, namespace_of};
use crate::api::inference_pool::InferencePool;
use crate::cluster::mirror::{Mirror, ObjectKey};
use crate::policy::object::Lifecycle;
use crate::settings::pool_group::PoolGroup;

/// What is kept of a pool: the same for all groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolObject {
    /// Its namespace, which is also that of its endpoint picker.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// Labels that a pod of the pool carries.
    pub selector: BTreeMap<Arc<str>, Arc<str>>,
    /// Name of the endpoint picker's service.
    pub picker: Option<Arc<str>>,
    pub lifecycle: Lifecycle,
}

impl PoolObject {
    /// Whether the pool's selector is part of these labels; an empty one is part of any.
    pub fn selects(&self, labels: &BTreeMap<Arc<str>, Arc<str>>) -> bool {
        self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

impl Projected for InferencePool {
    type View = PoolObject;

    fn project(self, texts: &mut Interner) -> PoolObject {
        let selector = self.spec.selector.labels().iter();
        PoolObject {
            namespace: namespace_of(&self.metadata, texts),
            name: name(&self.metadata),
            selector: selector
                .map(|(key, value)| (texts.intern(key), texts.intern(value)))
                .collect(),
            picker: self.spec.endpoint_picker_ref.map(|picker| picker.name.into()),
            lifecycle: lifecycle(&self.metadata),
        }
    }
}

/// The pools of all groups as one set. A pool that is present in several counts once.
#[derive(Debug, Clone)]
pub struct InferencePools {
    /// Which of them are watched.
    pub group: PoolGroup,
    /// The pools of each of [`PoolGroup::ALL`].
    pub mirrors: [Mirror<PoolObject>; PoolGroup::ALL.len()],
}

impl InferencePools {
    /// Whether a pool that is missing here can be taken as not existing.
    pub fn synced(&self) -> bool {
        let mut groups = PoolGroup::ALL.iter().zip(&self.mirrors);
        groups.all(|(group, mirror)| !self.group.includes(group) || mirror.synced())
    }

    /// All pools that are not being deleted.
    pub fn all(&self) -> BTreeMap<ObjectKey, Arc<PoolObject>> {
        let listed = self.mirrors.iter().rev().flat_map(Mirror::all);
        let mut pools: BTreeMap<_, _> = listed.collect();
        pools.retain(|_, pool| pool.lifecycle == Lifecycle::Live);
        pools
    }

    /// The pool of this name, unless it is being deleted.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<PoolObject>> {
        let mut mirrors = self.mirrors.iter();
        mirrors.find_map(|mirror| mirror.get(key)).filter(|pool| pool.lifecycle == Lifecycle::Live)
    }

    /// The pools of a namespace that are not being deleted, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<PoolObject>> {
        let mirrors = self.mirrors.iter().rev();
        let listed = mirrors.flat_map(|mirror| mirror.in_namespace(namespace));
        let pools: BTreeMap<_, _> = listed.collect();
        let pools = pools.into_values();
        pools.filter(|pool| pool.lifecycle == Lifecycle::Live).collect()
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
