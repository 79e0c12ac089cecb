//! Who owns which fields, and what server-side apply makes of it.

use serde_json::{Value, json};

use super::fields::Fields;
use super::kind::Kind;
use super::list;
use super::refusal::{ApiRefusal, Cause};
use super::typed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
}

wva_base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum Operation {
        Apply,
        Update,
    }
}

#[derive(Debug, Clone)]
struct Entry {
    writer: Writer,
    time: String,
    fields: Fields,
}

const UNOWNED: [&[&str]; 10] = [
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:uid"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:resourceVersion"],
    &["f:metadata", "f:managedFields"],
    &["f:metadata", "f:selfLink"],
];

fn owned(mut fields: Fields, kind: &Kind, subresource: &str) -> Fields {
    for path in UNOWNED {
        fields.cut(path);
    }
    if subresource == "status" {
        fields.cut(&["f:spec"]);
        if kind.is_custom() {
            fields.cut(&["f:metadata"]);
        }
    } else if kind.status {
        fields.cut(&["f:status"]);
    }
    // The mere presence of `metadata` has no owner.
    if let Some(metadata) = fields.below.get_mut("f:metadata") {
        metadata.member = false;
        if metadata.is_empty() {
            fields.below.remove("f:metadata");
        }
    }
    fields.member = false;
    fields
}

fn listed(object: &Value) -> &[Value] {
    list(&object["metadata"]["managedFields"])
}

fn read(object: &Value) -> Vec<Entry> {
    let text = |entry: &Value, name: &str| {
        let text = entry.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    listed(object)
        .iter()
        .map(|entry| Entry {
            writer: Writer {
                manager: text(entry, "manager"),
                operation: if text(entry, "operation") == "Apply" {
                    Operation::Apply
                } else {
                    Operation::Update
                },
                api_version: text(entry, "apiVersion"),
                subresource: text(entry, "subresource"),
            },
            time: text(entry, "time"),
            fields: Fields::read(&entry["fieldsV1"]),
        })
        .collect()
}

fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    entries.sort_by(|one, other| {
        let (a, b) = (&one.writer, &other.writer);
        let operation = a.operation.cmp(&b.operation);
        let time = || one.time.cmp(&other.time);
        operation.then_with(time).then_with(|| a.manager.cmp(&b.manager))
    });
    let documents: Value = entries
        .into_iter()
        .map(|entry| {
            let writer = entry.writer;
            let mut document = json!({
                "operation": writer.operation.as_str(), "fieldsType": "FieldsV1",
            });
            // Moved into their places: the macro would copy them.
            document["manager"] = writer.manager.into();
            document["apiVersion"] = writer.api_version.into();
            document["time"] = entry.time.into();
            document["fieldsV1"] = entry.fields.into_document();
            if !writer.subresource.is_empty() {
                document["subresource"] = writer.subresource.into();
            }
            document
        })
        .collect();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        if list(&documents).is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), documents);
        }
    }
}

/// Books the change from `live` to `object` to its writer.
///
/// A change of the managed fields themselves, on the object itself, comes first; an empty list of
/// them forgets all owners.
pub(super) fn updated(kind: &Kind, live: &Value, object: &mut Value, writer: &Writer, now: &str) {
    let given = listed(object);
    let reset = matches!(given, [one] if one.as_object().is_some_and(serde_json::Map::is_empty));
    let mut entries = if reset && writer.subresource.is_empty() {
        Vec::new()
    } else if given.is_empty() || !writer.subresource.is_empty() {
        read(live)
    } else {
        read(object)
    };
    let difference = typed::compare(Some(&kind.schema), live, object);
    let set = owned(difference.set, kind, &writer.subresource);
    for entry in &mut entries {
        entry.fields.subtract(&difference.removed);
        if entry.writer != *writer {
            entry.fields.subtract(&set);
        }
    }
    match entries.iter_mut().find(|entry| entry.writer == *writer) {
        _ if set.is_empty() => {}
        Some(own) => {
            now.clone_into(&mut own.time);
            own.fields.add(set);
        }
        None => entries.push(Entry { writer: writer.clone(), time: now.to_owned(), fields: set }),
    }
    write(object, entries);
}

/// What applying `config` makes of `live`.
pub(super) fn applied(
    kind: &Kind,
    live: &Value,
    config: &Value,
    writer: &Writer,
    force: bool,
    now: &str,
) -> Result<Value, ApiRefusal> {
    let schema = Some(&*kind.schema);
    let mut others = read(live);
    let place = others.iter().position(|entry| entry.writer == *writer);
    let own = place.map(|place| others.remove(place));
    let said = owned(typed::fields(schema, config), kind, &writer.subresource);
    let mut kept = said.clone();
    for entry in &others {
        kept.add(entry.fields.clone());
    }
    let mut dropped = own.as_ref().map(|own| own.fields.clone()).unwrap_or_default();
    dropped.subtract(&kept);
    let mut merged = typed::merge(schema, live, config);
    typed::remove(schema, &mut merged, &guarded(&dropped, &kept));

    let difference = typed::compare(schema, live, &merged);
    let set = owned(difference.set, kind, &writer.subresource);
    if !force {
        let causes = conflicts(&others, &set, writer);
        if !causes.is_empty() {
            return Err(ApiRefusal::owned(&causes));
        }
    }
    for entry in &mut others {
        entry.fields.subtract(&set);
        entry.fields.subtract(&difference.removed);
    }
    let is_still = set.is_empty() && difference.removed.is_empty();
    let time = match own {
        Some(own) if is_still && own.fields == said => own.time,
        _ => now.to_owned(),
    };
    let own = Entry { writer: writer.clone(), time, fields: said };
    others.insert(place.unwrap_or(others.len()), own);
    write(&mut merged, others);
    Ok(merged)
}

/// Fields to remove, except containers of which a part still has an owner.
fn guarded(gone: &Fields, kept: &Fields) -> Fields {
    let mut result = Fields { member: gone.member && kept.is_empty(), ..Fields::default() };
    for (step, below) in &gone.below {
        let empty = Fields::default();
        let rest = guarded(below, kept.below.get(step).unwrap_or(&empty));
        result.put(step.clone(), rest);
    }
    result
}

fn conflicts(others: &[Entry], set: &Fields, writer: &Writer) -> Vec<Cause> {
    let mut causes = Vec::new();
    for entry in others {
        let other = &entry.writer;
        let mut name = format!("{:?}", other.manager);
        if !other.subresource.is_empty() {
            name = format!("{name} with subresource {:?}", other.subresource);
        }
        if other.operation == Operation::Update || other.api_version != writer.api_version {
            name = format!("{name} using {}", other.api_version);
        }
        for field in entry.fields.intersection(set).paths("") {
            let message = format!("conflict with {name}");
            causes.push(Cause::new(&field, "FieldManagerConflict", message));
        }
    }
    causes
}
