use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::Resource as _;
use serde_json::{Value, json};

use super::{PodAutoscaler, definition};
use crate::policy::pod_autoscaler::PodAutoscalerObject;

fn version() -> CustomResourceDefinitionVersion {
    let mut versions = definition().spec.versions;
    assert_eq!(versions.len(), 1);
    versions.remove(0)
}

fn schema() -> JSONSchemaProps {
    version().schema.unwrap().open_api_v3_schema.unwrap()
}

/// Every field below a schema by its path; `[]` stands for an entry of a list.
fn fields(parent: &str, schema: &JSONSchemaProps, found: &mut BTreeMap<String, JSONSchemaProps>) {
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{parent}.{name}");
        fields(&path, field, found);
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &field.items {
            fields(&format!("{path}[]"), items, found);
            found.insert(format!("{path}[]"), (**items).clone());
        }
        found.insert(path, field.clone());
    }
}

fn all_fields() -> BTreeMap<String, JSONSchemaProps> {
    let mut found = BTreeMap::new();
    fields("", &schema(), &mut found);
    found
}

#[test]
fn the_definition_names_what_users_type() {
    let definition = definition();
    assert_eq!(definition.metadata.name.as_deref(), Some("podautoscalers.autoscaling.aibrix.ai"));
    let names = json!(definition.spec.names);
    assert_eq!(
        names,
        json!({
            "kind": "PodAutoscaler",
            "listKind": "PodAutoscalerList",
            "plural": "podautoscalers",
            "singular": "podautoscaler",
        })
    );
    let spec = definition.spec;
    assert_eq!((&*spec.group, &*spec.scope), ("autoscaling.aibrix.ai", "Namespaced"));
    let version = version();
    assert_eq!((&*version.name, version.served, version.storage), ("v1alpha1", true, true));
    assert_eq!(json!(version.subresources), json!({"status": {}}));
}

#[test]
fn columns_come_in_the_documented_order() {
    assert_eq!(
        json!(version().additional_printer_columns),
        json!([
            {"name": "MINPODS", "type": "integer", "jsonPath": ".spec.minReplicas"},
            {"name": "MAXPODS", "type": "integer", "jsonPath": ".spec.maxReplicas"},
            {"name": "REPLICAS", "type": "integer", "jsonPath": ".status.actualScale"},
            {"name": "STRATEGY", "type": "string", "jsonPath": ".spec.scalingStrategy"},
            {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ])
    );
}

#[test]
fn required_fields_are_those_of_the_original() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, field) in all_fields() {
        if let Some(required) = field.required {
            found.insert(path, required);
        }
    }
    let expected: BTreeMap<String, Vec<String>> = serde_json::from_value(json!({
        ".spec": ["maxReplicas", "scaleTargetRef", "scalingStrategy"],
        ".spec.schedules[]": ["endTime", "name", "startTime"],
        ".spec.metricsSources[]": ["metricSourceType", "targetMetric", "targetValue"],
        ".status.conditions[]": ["lastTransitionTime", "message", "reason", "status", "type"],
        ".status.scalingHistory[]": ["newScale", "previousScale", "reason", "success", "timestamp"],
        ".status.scheduledBounds": ["effectiveMaxReplicas", "effectiveMinReplicas"],
    }))
    .unwrap();
    assert_eq!(found, expected);
}

