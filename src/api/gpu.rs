//! The few fields of nodes and pods that say who offers and who holds GPUs. Nodes list their images,
//! and pods are many, so that the full types cost several times the time and memory.

use k8s_openapi::api::core::v1::{EnvVar, Node, NodeCondition, Pod, ResourceRequirements, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::pod::{SlimPodSpec, SlimPodStatus};

/// A node with what it offers.
#[derive(Debug, Clone, Default, Resource, Serialize, Deserialize)]
#[resource(inherit = Node)]
pub struct OfferingNode {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Whether pods may be placed on it.
    #[serde(default)]
    pub spec: OfferingNodeSpec,
    /// What it offers.
    #[serde(default)]
    pub status: OfferingNodeStatus,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferingNodeSpec {
    pub unschedulable: bool,
    /// What keeps pods off that do not tolerate it.
    pub taints: Vec<Taint>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferingNodeStatus {
    pub allocatable: BTreeMap<String, Quantity>,
    pub conditions: Vec<NodeCondition>,
}

/// A pod with what it holds.
#[derive(Debug, Clone, Default, Resource, Serialize, Deserialize)]
#[resource(inherit = Pod)]
pub struct HoldingPod {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Where it is, and what it requests.
    #[serde(default)]
    pub spec: SlimPodSpec,
    /// Whether it still holds it.
    #[serde(default)]
    pub status: SlimPodStatus,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HoldingContainer {
    pub resources: ResourceRequirements,
    pub image: Option<String>,
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub env: Vec<EnvVar>,
    /// `Always` for an init container that keeps running.
    pub restart_policy: Option<String>,
}
