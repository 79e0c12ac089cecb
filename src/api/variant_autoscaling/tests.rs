use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Actuation, OptimizedAlloc, ScaleTargetRef, VariantAutoscaling, VariantAutoscalingSpec,
    VariantAutoscalingStatus, definition,
};

const VECTORS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/crd.yaml"));

#[derive(Deserialize)]
struct Vectors {
    accepted: Vec<Accepted>,
}

#[derive(Deserialize)]
struct Accepted {
    id: String,
    spec: Value,
    stored: Value,
}

fn schema() -> JSONSchemaProps {
    let mut versions = definition().spec.versions;
    assert_eq!(versions.len(), 1);
    versions.remove(0).schema.unwrap().open_api_v3_schema.unwrap()
}

fn at(path: &str) -> JSONSchemaProps {
    path.split('.').fold(schema(), |schema, name| {
        let properties = schema.properties.unwrap_or_default();
        properties.get(name).unwrap_or_else(|| panic!("no {name} in {path}")).clone()
    })
}

#[test]
fn the_definition_names_what_users_type() {
    let spec = definition().spec;
    let names = spec.names;
    assert_eq!((&*spec.group, &*spec.scope), ("llmd.ai", "Namespaced"));
    assert_eq!((&*names.kind, &*names.plural), ("VariantAutoscaling", "variantautoscalings"));
    assert_eq!(names.singular.as_deref(), Some("variantautoscaling"));
    assert_eq!(names.list_kind.as_deref(), Some("VariantAutoscalingList"));
    assert_eq!(names.short_names.unwrap(), ["va"]);
    let version = &spec.versions[0];
    assert_eq!((&*version.name, version.served, version.storage), ("v1alpha1", true, true));
    let subresources = version.subresources.as_ref().unwrap();
    assert!(subresources.status.is_some() && subresources.scale.is_none());
}

#[test]
fn columns_come_in_the_documented_order() {
    let columns = definition().spec.versions[0].additional_printer_columns.clone().unwrap();
    let columns: Vec<_> =
        columns.iter().map(|column| (&*column.name, &*column.type_, &*column.json_path)).collect();
    assert_eq!(
        columns,
        wva_base::cases! {
            ("Target", "string", ".spec.scaleTargetRef.name"),
            ("Model", "string", ".spec.modelID"),
            ("Min", "integer", ".spec.minReplicas"),
            ("Max", "integer", ".spec.maxReplicas"),
            ("Optimized", "string", ".status.desiredOptimizedAlloc.numReplicas"),
            ("MetricsReady", "string", ".status.conditions[?(@.type=='MetricsAvailable')].status"),
            ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
            ("Followed", "string", ".status.conditions[?(@.type=='ActuationReady')].status"),
            ("Reason", "string", ".status.conditions[?(@.status!='True')].reason"),
            ("Age", "date", ".metadata.creationTimestamp"),
        }
    );
}

#[test]
fn the_schema_demands_and_defaults_what_is_documented() {
    let required = |path: &str| at(path).required.unwrap_or_default();
    assert_eq!(required("spec"), ["modelID", "scaleTargetRef"]);
    assert_eq!(required("spec.scaleTargetRef"), ["name"]);
    assert_eq!(required("status.desiredOptimizedAlloc"), [""; 0]);
    let default = |path: &str| at(path).default.map(|value| value.0);
    assert_eq!(default("spec.scaleTargetRef.kind"), Some(json!("Deployment")));
    assert_eq!(default("spec.variantCost"), Some(json!("10.0")));
    assert_eq!(default("spec.minReplicas"), None);
    assert_eq!(default("spec.maxReplicas"), None);
    assert_eq!(at("spec.variantCost").pattern.as_deref(), Some(r"^\d+(\.\d+)?$"));
    assert_eq!(at("spec.modelID").min_length, Some(1));
    assert_eq!(at("spec.scaleTargetRef.name").min_length, Some(1));
    for (path, minimum) in [
        ("spec.minReplicas", 0.0),
        ("spec.maxReplicas", 1.0),
        ("status.desiredOptimizedAlloc.numReplicas", 0.0),
    ] {
        let schema = at(path);
        assert_eq!(
            (schema.format.as_deref(), schema.minimum),
            (Some("int32"), Some(minimum)),
            "{path}"
        );
    }
    let conditions = at("status.conditions");
    assert_eq!(conditions.x_kubernetes_list_type.as_deref(), Some("map"));
    assert_eq!(conditions.x_kubernetes_list_map_keys.unwrap(), ["type"]);
}

