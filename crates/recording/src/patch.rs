//! Differences of JSON values.
//!
//! A patch is itself JSON. `[]` removes a field, `[v]` replaces a value, an object patches fields, and
//! `[drop, keep, {index: patch}, [appended]]` patches a list: a window that moves costs its new element alone.

use serde_json::{Map, Value, json};

/// How many elements at the start of a list may have left.
const LARGEST_SHIFT: usize = 8;

/// A patch does not fit the value that it is applied to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a difference does not fit the cycle before it; the recording is damaged")]
pub struct PatchError;

/// The patch that turns one value into another; `None` if they are equal.
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => Some(Value::Object(fields(old, new))),
        (Value::Array(old), Value::Array(new)) => Some(elements(old, new)),
        (_, new) => Some(json!([new])),
    }
}

fn fields(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, value) in new {
        let change = match old.get(name) {
            Some(before) => diff(before, value),
            None => Some(json!([value])),
        };
        if let Some(change) = change {
            patch.insert(name.clone(), change);
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), json!([]));
    }
    patch
}

fn elements(old: &[Value], new: &[Value]) -> Value {
    let shift = shift(old, new);
    let rest = old.get(shift..).unwrap_or_default();
    let keep = rest.len().min(new.len());
    let mut changes = Map::new();
    for (index, (before, after)) in rest.iter().zip(new).enumerate() {
        if let Some(change) = diff(before, after) {
            changes.insert(index.to_string(), change);
        }
    }
    let appended = new.get(keep..).unwrap_or_default();
    json!([shift, keep, changes, appended])
}

/// How many elements have left at the start; 0 if that does not explain the new list.
fn shift(old: &[Value], new: &[Value]) -> usize {
    let Some(first) = new.first() else {
        return 0;
    };
    let found = old.iter().take(LARGEST_SHIFT + 1).position(|element| element == first);
    found.unwrap_or(0)
}

/// Applies a patch.
pub fn apply(value: &mut Value, patch: Value) -> Result<(), PatchError> {
    match patch {
        Value::Object(changes) => {
            let fields = value.as_object_mut().ok_or(PatchError)?;
            for (name, change) in changes {
                if matches!(&change, Value::Array(change) if change.is_empty()) {
                    fields.remove(&name).ok_or(PatchError)?;
                } else {
                    apply(fields.entry(name).or_insert(Value::Null), change)?;
                }
            }
            Ok(())
        }
        Value::Array(parts) => match <[Value; 1]>::try_from(parts) {
            Ok([replacement]) => {
                *value = replacement;
                Ok(())
            }
            Err(parts) => apply_to_list(value, parts),
        },
        _ => Err(PatchError),
    }
}

fn apply_to_list(value: &mut Value, parts: Vec<Value>) -> Result<(), PatchError> {
    let Ok([shift, keep, Value::Object(changes), Value::Array(appended)]) =
        <[Value; 4]>::try_from(parts)
    else {
        return Err(PatchError);
    };
    let list = value.as_array_mut().ok_or(PatchError)?;
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let (shift, keep) = number(&shift).zip(number(&keep)).ok_or(PatchError)?;
    if shift > list.len() || keep > list.len().saturating_sub(shift) {
        return Err(PatchError);
    }
    list.drain(..shift);
    list.truncate(keep);
    for (index, change) in changes {
        let index: usize = index.parse().map_err(|_no_number| PatchError)?;
        apply(list.get_mut(index).ok_or(PatchError)?, change)?;
    }
    list.extend(appended);
    Ok(())
}
