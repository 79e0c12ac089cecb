//! `VariantAutoscaling`, `llmd.ai/v1alpha1`: the object that users write, one per variant.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Kind that a `scaleTargetRef` means when it names none.
pub const DEFAULT_TARGET_KIND: &str = "Deployment";

/// Cost of one replica of a variant that states none.
pub const DEFAULT_VARIANT_COST: &str = "10.0";

/// Desired autoscaling of one variant.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "llmd.ai",
    version = "v1alpha1",
    kind = "VariantAutoscaling",
    plural = "variantautoscalings",
    singular = "variantautoscaling",
    shortname = "va",
    namespaced,
    status = "VariantAutoscalingStatus",
    derive = "PartialEq",
    doc = "One way to serve a model: a scale target, its cost and its bounds.",
    printcolumn = r#"{"name": "Target", "type": "string", "jsonPath": ".spec.scaleTargetRef.name"}"#,
    printcolumn = r#"{"name": "Model", "type": "string", "jsonPath": ".spec.modelID"}"#,
    printcolumn = r#"{"name": "Min", "type": "integer", "jsonPath": ".spec.minReplicas"}"#,
    printcolumn = r#"{"name": "Max", "type": "integer", "jsonPath": ".spec.maxReplicas"}"#,
    printcolumn = r#"{"name": "Optimized", "type": "string", "jsonPath": ".status.desiredOptimizedAlloc.numReplicas"}"#,
    printcolumn = r#"{"name": "MetricsReady", "type": "string", "jsonPath": ".status.conditions[?(@.type=='MetricsAvailable')].status"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Followed", "type": "string", "jsonPath": ".status.conditions[?(@.type=='ActuationReady')].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type=='ActuationReady')].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
    "message": "minReplicas must be less than or equal to maxReplicas",
}]))]
pub struct VariantAutoscalingSpec {
    /// The object, in the same namespace, whose replicas are decided.
    pub scale_target_ref: ScaleTargetRef,

    /// The model that the target serves: the value of the `model_name` label of its metrics.
    #[serde(rename = "modelID")]
    #[schemars(length(min = 1))]
    pub model_id: String,

    /// Cost of one replica, in a unit of your own. Of several variants of one model, the cheapest
    /// grows first and the most expensive shrinks first.
    #[serde(default = "default_variant_cost")]
    #[schemars(regex(pattern = r"^\d+(\.\d+)?$"))]
    pub variant_cost: String,

    /// The fewest replicas ever asked for. Absent: 0 where scale to zero is enabled for the model,
    /// else 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_replicas: Option<i32>,

    /// The most replicas ever published. Absent: 2147483647, the most that a scale subresource holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_replicas: Option<i32>,
}

/// Names a scale target in the namespace of the `VariantAutoscaling`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTargetRef {
    /// Version of the target's API. Absent: that of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the target.
    #[serde(default = "default_target_kind")]
    pub kind: String,

    /// Name of the target.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What the controller decided and found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// A decided allocation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OptimizedAlloc {
    /// Replicas asked for. Absent: never decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub num_replicas: Option<i32>,

    /// Accelerator of one replica, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,

    /// When the allocation or a condition last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_run_time: Option<Time>,

    /// Number of the planning cycle that decided it, as in the controller's log.
    #[serde(default, rename = "cycleID", skip_serializing_if = "Option::is_none")]
    pub cycle_id: Option<i64>,
}

/// Whether the decision reached the scale target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// The standard condition, with the limits that Kubernetes sets for it and short descriptions.
fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "The reason in words.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "Generation of the specification that was judged.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Why the status is what it is, in one word.",
                    "type": "string",
                    "maxLength": 1024,
                    "minLength": 1,
                    "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "What is judged.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
        },
    })
}

/// The definition to install in a cluster.
///
/// The derived schema calls every optional field nullable. Here only `minReplicas` is, as in the
/// original: for any other field the API server drops an explicit `null`, so that defaults apply.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = VariantAutoscaling::crd();
    definition.spec.names.list_kind = Some("VariantAutoscalingList".to_owned());
    for version in &mut definition.spec.versions {
        let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        else {
            continue;
        };
        schema.title = None;
        clear_nullable(schema);
        if let Some(minimum) =
            property(schema, "spec").and_then(|spec| property(spec, "minReplicas"))
        {
            minimum.nullable = Some(true);
        }
    }
    definition
}

fn property<'schema>(
    schema: &'schema mut JSONSchemaProps,
    name: &str,
) -> Option<&'schema mut JSONSchemaProps> {
    schema.properties.as_mut()?.get_mut(name)
}

fn clear_nullable(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for child in schema.properties.iter_mut().flatten() {
        clear_nullable(child.1);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        clear_nullable(items);
    }
}

#[cfg(test)]
mod tests;