/// The schema is not made from the types: a field that it leaves out would be dropped by the API server.
#[test]
fn every_field_is_declared() {
    fn undeclared(schema: &JSONSchemaProps, value: &Value, path: &str, found: &mut Vec<String>) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            match schema.properties.as_ref().and_then(|known| known.get(name)) {
                Some(schema) => undeclared(schema, value, &path, found),
                None => found.push(path),
            }
        }
    }
    let time = json!("2026-11-29T23:00:00Z");
    let spec = VariantAutoscalingSpec {
        scale_target_ref: ScaleTargetRef {
            api_version: Some("apps/v1".to_owned()),
            kind: "Deployment".to_owned(),
            name: "d".to_owned(),
        },
        model_id: "m".to_owned(),
        variant_cost: "1".to_owned(),
        min_replicas: Some(1),
        max_replicas: Some(2),
    };
    let status = VariantAutoscalingStatus {
        observed_generation: Some(1),
        desired_optimized_alloc: Some(OptimizedAlloc {
            num_replicas: Some(1),
            accelerator: Some("a".to_owned()),
            last_run_time: serde_json::from_value(time).unwrap(),
            cycle_id: Some(1),
        }),
        actuation: Some(Actuation { applied: true }),
        conditions: Vec::new(),
    };
    let mut found = Vec::new();
    let object = json!({ "spec": spec, "status": status });
    undeclared(&schema(), &object, "", &mut found);
    assert_eq!(found, [""; 0]);
}

#[test]
fn bounds_are_compared_only_where_both_are_given() {
    let rules = at("spec").x_kubernetes_validations.unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(
        rules[0].rule,
        "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas"
    );
    assert_eq!(
        rules[0].message.as_deref(),
        Some("minReplicas must be less than or equal to maxReplicas")
    );
}

#[test]
fn only_the_minimum_may_be_null() {
    fn nullable(schema: &JSONSchemaProps, path: &str, found: &mut Vec<String>) {
        if schema.nullable.is_some() {
            found.push(path.to_owned());
        }
        for (name, property) in schema.properties.iter().flatten() {
            nullable(property, &format!("{path}.{name}"), found);
        }
    }
    let mut found = Vec::new();
    nullable(&schema(), "", &mut found);
    assert_eq!(found, [".spec.minReplicas"]);
}

/// The API server fills in the same defaults; a test on a real one compares with the same table.
#[test]
fn objects_are_read_with_the_defaults_of_the_schema() {
    let vectors: Vectors = serde_yaml::from_str(VECTORS).unwrap();
    assert!(vectors.accepted.len() > 10);
    for vector in vectors.accepted {
        let object = json!({"metadata": {"name": "v"}, "spec": vector.spec});
        let object: VariantAutoscaling =
            serde_json::from_value(object).unwrap_or_else(|error| panic!("{}: {error}", vector.id));
        let read = json!({
            "kind": object.spec.scale_target_ref.kind,
            "variantCost": object.spec.variant_cost,
            "minReplicas": object.spec.min_replicas,
            "maxReplicas": object.spec.max_replicas,
        });
        assert_eq!(read, vector.stored, "{}", vector.id);
    }
}

#[test]
fn what_is_absent_is_not_sent() {
    let object = json!({
        "metadata": {"name": "v"}, "spec": {"scaleTargetRef": {"name": "d"}, "modelID": "m"},
        "status": {"desiredOptimizedAlloc": {"numReplicas": 0}},
    });
    let object: VariantAutoscaling = serde_json::from_value(object).unwrap();
    assert_eq!(json!(object.status.unwrap()), json!({"desiredOptimizedAlloc": {"numReplicas": 0}}));
    assert_eq!(
        json!(object.spec),
        json!({
            "scaleTargetRef": {"kind": "Deployment", "name": "d"},
            "modelID": "m",
            "variantCost": "10.0",
        })
    );
}
