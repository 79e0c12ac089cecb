//! The few fields of a `LeaderWorkerSet` that say how many groups there are and what each holds.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// Groups of pods, each of which is one replica.
#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize)]
#[kube(
    group = "leaderworkerset.x-k8s.io",
    version = "v1",
    kind = "LeaderWorkerSet",
    plural = "leaderworkersets",
    namespaced,
    schema = "disabled",
    status = "LeaderWorkerSetStatus"
)]
#[serde(default, rename_all = "camelCase")]
pub struct LeaderWorkerSetSpec {
    /// Groups; one where it says nothing.
    pub replicas: Option<i32>,
    pub leader_worker_template: LeaderWorkerTemplate,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LeaderWorkerTemplate {
    /// Pods of a group, the leader included; one where it says nothing.
    pub size: Option<i32>,
    /// The leader; like the workers where it says nothing.
    pub leader_template: Option<PodTemplateSpec>,
    pub worker_template: PodTemplateSpec,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LeaderWorkerSetStatus {
    pub replicas: Option<i32>,
    pub ready_replicas: Option<i32>,
    /// Groups of the newest template.
    pub updated_replicas: Option<i32>,
    /// Generation that the status belongs to; older controllers do not say.
    pub observed_generation: Option<i64>,
}
