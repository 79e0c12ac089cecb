//! The two forms of a variant, each made from the other.

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Map, Value, json};

use crate::api::scaled_object::ScaledObject;
use crate::api::{
    ACCELERATOR_LABEL, COST_ANNOTATION, COUNT_ANNOTATION, INSTANCE_LABEL, MANAGED_ANNOTATION,
    MODEL_ANNOTATION,
};
use crate::cluster::project::scaler::{EXTERNAL_VARIANT, ScalerObject};
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::project::{Interner, Projected};
use crate::policy::actuation::{Input, ScalerKind};
use crate::policy::object::SpecReading;
use crate::policy::variant;

/// A scaler as it is stored.
pub(in crate::cli) type StoredScaler<'a> = (ScalerKind, &'a Value);

/// The variant that the annotations of a scaler declare, in the form of a `VariantAutoscaling` with its status.
pub(in crate::cli) fn declared((kind, object): StoredScaler<'_>) -> Option<Value> {
    let record = projected((kind, object))?.declared?;
    Some(variant_form(&record, object))
}

/// The `VariantAutoscaling` that an annotated scaler stands for; `None` where it declares no variant.
///
/// # Errors
/// What is wrong with the annotations.
pub(super) fn as_object((kind, object): StoredScaler<'_>) -> Option<Result<Value, Arc<str>>> {
    let record = projected((kind, object))?.declared?;
    Some(variant::read(&record.object).map(|_| {
        let mut form = variant_form(&record, object);
        if let Some(fields) = form.as_object_mut() {
            fields.remove("status");
        }
        put(&mut form, &["apiVersion"], json!("llmd.ai/v1alpha1"));
        put(&mut form, &["kind"], json!("VariantAutoscaling"));
        form
    }))
}

/// The scaler that follows a `VariantAutoscaling`, with annotations that stand for it.
///
/// # Errors
/// Why there is none; with the remedy.
pub(super) fn as_annotations(
    object: &Value,
    scalers: &[StoredScaler<'_>],
) -> Result<Value, String> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let namespace = text("/metadata/namespace").unwrap_or_default();
    let name = text("/metadata/name").unwrap_or_default();
    let following: Vec<_> = scalers
        .iter()
        .filter(|scaler| follows(**scaler, object, name))
        .collect();
    let [(kind, scaler)] = following.as_slice() else {
        let count = following.len();
        return Err(format!(
            "VariantAutoscaling {namespace}/{name}: {count} HPAs and ScaledObjects with its target read its count; \
             let exactly one do so"
        ));
    };
    let mut annotated = bare(*kind, scaler);
    let new_name = scaler.pointer("/metadata/name").and_then(Value::as_str);
    let new_name = new_name.unwrap_or_default();
    let annotations = [
        (MANAGED_ANNOTATION, Some("true".to_owned())),
        (MODEL_ANNOTATION, text("/spec/modelID").map(str::to_owned)),
        (
            COST_ANNOTATION,
            text("/spec/variantCost").map(str::to_owned),
        ),
    ];
    for (name, value) in annotations {
        if let Some(value) = value {
            put(
                &mut annotated,
                &["metadata", "annotations", name],
                json!(value),
            );
        }
    }
    for label in [ACCELERATOR_LABEL, INSTANCE_LABEL] {
        let labels = object.pointer("/metadata/labels");
        if let Some(value) = labels.and_then(|labels| labels.get(label)) {
            put(
                &mut annotated,
                &["metadata", "labels", label],
                value.clone(),
            );
        }
    }
    let (min, max) = match kind {
        ScalerKind::HorizontalPodAutoscaler => ("minReplicas", "maxReplicas"),
        ScalerKind::ScaledObject => ("minReplicaCount", "maxReplicaCount"),
    };
    for (of_variant, field) in [("minReplicas", min), ("maxReplicas", max)] {
        if let Some(bound) = object.pointer(&format!("/spec/{of_variant}")) {
            put(&mut annotated, &["spec", field], bound.clone());
        }
    }
    if let Some(spec) = annotated.get_mut("spec") {
        rename(spec, name, new_name);
    }
    Ok(annotated)
}

/// Puts a value at a place, with the objects on the way to it.
fn put(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    if let Some(fields) = object.as_object_mut() {
        put(fields.entry(*first).or_insert(Value::Null), rest, value);
    }
}

