//! `VariantAutoscaling`, `llmd.ai/v1alpha1`: the object that users write, one per variant.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// Kind that a `scaleTargetRef` means when it names none.
pub const DEFAULT_TARGET_KIND: &str = "Deployment";

/// Cost of one replica of a variant that states none.
pub const DEFAULT_VARIANT_COST: &str = "10.0";

/// The schema, with the columns of `kubectl get`. Users read its descriptions, not those of the fields below.
const DEFINITION: &str = include_str!("../../config/crd/bases/llmd.ai_variantautoscalings.yaml");

/// Desired autoscaling of one variant.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "llmd.ai",
    version = "v1alpha1",
    kind = "VariantAutoscaling",
    plural = "variantautoscalings",
    namespaced,
    status = "VariantAutoscalingStatus",
    derive = "PartialEq",
    doc = "One way to serve a model: a scale target, its cost and its bounds.",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct VariantAutoscalingSpec {
    /// The object, in the same namespace, whose replicas are decided.
    pub scale_target_ref: ScaleTargetRef,

    /// The model that the target serves: the value of the `model_name` label of its metrics.
    #[serde(rename = "modelID")]
    pub model_id: String,

    /// Cost of one replica, in a unit of your own. Of several variants of one model, the cheapest
    /// grows first and the most expensive shrinks first.
    #[serde(default = "default_variant_cost")]
    pub variant_cost: String,

    /// The fewest replicas ever asked for. Absent: 0 where scale to zero is enabled for the model,
    /// else 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,

    /// The most replicas ever published. Absent: 2147483647, the most that a scale subresource holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
}

/// Names a scale target in the namespace of the `VariantAutoscaling`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTargetRef {
    /// Version of the target's API. Absent: that of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the target.
    #[serde(default = "default_target_kind")]
    pub kind: String,

    /// Name of the target.
    pub name: String,
}

/// What the controller decided and found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VariantAutoscalingStatus {
    /// Generation of the specification that this status was decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The allocation decided last; empty while there is nothing to scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_optimized_alloc: Option<OptimizedAlloc>,

    /// Whether the decision reached the scale target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actuation: Option<Actuation>,

    /// What was found, one entry for each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A decided allocation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OptimizedAlloc {
    /// Replicas asked for. Absent: never decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_replicas: Option<i32>,

    /// Accelerator of one replica, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,

    /// When the allocation or a condition last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_time: Option<Time>,

    /// Number of the planning cycle that decided it, as in the controller's log.
    #[serde(default, rename = "cycleID", skip_serializing_if = "Option::is_none")]
    pub cycle_id: Option<i64>,
}

/// Whether the decision reached the scale target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Actuation {
    /// Whether the target has the replicas that were asked for.
    pub applied: bool,
}

fn default_target_kind() -> String {
    DEFAULT_TARGET_KIND.to_owned()
}

fn default_variant_cost() -> String {
    DEFAULT_VARIANT_COST.to_owned()
}

/// The definition to install in a cluster.
pub fn definition() -> CustomResourceDefinition {
    serde_yaml::from_str(DEFINITION).unwrap_or_default()
}

#[cfg(test)]
mod tests;
