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
    /// What it reads.
    #[serde(default)]
    pub triggers: Vec<Trigger>,
    /// The rest.
    pub advanced: Option<Advanced>,
}

/// Names the target.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectTarget {
    /// Its group and version.
    pub api_version: Option<String>,
    /// Its kind.
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
}

/// One metric.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Where it comes from, like `prometheus`.
    #[serde(rename = "type")]
    pub kind: String,
    /// How it is asked for.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// `AverageValue`, which it is where it says nothing, or `Value`.
    pub metric_type: Option<String>,
}

/// What shapes the scaling, and is handed on to the HorizontalPodAutoscaler that KEDA makes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Advanced {
    /// Its configuration.
    pub horizontal_pod_autoscaler_config: Option<HpaConfig>,
    /// A formula over the triggers.
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

/// Configuration of the HorizontalPodAutoscaler.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HpaConfig {
    /// How fast it scales, and what it ignores.
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// What KEDA says of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectStatus {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<KedaCondition>,
    /// The metrics of its triggers, each with the position of its trigger: `s0-` of the first one.
    #[serde(default)]
    pub external_metric_names: Vec<String>,
}

/// One condition, which has no times.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KedaCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word why.
    #[serde(default)]
    pub reason: String,
    /// Why, in words.
    #[serde(default)]
    pub message: String,
}
