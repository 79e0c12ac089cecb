//! `StatefulSet`, a scale target; also what stands between a LeaderWorkerSet and its leaders.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;

use super::{
    Interner, Projected, controller, lifecycle, name, namespace_of, pod_template, shared_key, uid,
};
use crate::cluster::mirror::ObjectKey;
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::object::TargetObject;
use crate::policy::pod_template::ReplicaPods;
use crate::policy::units::Replicas;

impl Projected for StatefulSet {
    type View = TargetObject;

    fn project(self, texts: &mut Interner) -> TargetObject {
        let namespace = namespace_of(&self.metadata, texts);
        let status = self.status.unwrap_or_default();
        let spec = self.spec.unwrap_or_default();
        let shape = ReplicaPods::pod(pod_template::project(&spec.template, texts));
        TargetObject {
            key: TargetKey::new(namespace, TargetKind::StatefulSet, name(&self.metadata)),
            uid: uid(&self.metadata),
            lifecycle: lifecycle(&self.metadata),
            generation: self.metadata.generation.unwrap_or_default(),
            observed_generation: status.observed_generation.unwrap_or_default(),
            spec_replicas: spec.replicas.map(Replicas::from_count),
            status_replicas: Replicas::from_count(status.replicas),
            // An update replaces one pod after the other and never has one too many.
            outdated_replicas: Replicas::ZERO,
            ready_replicas: status
                .ready_replicas
                .map(Replicas::from_count)
                .unwrap_or_default(),
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
