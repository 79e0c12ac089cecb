//! The scale targets that are watched: `Deployment`, `StatefulSet`, which also stands between a LeaderWorkerSet and its
//! leaders, and `LeaderWorkerSet`, whose replicas are groups of pods.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Interner, Projected, controller, lifecycle, name, namespace_of, pod_template, uid};
use crate::api::leader_worker_set::LeaderWorkerSet;
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::object::TargetObject;
use crate::policy::pod_template::ReplicaPods;
use crate::policy::units::Replicas;

/// What a kind states of its replicas.
struct StatedReplicas {
    observed_generation: Option<i64>,
    wanted: Option<i32>,
    existing: Option<i32>,
    updated: Option<i32>,
    ready: Option<i32>,
    shape: ReplicaPods,
}

impl StatedReplicas {
    fn target(self, kind: TargetKind, metadata: &ObjectMeta, texts: &mut Interner) -> TargetObject {
        let count = |count: Option<i32>| count.map(Replicas::from_count).unwrap_or_default();
        TargetObject {
            key: TargetKey::new(namespace_of(metadata, texts), kind, name(metadata)),
            uid: uid(metadata),
            lifecycle: lifecycle(metadata),
            generation: metadata.generation.unwrap_or_default(),
            observed_generation: self.observed_generation.unwrap_or_default(),
            spec_replicas: self.wanted.map(Replicas::from_count),
            status_replicas: count(self.existing),
            outdated_replicas: count(self.existing).saturating_sub(count(self.updated)),
            ready_replicas: count(self.ready),
            placement: self.shape.placement().clone(),
            template: self.shape.replica(),
            pod_labels: Some(Arc::clone(self.shape.labels())),
            controller: controller(metadata, texts),
        }
    }
}

impl Projected for Deployment {
    type View = TargetObject;

    fn project(self, texts: &mut Interner) -> TargetObject {
        let status = self.status.unwrap_or_default();
        let spec = self.spec.unwrap_or_default();
        let stated = StatedReplicas {
            observed_generation: status.observed_generation,
            wanted: spec.replicas,
            existing: status.replicas,
            updated: status.updated_replicas,
            ready: status.ready_replicas,
            shape: ReplicaPods::pod(pod_template::project(&spec.template, texts)),
        };
        stated.target(TargetKind::Deployment, &self.metadata, texts)
    }
}

impl Projected for StatefulSet {
    type View = TargetObject;

    fn project(self, texts: &mut Interner) -> TargetObject {
        let status = self.status.unwrap_or_default();
        let spec = self.spec.unwrap_or_default();
        let stated = StatedReplicas {
            observed_generation: status.observed_generation,
            wanted: spec.replicas,
            existing: Some(status.replicas),
            // An update replaces one pod after the other and never has one too many.
            updated: Some(status.replicas),
            ready: status.ready_replicas,
            shape: ReplicaPods::pod(pod_template::project(&spec.template, texts)),
        };
        stated.target(TargetKind::StatefulSet, &self.metadata, texts)
    }
}

impl Projected for LeaderWorkerSet {
    type View = TargetObject;

    fn project(self, texts: &mut Interner) -> TargetObject {
        let status = self.status.unwrap_or_default();
        let group = self.spec.leader_worker_template;
        let leader = group.leader_template.as_ref();
        let stated = StatedReplicas {
            // Older controllers state none.
            observed_generation: status.observed_generation.or(self.metadata.generation),
            wanted: self.spec.replicas,
            existing: status.replicas,
            updated: status.updated_replicas,
            ready: status.ready_replicas,
            shape: ReplicaPods {
                leader: leader.map(|leader| pod_template::project(leader, texts)),
                worker: pod_template::project(&group.worker_template, texts),
                size: group.size.map_or(Replicas::ONE, Replicas::from_count),
            },
        };
        stated.target(TargetKind::LeaderWorkerSet, &self.metadata, texts)
    }
}
