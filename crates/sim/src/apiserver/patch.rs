//! Merge patches (RFC 7386), and those that know the schema.

use serde_json::{Map, Value};

use super::schema::Schema;

type JsonMap = Map<String, Value>;

/// The fields of a target and those of its patch. A patch that has none takes the place of the target.
fn fields<'a>(target: &'a mut Value, patch: &'a Value) -> Option<(&'a mut JsonMap, &'a JsonMap)> {
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

/// A strategic merge patch, which kubectl sends for built-in kinds.
pub(super) fn strategic(schema: Option<&Schema>, target: &mut Value, patch: &Value) {
    let Some((object, patch)) = fields(target, patch) else {
        return;
    };
    if patch.get("$patch").and_then(Value::as_str) == Some("replace") {
        object.clear();
    }
    if let Some(Value::Array(kept)) = patch.get("$retainKeys") {
        object.retain(|name, _| kept.iter().any(|one| one.as_str() == Some(name)));
    }
    for (name, value) in patch {
        if let Some(field) = name.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(list)), Value::Array(gone)) = (object.get_mut(field), value) {
                list.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        if value.is_null() || is_deletion(value) {
            object.remove(name);
            continue;
        }
        let known = schema.and_then(|schema| schema.field(name)).map(AsRef::as_ref);
        match (known, value) {
            (Some(list), Value::Array(items)) if list.merges => {
                let entry = object.entry(name.clone()).or_insert(Value::Null);
                merge_list(list, entry, items);
            }
            (_, Value::Array(items)) => {
                object.insert(name.clone(), Value::Array(items.clone()));
            }
            _ => strategic(known, object.entry(name.clone()).or_insert(Value::Null), value),
        }
    }
    for (name, order) in patch {
        if let (Some(field), Value::Array(order)) = (name.strip_prefix("$setElementOrder/"), order)
        {
            let known = schema.and_then(|schema| schema.field(field));
            let key = known.and_then(|list| list.merge_key.as_deref());
            if let Some(Value::Array(list)) = object.get_mut(field) {
                sort(list, order, key);
            }
        }
    }
}

fn is_deletion(value: &Value) -> bool {
    value.get("$patch").and_then(Value::as_str) == Some("delete")
}

fn merge_list(schema: &Schema, target: &mut Value, items: &[Value]) {
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    let Value::Array(list) = target else {
        return;
    };
    if items.iter().any(|item| item.get("$patch").and_then(Value::as_str) == Some("replace")) {
        list.clear();
    }
    for item in items {
        let Some(key) = &schema.merge_key else {
            if !list.contains(item) {
                list.push(item.clone());
            }
            continue;
        };
        let Some(value) = item.get(key) else {
            continue;
        };
        let at = list.iter().position(|one| one.get(key) == Some(value));
        if is_deletion(item) {
            if let Some(at) = at {
                list.remove(at);
            }
            continue;
        }
        if let Some(old) = at.and_then(|at| list.get_mut(at)) {
            strategic(schema.items.as_deref(), old, item);
        } else {
            let mut added = Value::Null;
            strategic(schema.items.as_deref(), &mut added, item);
            list.push(added);
        }
    }
}

fn sort(list: &mut [Value], order: &[Value], key: Option<&str>) {
    let id = |value: &Value| key.map_or_else(|| Some(value.clone()), |key| value.get(key).cloned());
    let wanted: Vec<_> = order.iter().map(id).collect();
    list.sort_by_key(|item| {
        let own = id(item);
        wanted.iter().position(|one| *one == own).unwrap_or(usize::MAX)
    });
}
