//! Stored objects as the kinds show them.
//!
//! The two kinds of events share their objects, which are stored in the form of the core group.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::Kind;

/// Fields of an event: their names in the core group, and in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn is_new_event(kind: &Kind) -> bool {
    kind.is("events.k8s.io", "Event")
}

pub(super) fn shared(kind: &Kind, stored: &Arc<Value>) -> Arc<Value> {
    let is = |field: &str, wanted: &str| stored.get(field).and_then(Value::as_str) == Some(wanted);
    let is_same = is("kind", &kind.kind) && is("apiVersion", &kind.api_version());
    if is_same && !is_new_event(kind) { Arc::clone(stored) } else { Arc::new(shown(kind, stored)) }
}

pub(super) fn shown(kind: &Kind, stored: &Value) -> Value {
    let mut object = stored.clone();
    if is_new_event(kind) {
        rename(&mut object, EVENT_FIELDS);
    }
    dress(kind, &mut object);
    object
}

pub(super) fn stored(kind: &Kind, mut object: Value) -> Value {
    if is_new_event(kind) {
        rename(&mut object, EVENT_FIELDS.map(|(old, new)| (new, old)));
        object["apiVersion"] = "v1".into();
    }
    object
}

pub(super) fn dress(kind: &Kind, object: &mut Value) {
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.clone().into();
}

fn rename(object: &mut Value, names: [(&str, &str); 7]) {
    let Value::Object(object) = object else {
        return;
    };
    for (old, new) in names {
        if let Some(value) = object.remove(old) {
            object.insert(new.to_owned(), value);
        }
    }
}

pub(super) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}
