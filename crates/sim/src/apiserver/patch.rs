//! Merge patches (RFC 7386).

use serde_json::{Map, Value};

type Fields = Map<String, Value>;

/// The fields of a target and those of its patch. A patch that has none takes the place of the target.
pub(super) fn fields<'a>(
    target: &'a mut Value,
    patch: &'a Value,
) -> Option<(&'a mut Fields, &'a Fields)> {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return None;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    Some((target.as_object_mut()?, patch))
}

pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Some((object, patch)) = fields(target, patch) else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
