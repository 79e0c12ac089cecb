//! The few fields of KEDA's `ScaledObject` that say whether it follows us.

use std::collections::BTreeMap;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What is scaled, between which counts, and by which triggers.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize)]
#[kube(
    group = "keda.sh",
    version = "v1alpha1",
    kind = "ScaledObject",
    plural = "scaledobjects",
    namespaced,
    schema = "disabled",
    status = "ScaledObjectStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpec {
    /// The target; its kind is a Deployment where it says none.
    pub scale_target_ref: ScaledObjectTarget,
    /// Replicas without demand; beats the minimum.
    pub idle_replica_count: Option<i32>,
    /// Fewest replicas; 0 where it says nothing.
    pub min_replica_count: Option<i32>,
    /// Most replicas; 100 where it says nothing.
    pub max_replica_count: Option<i32>,
    #[serde(default)]
    pub triggers: Vec<Trigger>,
    pub advanced: Option<Advanced>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectTarget {
    pub api_version: Option<String>,
    pub kind: Option<String>,
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Where it comes from, like `prometheus`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// `AverageValue`, which it is where it says nothing, or `Value`.
    pub metric_type: Option<String>,
}

/// What shapes the scaling, and is handed on to the HorizontalPodAutoscaler that KEDA makes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Advanced {
    pub horizontal_pod_autoscaler_config: Option<HpaConfig>,
    pub scaling_modifiers: Option<ScalingModifiers>,
}

/// One number made of those of all triggers, which replaces their thresholds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalingModifiers {
    /// The formula, with names of triggers.
    pub formula: Option<String>,
    /// The threshold of the number.
    pub target: Option<String>,
    /// `AverageValue`, which it is where it says nothing, or `Value`.
    pub metric_type: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HpaConfig {
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectStatus {
    #[serde(default)]
    pub conditions: Vec<KedaCondition>,
    /// The metrics of its triggers, each with the position of its trigger: `s0-` of the first one.
    #[serde(default)]
    pub external_metric_names: Vec<String>,
}

/// One condition, which has no times.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KedaCondition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub message: String,
}
