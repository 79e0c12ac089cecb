//! Merge patches (RFC 7386) and JSON patches (RFC 6902).

use serde_json::{Map, Value};

pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(object) = target else {
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

/// Applies a JSON patch.
///
/// # Errors
/// Says which operation cannot be carried out.
pub(super) fn json(target: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Array(operations) = patch else {
        return Err("a JSON patch is a list of operations".to_owned());
    };
    for operation in operations {
        operate(target, operation).ok_or_else(|| {
            format!("the server rejected our request due to an error in our request: {operation}")
        })?;
    }
    Ok(())
}

fn operate(target: &mut Value, operation: &Value) -> Option<()> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let path = text("path")?;
    match text("op")? {
        "add" => add(target, path, operation.get("value")?.clone()),
        "replace" => {
            let value = operation.get("value")?.clone();
            *target.pointer_mut(path)? = value;
            Some(())
        }
        "remove" => remove(target, path).map(|_| ()),
        "move" => {
            let value = remove(target, text("from")?)?;
            add(target, path, value)
        }
        "copy" => {
            let value = target.pointer(text("from")?)?.clone();
            add(target, path, value)
        }
        "test" => (target.pointer(path)? == operation.get("value")?).then_some(()),
        _ => None,
    }
}

fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *target = value;
        return Some(());
    }
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent)? {
        Value::Object(object) => {
            object.insert(last, value);
        }
        Value::Array(items) => {
            let at = if last == "-" {
                items.len()
            } else {
                last.parse().ok()?
            };
            if at > items.len() {
                return None;
            }
            items.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(target: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent)? {
        Value::Object(object) => object.remove(&last),
        Value::Array(items) => {
            let at: usize = last.parse().ok()?;
            (at < items.len()).then(|| items.remove(at))
        }
        _ => None,
    }
}
