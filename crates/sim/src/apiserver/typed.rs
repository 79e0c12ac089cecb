//! Objects seen through their schemas: which fields they hold, how two differ, and their union.
//!
//! The rules are those of the structured-merge-diff library of Kubernetes.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::fields::Fields;
use super::schema::{ListKind, Schema};

#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) set: Fields,
    pub(super) removed: Fields,
}

fn field<'a>(schema: Option<&'a Schema>, name: &str) -> Option<&'a Schema> {
    schema.and_then(|schema| schema.field(name)).map(AsRef::as_ref)
}

fn items(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(|schema| schema.items.as_deref())
}

fn elements<'a>(schema: Option<&Schema>, list: &'a [Value]) -> Option<Vec<(String, &'a Value)>> {
    let schema = schema?;
    let step = |item: &Value| match &schema.list {
        ListKind::Atomic => None,
        ListKind::Set => Some(format!("v:{item}")),
        ListKind::Map(names) => {
            let mut keys = Map::new();
            for name in names {
                let default =
                    || field(items(Some(schema)), name).and_then(|key| key.default.clone());
                if let Some(value) = item.get(name).cloned().or_else(default) {
                    keys.insert(name.clone(), value);
                }
            }
            Some(format!("k:{}", Value::Object(keys)))
        }
    };
    list.iter().map(|item| Some((step(item)?, item))).collect::<Option<Vec<_>>>()
}

fn find<'a>(elements: &[(String, &'a Value)], step: &str) -> Option<&'a Value> {
    elements.iter().find(|(other, _)| other == step).map(|(_, item)| *item)
}

fn is_atomic(schema: Option<&Schema>) -> bool {
    schema.is_some_and(|schema| schema.atomic)
}

pub(super) fn fields(schema: Option<&Schema>, value: &Value) -> Fields {
    match value {
        Value::Object(object) if !object.is_empty() && !is_atomic(schema) => {
            let mut found = Fields::default();
            for (name, value) in object {
                found.put(format!("f:{name}"), fields(field(schema, name), value));
            }
            found
        }
        Value::Array(list) if !list.is_empty() => {
            let Some(elements) = elements(schema, list) else {
                return Fields::leaf();
            };
            let mut found = Fields::default();
            for (step, item) in elements {
                let mut below = fields(items(schema), item);
                below.member = true;
                found.put(step, below);
            }
            found
        }
        _ => Fields::leaf(),
    }
}

fn whole(schema: Option<&Schema>, value: &Value) -> Fields {
    let mut found = fields(schema, value);
    mark(&mut found);
    found
}

fn mark(fields: &mut Fields) {
    fields.member = true;
    fields.below.values_mut().for_each(mark);
}

pub(super) fn compare(schema: Option<&Schema>, old: &Value, new: &Value) -> Difference {
    let mut difference = Difference::default();
    match (old, new) {
        (Value::Object(old), Value::Object(new)) if !is_atomic(schema) => {
            for (name, before) in old {
                let after = new.get(name);
                if after != Some(before) {
                    let known = field(schema, name);
                    difference.take(format!("f:{name}"), known, (Some(before), after));
                }
            }
            for (name, after) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                let known = field(schema, name);
                difference.take(format!("f:{name}"), known, (None, Some(after)));
            }
        }
        _ if old == new => {}
        (Value::Array(old_list), Value::Array(new_list)) => {
            match (elements(schema, old_list), elements(schema, new_list)) {
                (Some(old), Some(new)) => {
                    let steps: BTreeSet<_> = old.iter().chain(&new).map(|(step, _)| step).collect();
                    for step in steps {
                        let pair = (find(&old, step), find(&new, step));
                        difference.take(step.clone(), items(schema), pair);
                    }
                }
                _ => difference.set.member = true,
            }
        }
        _ => difference.set = whole(schema, new),
    }
    difference
}

impl Difference {
    fn take(
        &mut self,
        step: String,
        schema: Option<&Schema>,
        pair: (Option<&Value>, Option<&Value>),
    ) {
        match pair {
            (Some(old), Some(new)) => {
                let below = compare(schema, old, new);
                self.set.put(step.clone(), below.set);
                self.removed.put(step, below.removed);
            }
            (None, Some(new)) => self.set.put(step, whole(schema, new)),
            (Some(old), None) => self.removed.put(step, whole(schema, old)),
            (None, None) => {}
        }
    }
}

pub(super) fn merge(schema: Option<&Schema>, live: &Value, config: &Value) -> Value {
    let mut merged = live.clone();
    merge_into(schema, &mut merged, config);
    merged
}

fn merge_into(schema: Option<&Schema>, live: &mut Value, config: &Value) {
    match (live, config) {
        (Value::Object(live), Value::Object(config)) if !is_atomic(schema) => {
            for (name, value) in config {
                match live.get_mut(name) {
                    Some(old) => merge_into(field(schema, name), old, value),
                    None => drop(live.insert(name.clone(), value.clone())),
                }
            }
        }
        (Value::Array(live), Value::Array(config)) => *live = merged_list(schema, live, config),
        (live, config) => live.clone_from(config),
    }
}

fn merged_list(schema: Option<&Schema>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let (Some(old), Some(new)) = (elements(schema, live), elements(schema, config)) else {
        return config.to_vec();
    };
    let mut merged = Vec::new();
    for (step, item) in &old {
        merged.push(match find(&new, step) {
            Some(said) => merge(items(schema), item, said),
            None => (*item).clone(),
        });
    }
    let added = new.iter().filter(|(step, _)| find(&old, step).is_none());
    merged.extend(added.map(|(_, item)| (*item).clone()));
    merged
}

pub(super) fn remove(schema: Option<&Schema>, value: &mut Value, gone: &Fields) {
    match value {
        Value::Object(object) if !is_atomic(schema) => {
            for (step, below) in &gone.below {
                let Some(name) = step.strip_prefix("f:") else {
                    continue;
                };
                let Some(inner) = object.get_mut(name) else {
                    continue;
                };
                if below.member {
                    object.remove(name);
                } else {
                    remove(field(schema, name), inner, below);
                    if is_hollow(inner) {
                        object.remove(name);
                    }
                }
            }
        }
        Value::Array(list) => {
            let Some(steps) = elements(schema, list)
                .map(|found| found.into_iter().map(|(step, _)| step).collect::<Vec<_>>())
            else {
                return;
            };
            let mut kept = Vec::new();
            for (step, mut item) in steps.into_iter().zip(std::mem::take(list)) {
                match gone.below.get(&step) {
                    Some(below) if below.member => {}
                    Some(below) => {
                        remove(items(schema), &mut item, below);
                        kept.push(item);
                    }
                    None => kept.push(item),
                }
            }
            *list = kept;
        }
        _ => {}
    }
}

fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
