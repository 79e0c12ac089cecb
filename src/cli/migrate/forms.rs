//! The two forms of a variant, each made from the other.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::rename::rename;
use crate::api::{
    ACCELERATOR_LABEL, COST_ANNOTATION, COUNT_ANNOTATION, INSTANCE_LABEL, MANAGED_ANNOTATION,
    MODEL_ANNOTATION,
};
use crate::cli::status::{identity, target_place};
use crate::cluster::project::scaler::{MODEL_KEY, ScalerObject};
use crate::cluster::project::variant::VariantRecord;
use crate::doctor::checks::{named_variant, read_scaler};
use crate::doctor::object::text;
use crate::policy::object::SpecReading;
use crate::policy::scaler::{Input, ScalerKind};
use crate::policy::variant;

/// Labels that count on either form of a variant.
const OWN_LABELS: [&str; 2] = [ACCELERATOR_LABEL, INSTANCE_LABEL];

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
    Some(variant::read(&record.object).and_then(|spec| {
        if !spec.policy.is_empty() {
            return Err(Arc::from(format!(
                "{kind} {}: scalingPolicy, defaultOutputTokens and replicaStartSeconds have no place in a \
                 VariantAutoscaling; keep the annotations, or remove those first",
                record.object.key
            )));
        }
        let mut form = variant_form(&record, object);
        if let Some(fields) = form.as_object_mut() {
            fields.remove("status");
        }
        // By others a deployment tool would take the object for one of its own, and delete it.
        if let Some(metadata) = form.get_mut("metadata").and_then(Value::as_object_mut) {
            if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
                labels.retain(|name, _| OWN_LABELS.contains(&name.as_str()));
            }
            metadata.retain(|_, value| *value != json!({}));
        }
        put(&mut form, &["apiVersion"], json!("llmd.ai/v1alpha1"));
        put(&mut form, &["kind"], json!("VariantAutoscaling"));
        Ok(form)
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
    let stated = |path: &str| Some(object.pointer(path)?.as_str()?.to_owned());
    let (namespace, name) = identity(object);
    let following: Vec<_> =
        scalers.iter().filter(|scaler| follows(**scaler, object, name)).collect();
    let [(kind, scaler)] = following.as_slice() else {
        let count = following.len();
        return Err(format!(
            "VariantAutoscaling {namespace}/{name}: {count} HPAs and ScaledObjects with its target read its count; \
             let exactly one do so"
        ));
    };
    let mut annotated = bare(*kind, scaler);
    let (_, new_name) = identity(scaler);
    let annotations = [
        (MANAGED_ANNOTATION, Some("true".to_owned())),
        (MODEL_ANNOTATION, stated("/spec/modelID")),
        (COST_ANNOTATION, stated("/spec/variantCost")),
    ];
    for (name, value) in annotations {
        if let Some(value) = value {
            put(&mut annotated, &["metadata", "annotations", name], json!(value));
        }
    }
    for label in OWN_LABELS {
        let labels = object.pointer("/metadata/labels");
        if let Some(value) = labels.and_then(|labels| labels.get(label)) {
            put(&mut annotated, &["metadata", "labels", label], value.clone());
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
        without_idle(spec);
        if name != new_name {
            let why = |read: String| {
                format!(
                    "VariantAutoscaling {namespace}/{name}: {} {new_name} reads {read:?}, which cannot be changed to read \
                     the new name with certainty; let it state variant_name={name:?}",
                    kind.as_str()
                )
            };
            rename(spec, name, new_name).map_err(why)?;
        }
    }
    prove((*kind, &annotated), new_name)
        .and_then(|record| states_no_more(&record, object))
        .map_err(|why| format!("VariantAutoscaling {namespace}/{name}: {why}"))?;
    Ok(annotated)
}

/// Refuses a scaler that states what its `VariantAutoscaling` does not. To leave that out of what is printed might not
/// remove it from the object that is there.
fn states_no_more(record: &VariantRecord, object: &Value) -> Result<(), String> {
    let labels = [
        (ACCELERATOR_LABEL, record.object.accelerator_label.as_ref()),
        (INSTANCE_LABEL, record.instance.as_ref()),
    ];
    let kind = record.kind();
    let name = &record.object.key.name;
    for (label, stated) in labels {
        let wanted = object.pointer("/metadata/labels");
        let wanted = wanted.and_then(|labels| labels.get(label)?.as_str());
        if let Some(value) = stated.filter(|value| Some(&***value) != wanted) {
            return Err(format!(
                "{kind} {name} has the label {label}={:?}, which the VariantAutoscaling has not; remove it",
                &**value
            ));
        }
    }
    let spec = variant::read(&record.object).map_err(|why| why.to_string())?;
    if !spec.policy.is_empty() {
        return Err(format!(
            "{kind} {name} states scalingPolicy, defaultOutputTokens or replicaStartSeconds, which the \
             VariantAutoscaling does not; remove that"
        ));
    }
    let cost = object.pointer("/spec/variantCost");
    if cost.is_none() && spec.cost.is_some() {
        return Err(format!(
            "{kind} {name} states a cost, and the VariantAutoscaling none; remove it"
        ));
    }
    Ok(())
}

/// Why a scaler still declares its variant once its annotation is gone; with the remedy.
pub(super) fn declares_still((kind, object): StoredScaler<'_>) -> Option<String> {
    let mut object = object.clone();
    let annotations = object.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(MANAGED_ANNOTATION);
    }
    let record = projected((kind, &object))?.declared?;
    let key = &record.object.key;
    Some(format!(
        "{kind} {key}: its trigger states {MODEL_KEY}, and still declares the variant without {MANAGED_ANNOTATION}; \
         write variantName in its place, before the VariantAutoscaling is applied"
    ))
}

/// A scaler that reads the count of its own variant, as it is read.
fn prove(scaler: StoredScaler<'_>, name: &str) -> Result<Arc<VariantRecord>, String> {
    let kind = scaler.0.as_str();
    let object = projected(scaler).ok_or_else(|| format!("{kind} {name} cannot be read"))?;
    let record = object.declared.ok_or_else(|| {
        format!("{kind} {name} would declare no variant; another object controls it")
    })?;
    variant::read(&record.object).map_err(|why| why.to_string())?;
    let mut stated = object.scaler.inputs.iter().filter_map(named_variant);
    let other = stated.find(|read| *read != name);
    match other {
        Some(read) => {
            Err(format!("{kind} {name} reads the count of {read:?} too; let it read one count"))
        }
        None => Ok(record),
    }
}

/// KEDA takes no idle count that is not below the minimum.
fn without_idle(spec: &mut Value) {
    let count = |field: &str| spec.get(field).and_then(Value::as_i64);
    let is_below = count("idleReplicaCount") < Some(count("minReplicaCount").unwrap_or(0));
    if let Some(fields) = spec.as_object_mut().filter(|_| !is_below) {
        fields.remove("idleReplicaCount");
    }
}

/// Why a server may not take a printed object.
pub(super) fn refusal(object: &Value) -> Option<String> {
    let kind = text(object, "/kind");
    let is_hpa = kind == ScalerKind::HorizontalPodAutoscaler.as_str();
    let min = object.pointer("/spec/minReplicas").filter(|_| is_hpa)?;
    let (namespace, name) = identity(object);
    (min.as_i64() == Some(0)).then(|| {
        format!(
            "{kind} {namespace}/{name} may be refused: its minimum is 0, which before Kubernetes 1.37 needs the \
             feature gate HPAScaleToZero; without it use a ScaledObject"
        )
    })
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
    read_scaler(kind.as_str(), object).ok()
}

fn follows(scaler: StoredScaler<'_>, variant: &Value, name: &str) -> bool {
    let Some(object) = projected(scaler).filter(|object| object.scaler.made_for.is_none()) else {
        return false;
    };
    let mut inputs = object.scaler.inputs.iter();
    target_place(scaler.1) == target_place(variant)
        && inputs.any(|input| {
            let is_count = !matches!(input, Input::Other);
            is_count && named_variant(input).is_none_or(|read| read == name)
        })
}

/// A scaler without what the API server added.
fn bare(kind: ScalerKind, scaler: &Value) -> Value {
    let metadata = |field: &str| scaler.pointer(&format!("/metadata/{field}")).cloned();
    let fields = ["namespace", "name", "labels", "annotations"];
    let metadata: Map<String, Value> =
        fields.into_iter().filter_map(|field| Some((field.to_owned(), metadata(field)?))).collect();
    let mut bare = json!({
        "apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata, "spec": scaler.get("spec"),
    });
    if let Some(annotations) =
        bare.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        // The controller takes a count that it wrote itself alone.
        for name in ["kubectl.kubernetes.io/last-applied-configuration", COUNT_ANNOTATION] {
            annotations.remove(name);
        }
    }
    bare
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
