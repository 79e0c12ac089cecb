//! Defaults, pruning and validation by schema.

use serde_json::Value;

use super::refusal::Cause;
use super::rules;
use super::schema::{ListKind, Schema};

/// Where a value stands in its object. It becomes a text only where something is wrong there.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn cause(self, reason: &'static str, message: String) -> Cause {
        Cause::new(&self.to_string(), reason, message)
    }
}

wva_base::display_of! { Path<'_>:
    Self::Root => "";
    Self::Field(Self::Root, name) => "{name}";
    Self::Field(parent, name) => "{parent}.{name}";
    Self::Item(parent, index) => "{parent}[{index}]";
}

/// Fills in defaults; an explicit null where none may stand counts as absent.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|name, field| {
                !field.is_null() || schema.field(name).is_none_or(|known| known.nullable)
            });
            for (name, known) in &schema.properties {
                if let (None, Some(default)) = (object.get(name), &known.default) {
                    object.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in object {
                if let Some(known) = schema.field(name) {
                    fill(known, field);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                if let Some(known) = &schema.items {
                    fill(known, item);
                }
            }
        }
        _ => {}
    }
}

pub(super) fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    prune_at(schema, value, Path::Root, &mut dropped);
    dropped
}

fn prune_at(schema: &Schema, value: &mut Value, path: Path<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let closed = !schema.open && schema.values.is_none() && !schema.properties.is_empty();
            object.retain(|name, field| {
                let below = Path::Field(&path, name);
                let Some(known) = schema.field(name) else {
                    if closed {
                        dropped.push(below.to_string());
                    }
                    return !closed;
                };
                prune_at(known, field, below, dropped);
                true
            });
        }
        Value::Array(items) => {
            if let Some(known) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_at(known, item, Path::Item(&path, index), dropped);
                }
            }
        }
        _ => {}
    }
}

/// Whether what is wrong was so before: the server refuses no edit for a part that it leaves as it is.
/// Parts of lists have no names of their own, and are judged anew. So are types: an apply cannot
/// merge into what is of another type.
pub(super) fn is_old(cause: &Cause, live: &Value, object: &Value) -> bool {
    let part = match cause.reason {
        "FieldValueTypeInvalid" => return false,
        "FieldValueRequired" => cause.field.rsplit_once('.').map_or("", |(part, _)| part),
        _ => &cause.field,
    };
    let pointer = format!("/{}", part.replace('.', "/"));
    let value = |of: &Value| of.pointer(&pointer).cloned();
    !part.is_empty() && !part.contains('[') && value(live) == value(object)
}

pub(super) fn check(schema: &Schema, object: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    check_at(schema, object, Path::Root, &mut found);
    found
}

fn check_at(schema: &Schema, value: &Value, path: Path<'_>, found: &mut Vec<Cause>) {
    if value.is_null() {
        if !schema.nullable && !schema.kind.is_empty() {
            found.push(wrong_type(schema, value, path));
        }
        return;
    }
    if !type_fits(schema, value) {
        found.push(wrong_type(schema, value, path));
        return;
    }
    match value {
        Value::Object(_) => check_object(schema, value, path, found),
        Value::Array(items) => check_list(schema, items, path, found),
        Value::String(text) => check_text(schema, text, path, found),
        Value::Number(_) => check_number(schema, value, path, found),
        _ => {}
    }
    if !schema.choices.is_empty() && !schema.choices.contains(value) {
        let choices: Vec<_> = schema.choices.iter().map(Value::to_string).collect();
        let choices = choices.join(", ");
        let message = format!("Unsupported value: {value}: supported values: {choices}");
        found.push(path.cause("FieldValueNotSupported", message));
    }
}

fn check_object(schema: &Schema, object: &Value, path: Path<'_>, found: &mut Vec<Cause>) {
    for name in &schema.required {
        if object.get(name).is_none() {
            found.push(Cause::required(&Path::Field(&path, name).to_string(), ""));
        }
    }
    let before = found.len();
    for (name, field) in object.as_object().into_iter().flatten() {
        if let Some(known) = schema.field(name) {
            check_at(known, field, Path::Field(&path, name), found);
        }
    }
    if found.len() > before {
        return;
    }
    for (rule, message) in &schema.rules {
        if rules::obeys(rule, object) == Some(false) {
            let message = format!("Invalid value: {message}");
            found.push(path.cause("FieldValueInvalid", message));
        }
    }
}

fn check_list(schema: &Schema, items: &[Value], path: Path<'_>, found: &mut Vec<Cause>) {
    let Some(known) = &schema.items else {
        return;
    };
    let mut keys: Vec<Vec<Option<&Value>>> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let below = Path::Item(&path, index);
        check_at(known, item, below, found);
        let key = match &schema.list {
            ListKind::Atomic => continue,
            ListKind::Set => vec![Some(item)],
            ListKind::Map(names) => names.iter().map(|name| item.get(name)).collect(),
        };
        if keys.contains(&key) {
            let message = format!("Duplicate value: {item}");
            found.push(below.cause("FieldValueDuplicate", message));
        }
        keys.push(key);
    }
}

fn check_text(schema: &Schema, text: &str, path: Path<'_>, found: &mut Vec<Cause>) {
    let invalid = |why: &str| Cause::invalid(&path.to_string(), &Value::from(text), why);
    let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
    if let Some(least) = schema.min_length.filter(|least| length < *least) {
        let why = format!("{path} in body should be at least {least} chars long");
        found.push(invalid(&why));
    }
    if let Some(most) = schema.max_length.filter(|most| length > *most) {
        let message = format!("Too long: may not be more than {most} bytes");
        found.push(path.cause("FieldValueTooLong", message));
    }
    if let Some(pattern) = &schema.pattern
        && !pattern.is_match(text.as_bytes())
    {
        let why = format!("{path} in body should match '{pattern}'");
        found.push(invalid(&why));
    }
    if schema.format == "date-time" && text.parse::<jiff::Timestamp>().is_err() {
        let value = Value::from(text);
        let why = format!("{path} in body must be of type date-time: {value}");
        found.push(invalid(&why));
    }
}

fn check_number(schema: &Schema, value: &Value, path: Path<'_>, found: &mut Vec<Cause>) {
    let number = value.as_f64().unwrap_or_default();
    if let Some(least) = schema.minimum.filter(|least| number < *least) {
        let why = format!("{path} in body should be greater than or equal to {least}");
        found.push(Cause::invalid(&path.to_string(), value, &why));
    }
    let most = (schema.format == "int32").then_some(f64::from(i32::MAX));
    if let Some(most) = schema.maximum.or(most).filter(|most| number > *most) {
        let why = format!("{path} in body should be less than or equal to {most}");
        found.push(Cause::invalid(&path.to_string(), value, &why));
    }
}

fn type_fits(schema: &Schema, value: &Value) -> bool {
    if schema.int_or_string {
        return value.is_string() || value.is_number();
    }
    match &*schema.kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn wrong_type(schema: &Schema, value: &Value, path: Path<'_>) -> Cause {
    let seen = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kind = if schema.int_or_string { "integer or string" } else { &schema.kind };
    let why = format!("{path} in body must be of type {kind}");
    let message = format!("Invalid value: \"{seen}\": {why}: \"{seen}\"");
    path.cause("FieldValueTypeInvalid", message)
}
