//! `LeaderWorkerSet`, a scale target whose replicas are groups of pods.

use std::sync::Arc;

use super::{
    Interner, Projected, controller, lifecycle, name, namespace_of, pod_template, shared_key, uid,
};
use crate::api::leader_worker_set::LeaderWorkerSet;
use crate::cluster::mirror::ObjectKey;
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::object::TargetObject;
use crate::policy::pod_template::ReplicaPods;
use crate::policy::units::Replicas;

impl Projected for LeaderWorkerSet {
    type View = TargetObject;

    fn project(self, texts: &mut Interner) -> TargetObject {
        let namespace = namespace_of(&self.metadata, texts);
        let status = self.status.unwrap_or_default();
        let group = self.spec.leader_worker_template;
        let count = |count: Option<i32>| count.map(Replicas::from_count).unwrap_or_default();
        let leader = group.leader_template.as_ref();
        let shape = ReplicaPods {
            leader: leader.map(|leader| pod_template::project(leader, texts)),
            worker: pod_template::project(&group.worker_template, texts),
            size: group.size.map_or(Replicas::ONE, Replicas::from_count),
        };
        let generation = self.metadata.generation.unwrap_or_default();
        TargetObject {
            key: TargetKey::new(namespace, TargetKind::LeaderWorkerSet, name(&self.metadata)),
            uid: uid(&self.metadata),
            lifecycle: lifecycle(&self.metadata),
            generation,
            observed_generation: status.observed_generation.unwrap_or(generation),
            spec_replicas: self.spec.replicas.map(Replicas::from_count),
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
