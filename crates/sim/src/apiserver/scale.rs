//! The scale subresource.

use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::refusal::ApiRefusal;

pub(super) fn shown(kind: &Kind, object: &Value) -> Value {
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let (spec, status, selector) = match &kind.scale {
        Some(paths) => (
            number(&paths.spec),
            number(&paths.status),
            selector(paths.selector.as_deref(), object),
        ),
        None => (0, 0, None),
    };
    let metadata = &object["metadata"];
    let mut kept = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept,
        "spec": {}, "status": {"replicas": status},
    });
    // The real server leaves a wanted zero out.
    if spec != 0 {
        scale["spec"]["replicas"] = spec.into();
    }
    if let Some(selector) = selector {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

fn selector(path: Option<&str>, object: &Value) -> Option<String> {
    if let Some(path) = path {
        return object.pointer(path)?.as_str().map(str::to_owned);
    }
    let labels = object.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pair = |(name, value): (&String, &Value)| Some(format!("{name}={}", value.as_str()?));
    let pairs: Vec<_> = labels.iter().filter_map(pair).collect();
    Some(pairs.join(","))
}

pub(super) fn written(kind: &Kind, live: &Value, scale: &Value) -> Result<Value, ApiRefusal> {
    let paths = kind.scale.as_ref().ok_or_else(ApiRefusal::no_such_path)?;
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    let mut next = live.clone();
    let mut place = &mut next;
    for step in paths.spec.split('/').filter(|step| !step.is_empty()) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    *place = replicas.into();
    let metadata = &scale["metadata"];
    next["metadata"]["resourceVersion"] =
        metadata.get("resourceVersion").cloned().unwrap_or_default();
    if let Some(uid) = metadata.get("uid") {
        next["metadata"]["uid"] = uid.clone();
    }
    Ok(next)
}