fn projected((kind, object): StoredScaler<'_>) -> Option<ScalerObject> {
    let texts = &mut Interner::default();
    let object = object.clone();
    Some(match kind {
        ScalerKind::HorizontalPodAutoscaler => {
            let hpa: HorizontalPodAutoscaler = serde_json::from_value(object).ok()?;
            hpa.project(texts)
        }
        ScalerKind::ScaledObject => {
            let scaled: ScaledObject = serde_json::from_value(object).ok()?;
            scaled.project(texts)
        }
    })
}

fn follows(scaler: StoredScaler<'_>, variant: &Value, name: &str) -> bool {
    let reference = |object: &Value, field: &str| {
        let stated = object.pointer(&format!("/spec/scaleTargetRef/{field}"));
        let stated = stated.and_then(Value::as_str);
        let stated = stated.filter(|text| !text.is_empty());
        stated
            .unwrap_or(if field == "kind" { "Deployment" } else { "" })
            .to_owned()
    };
    let is_target = ["kind", "name"]
        .iter()
        .all(|field| reference(scaler.1, field) == reference(variant, field));
    let is_near = scaler.1.pointer("/metadata/namespace") == variant.pointer("/metadata/namespace");
    let Some(object) = projected(scaler).filter(|object| object.scaler.made_for.is_none()) else {
        return false;
    };
    let mut inputs = object.scaler.inputs.iter();
    is_target
        && is_near
        && inputs.any(|input| match input {
            Input::Published(published) => {
                published.variant.as_deref().is_none_or(|read| read == name)
            }
            Input::ExternalScaler { variant, .. } => {
                variant.as_deref().is_none_or(|read| read == name)
            }
            Input::Other => false,
        })
}

/// A scaler without what the API server added.
fn bare(kind: ScalerKind, scaler: &Value) -> Value {
    let metadata = |field: &str| scaler.pointer(&format!("/metadata/{field}")).cloned();
    let fields = ["namespace", "name", "labels", "annotations"];
    let metadata: Map<String, Value> = fields
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), metadata(field)?)))
        .collect();
    let mut bare = json!({
        "apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata, "spec": scaler.get("spec"),
    });
    if let Some(annotations) = bare
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        // The controller takes a count that it wrote itself alone.
        for name in [
            "kubectl.kubernetes.io/last-applied-configuration",
            COUNT_ANNOTATION,
        ] {
            annotations.remove(name);
        }
    }
    bare
}

/// Puts the name of the scaler where the name of the variant is read: the variant has the former from now on.
fn rename(spec: &mut Value, from: &str, to: &str) {
    match spec {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_name = ["variant_name", EXTERNAL_VARIANT].contains(&&**name);
                match value {
                    Value::String(text) if is_name && text == from => to.clone_into(text),
                    Value::String(text) if name == "query" => {
                        for quote in ["\"", "'"] {
                            let old = format!("variant_name={quote}{from}{quote}");
                            *text = text.replace(&old, &format!("variant_name={quote}{to}{quote}"));
                        }
                    }
                    value => rename(value, from, to),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, from, to)),
        _ => {}
    }
}

fn variant_form(record: &VariantRecord, object: &Value) -> Value {
    let kind = record.kind();
    let key = &record.object.key;
    let mut metadata = json!({ "namespace": key.namespace, "name": key.name });
    if let Some(labels) = object.pointer("/metadata/labels") {
        put(&mut metadata, &["labels"], labels.clone());
    }
    let reference = object.pointer("/spec/scaleTargetRef");
    let stored = record.object.stored.desired;
    let (spec, conditions) = match &record.object.spec {
        SpecReading::Read(spec) => {
            let mut form = json!({
                "modelID": spec.model_id, "scaleTargetRef": reference,
                "variantCost": spec.cost,
                "minReplicas": spec.min, "maxReplicas": spec.max,
            });
            if let Some(fields) = form.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            let words = match stored {
                Some(_) => format!("the events of {kind} {key} have the reason"),
                None => format!("no decision is stored yet; see the events of {kind} {key}"),
            };
            let decided =
                json!({"type": "OptimizationReady", "status": "Unknown", "message": words});
            (form, json!([decided]))
        }
        SpecReading::Malformed { why } => {
            let failing = |kind: &str| json!({"type": kind, "status": "False", "message": why});
            let form = json!({ "scaleTargetRef": reference });
            (form, json!([failing("TargetResolved"), failing("Ready")]))
        }
    };
    json!({
        "kind": kind, "metadata": metadata, "spec": spec,
        "status": {
            "desiredOptimizedAlloc": { "numReplicas": stored.map(|count| count.0) },
            "conditions": conditions,
        },
    })
}
