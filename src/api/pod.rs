//! The few fields of a `Pod` that we read. The full type costs several times the time and memory,
//! and a cluster has more pods than anything else.

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim, PodSchedulingGate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::{Deserialize, Serialize};

use super::gpu::HoldingContainer;

/// A pod with little of its specification.
#[derive(Debug, Clone, Default, Resource, Serialize, Deserialize)]
#[resource(inherit = Pod)]
pub struct SlimPod {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Where it is.
    #[serde(default)]
    pub spec: SlimPodSpec,
    /// Its state.
    #[serde(default)]
    pub status: SlimPodStatus,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SlimPodSpec {
    pub node_name: Option<String>,
    /// What keeps the scheduler off it.
    pub scheduling_gates: Vec<PodSchedulingGate>,
    pub containers: Vec<HoldingContainer>,
    /// Containers that run before, one by one, but for those that always run.
    pub init_containers: Vec<HoldingContainer>,
    pub resource_claims: Vec<PodResourceClaim>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SlimPodStatus {
    /// How far it has come: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    pub conditions: Vec<PodCondition>,
}

/// One judgement, without its words.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodCondition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    pub last_transition_time: Option<Time>,
}