#[test]
fn limits_are_those_of_the_original() {
    let limits = |field: &JSONSchemaProps| {
        let mut limits = serde_json::Map::new();
        let all = json!({
            "enum": field.enum_, "pattern": field.pattern, "nullable": field.nullable,
            "minimum": field.minimum, "maximum": field.maximum, "minLength": field.min_length,
            "minItems": field.min_items, "maxItems": field.max_items,
            "mapType": field.x_kubernetes_map_type,
        });
        for (name, value) in all.as_object().unwrap() {
            if !value.is_null() {
                limits.insert(name.clone(), value.clone());
            }
        }
        Value::Object(limits)
    };
    let clock = "^([01][0-9]|2[0-3]):[0-5][0-9]$";
    let window = json!({"nullable": true, "minimum": 1.0, "maximum": 3600.0});
    let expected = json!({
        ".spec.scaleTargetRef": {"mapType": "atomic"},
        ".spec.minReplicas": {"nullable": true},
        ".spec.schedules": {"minItems": 1},
        ".spec.schedules[].name": {"minLength": 1, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        ".spec.schedules[].daysOfWeek": {"minItems": 1},
        ".spec.schedules[].startTime": {"pattern": clock},
        ".spec.schedules[].endTime": {"pattern": clock},
        ".spec.schedules[].minReplicas": {"nullable": true},
        ".spec.schedules[].maxReplicas": {"nullable": true},
        ".spec.metricsSources": {"minItems": 1},
        ".spec.metricsSources[].metricSourceType":
            {"enum": ["pod", "resource", "custom", "external", "domain"]},
        ".spec.metricsSources[].protocolType": {"enum": ["http", "https"]},
        ".spec.observeWindowSeconds": window,
        ".spec.panicWindowSeconds": window,
        ".spec.predictive.mode": {"enum": ["Preview", "Auto"]},
        ".spec.predictive.horizonSeconds": window,
        ".spec.scalingStrategy": {"enum": ["HPA", "KPA", "APA"]},
        ".status.lastScaleTime": {"nullable": true},
        ".status.scalingHistory": {"maxItems": 5},
        ".status.scheduledBounds": {"nullable": true},
        ".status.predictive.mode": {"enum": ["Preview", "Auto"]},
        ".status.predictive.lastUpdated": {"nullable": true},
    });
    let found: serde_json::Map<String, Value> = all_fields()
        .iter()
        .filter(|(path, _)| !path.starts_with(".status.conditions"))
        .map(|(path, field)| (path.clone(), limits(field)))
        .filter(|(_, limits)| *limits != json!({}))
        .collect();
    assert_eq!(Value::Object(found), expected);
}

#[test]
fn nothing_has_a_default_and_every_field_has_a_type() {
    for (path, field) in all_fields() {
        assert_eq!(field.default, None, "{path}");
        assert!(field.type_.is_some(), "{path}");
        let is_number = field.type_.as_deref() == Some("integer");
        assert_eq!(
            is_number,
            field.minimum.is_some() || field.format.as_deref() == Some("int32"),
            "{path}"
        );
    }
}

/// An example of each field of a schema.
fn example(field: &JSONSchemaProps) -> Value {
    if let Some(first) = field.enum_.iter().flatten().next() {
        return first.0.clone();
    }
    match field.type_.as_deref().unwrap() {
        "object" => {
            let fields = field.properties.iter().flatten();
            fields.map(|(name, field)| (name.clone(), example(field))).collect()
        }
        "array" => match &field.items {
            Some(JSONSchemaPropsOrArray::Schema(items)) => json!([example(items)]),
            other => panic!("{other:?}"),
        },
        "integer" => json!(60),
        "boolean" => json!(true),
        _ => json!("text"),
    }
}

#[test]
fn every_field_of_the_definition_is_read() {
    let spec = example(schema().properties.unwrap().get("spec").unwrap());
    assert_eq!(spec["schedules"][0]["daysOfWeek"], json!(["text"]));
    let manifest = json!({"metadata": {"namespace": "prod", "name": "chat"}, "spec": spec});
    let object: PodAutoscalerObject = serde_json::from_value(manifest).unwrap();
    assert_eq!(json!(object.spec), spec, "a field is dropped");
}

#[test]
fn a_stored_object_is_read_and_written_back_whatever_its_spec_is() {
    for spec in [json!({"maxReplicas": "many"}), json!(7), json!({})] {
        let stored = json!({
            "apiVersion": "autoscaling.aibrix.ai/v1alpha1",
            "kind": "PodAutoscaler",
            "metadata": {"name": "chat", "namespace": "prod"},
            "spec": spec,
        });
        let object: PodAutoscaler = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(object.meta().name.as_deref(), Some("chat"));
        assert_eq!(json!(object), stored);
    }
    let bare: PodAutoscaler = serde_json::from_value(json!({})).unwrap();
    assert_eq!((bare.spec, bare.status), (Value::Null, None));
    assert_eq!(
        PodAutoscaler::url_path(&(), Some("prod")),
        "/apis/autoscaling.aibrix.ai/v1alpha1/namespaces/prod/podautoscalers"
    );
}
