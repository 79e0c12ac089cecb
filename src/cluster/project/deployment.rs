//! `Deployment`, a scale target.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;

use super::{
    Interner, Projected, controller, lifecycle, name, namespace_of, pod_template, shared_key, uid,
};
use crate::cluster::mirror::ObjectKey;
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::object::TargetObject;
use crate::policy::pod_template::ReplicaPods;
use crate::policy::units::Replicas;

impl Projected for Deployment {
    type View = TargetObject;

    fn project(self, texts: &mut Interner) -> TargetObject {
        let namespace = namespace_of(&self.metadata, texts);
        let status = self.status.unwrap_or_default();
        let spec = self.spec.unwrap_or_default();
        let count = |count: Option<i32>| count.map(Replicas::from_count).unwrap_or_default();
        let shape = ReplicaPods::pod(pod_template::project(&spec.template, texts));
        TargetObject {
            key: TargetKey::new(namespace, TargetKind::Deployment, name(&self.metadata)),
            uid: uid(&self.metadata),
            lifecycle: lifecycle(&self.metadata),
            generation: self.metadata.generation.unwrap_or_default(),
            observed_generation: status.observed_generation.unwrap_or_default(),
            spec_replicas: spec.replicas.map(Replicas::from_count),
            status_replicas: count(status.replicas),
            outdated_replicas: count(status.replicas)
                .saturating_sub(count(status.updated_replicas)),
            ready_replicas: count(status.ready_replicas),
            placement: shape.placement().clone(),
            template: shape.replica(),
            pod_labels: Some(Arc::clone(shape.labels())),
            controller: controller(&self.metadata, texts),
        }
    }

    fn key(view: &TargetObject) -> ObjectKey {
        shared_key(&view.key.namespace, &view.key.name)
    }
}
