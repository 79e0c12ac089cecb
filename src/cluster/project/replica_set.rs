//! `ReplicaSet`, by its metadata alone.

use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::core::PartialObjectMeta;

use super::{Interner, Projected, controller, name, namespace_of, shared_key, uid};
use crate::cluster::mirror::ObjectKey;
use crate::policy::object::ReplicaSetObject;

impl Projected for PartialObjectMeta<ReplicaSet> {
    type View = ReplicaSetObject;

    fn project(self, texts: &mut Interner) -> ReplicaSetObject {
        ReplicaSetObject {
            namespace: namespace_of(&self.metadata, texts),
            name: name(&self.metadata),
            uid: uid(&self.metadata),
            controller: controller(&self.metadata, texts),
        }
    }

    fn key(view: &ReplicaSetObject) -> ObjectKey {
        shared_key(&view.namespace, &view.name)
    }
}
