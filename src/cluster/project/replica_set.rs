//! `ReplicaSet`, by its metadata alone.

use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::core::PartialObjectMeta;

use super::{Interner, Projected, controller, namespace_of, uid};
use crate::policy::object::ReplicaSetObject;

impl Projected for PartialObjectMeta<ReplicaSet> {
    type View = ReplicaSetObject;

    fn project(self, texts: &mut Interner) -> ReplicaSetObject {
        ReplicaSetObject {
            namespace: namespace_of(&self.metadata, texts),
            uid: uid(&self.metadata),
            controller: controller(&self.metadata, texts),
        }
    }
}
