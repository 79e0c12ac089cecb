//! Judges a manifest by the definition of its kind, as an API server does: unknown fields, types, bounds, and the rules
//! that are few. Patterns other than that of a decimal number are left to the API server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// The rule of the bounds of a variant.
const BOUNDS: &str =
    "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas";
/// The pattern of `variantCost`.
const DECIMAL: &str = r"^\d+(\.\d+)?$";
/// The end of a fault about a field that is not there.
pub(super) const REQUIRED: &str = " is required";
/// Fields that the API server judges by itself.
const GENERAL: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What is wrong with an object, each with the path of its field. A status is no matter of manifests.
pub(super) fn faults(definition: &CustomResourceDefinition, object: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let versions = definition.spec.versions.iter();
    let mut schemas = versions.filter_map(|version| version.schema.as_ref());
    let Some(schema) = schemas.find_map(|schema| schema.open_api_v3_schema.as_ref()) else {
        return faults;
    };
    let mut judged = object.clone();
    if let Value::Object(fields) = &mut judged {
        fields.retain(|name, _| name != "status" && !GENERAL.contains(&name.as_str()));
    }
    judge(schema, "", &judged, &mut faults);
    faults
}

fn judge(schema: &JSONSchemaProps, path: &str, value: &Value, faults: &mut Vec<String>) {
    // A field without a value is dropped where it may not be null.
    if value.is_null() && !path.is_empty() {
        return;
    }
    if schema.x_kubernetes_int_or_string != Some(true)
        && let Some(wanted) = schema.type_.as_deref().filter(|wanted| !is(value, wanted))
    {
        return faults.push(format!("{path} is {value}, and has to be of type {wanted}"));
    }
    match value {
        Value::Object(fields) => judge_fields(schema, path, fields, faults),
        Value::Array(items) => {
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                for (place, item) in items.iter().enumerate() {
                    judge(schema, &format!("{path}[{place}]"), item, faults);
                }
            }
        }
        Value::Number(number) => judge_number(schema, path, number.as_f64(), faults),
        Value::String(text) => judge_text(schema, path, text, faults),
        Value::Null | Value::Bool(_) => {}
    }
    let choices = schema.enum_.as_deref().unwrap_or_default();
    if !choices.is_empty() && choices.iter().all(|choice| choice.0 != *value) {
        let choices: Vec<String> = choices.iter().map(|choice| choice.0.to_string()).collect();
        faults.push(format!("{path} is {value}, and has to be one of {}", choices.join(", ")));
    }
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        if rule.rule == BOUNDS
            && let Some((low, high)) = crossed_bounds(value)
        {
            let message = rule.message.as_deref().unwrap_or_default();
            faults.push(format!("{path}: {message}; {low} is above {high}"));
        }
    }
}

fn judge_fields(
    schema: &JSONSchemaProps,
    path: &str,
    fields: &serde_json::Map<String, Value>,
    faults: &mut Vec<String>,
) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    for name in schema.required.iter().flatten() {
        if fields.get(name).is_none_or(Value::is_null) {
            faults.push(format!("{}{REQUIRED}", below(name)));
        }
    }
    for (name, value) in fields {
        let known = schema.properties.as_ref().and_then(|known| known.get(name));
        match (known, &schema.additional_properties) {
            (Some(schema), _) => judge(schema, &below(name), value, faults),
            (None, Some(JSONSchemaPropsOrBool::Schema(schema))) => {
                judge(schema, &below(name), value, faults);
            }
            (None, Some(JSONSchemaPropsOrBool::Bool(true))) => {}
            _ if schema.x_kubernetes_preserve_unknown_fields == Some(true) => {}
            // A reference to a kind of Kubernetes itself lists no fields.
            _ if schema.properties.is_none() => {}
            _ => faults.push(format!("{} is no field of this kind", below(name))),
        }
    }
}

fn judge_number(
    schema: &JSONSchemaProps,
    path: &str,
    number: Option<f64>,
    faults: &mut Vec<String>,
) {
    let Some(number) = number else { return };
    if let Some(least) = schema.minimum.filter(|least| number < *least) {
        faults.push(format!("{path} is {number}, and has to be at least {least}"));
    }
    // Before Kubernetes 1.36 an API server stores a number that the format does not hold, and it is never read.
    let held = (schema.format.as_deref() == Some("int32")).then_some(f64::from(i32::MAX));
    if let Some(most) = schema.maximum.or(held).filter(|most| number > *most) {
        faults.push(format!("{path} is {number}, and has to be at most {most}"));
    }
}

fn judge_text(schema: &JSONSchemaProps, path: &str, text: &str, faults: &mut Vec<String>) {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if schema.min_length.is_some_and(|least| length < least) {
        faults.push(format!("{path} is {text:?}, which is too short"));
    }
    if schema.max_length.is_some_and(|most| length > most) {
        faults.push(format!("{path} is {text:?}, which is too long"));
    }
    if schema.pattern.as_deref() == Some(DECIMAL) && !is_decimal(text) {
        faults.push(format!("{path} is {text:?}, and has to be a decimal number like \"10.0\""));
    }
}

/// Whether a value has a type of the definition's.
fn is(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(text),
    }
}

/// A minimum with the maximum that it is above.
fn crossed_bounds(value: &Value) -> Option<(i64, i64)> {
    let bound = |name: &str| value.get(name).and_then(Value::as_i64);
    let bounds = bound("minReplicas").zip(bound("maxReplicas"));
    bounds.filter(|(low, high)| low > high)
}
