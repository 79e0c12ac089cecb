//! What else is wrong with the form of a document: its parser stops at the first fault.

use serde_path_to_error::{Path, Segment};
use serde_yaml::{Mapping, Value};

use super::read::FAULTS_SHOWN;
use super::{DOCUMENT_VERSION, SnapshotDocument};
use crate::pod_autoscaler::object::is_within;
use wva_base::yaml::unplaced;

/// Lists whose entries are read one by one, so that a fault of one hides none of another.
const LISTS: [&str; 3] = ["variants", "models", "podAutoscalers"];

/// The faults of a document besides the one that its parser met, each behind its path and without a position.
pub(super) fn other_faults(text: &str, met: &serde_yaml::Error) -> Vec<String> {
    let Ok(Value::Mapping(mut document)) = serde_yaml::from_str::<Value>(text) else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for list in LISTS {
        if let Some(Value::Sequence(items)) = document.get_mut(list) {
            let items = std::mem::take(items).into_iter().enumerate();
            entries.extend(items.map(|(index, entry)| (list, index, entry)));
        }
    }
    let mut faults = faults_of(Value::Mapping(document));
    for (list, index, entry) in entries {
        let found = faults_of(alone(list, entry)).into_iter();
        faults.extend(found.map(|fault| placed(fault, list, index)));
    }
    let met = unplaced(met);
    faults.retain(|fault| *fault != met);
    faults
}

/// A document that holds one entry of a list and nothing else.
fn alone(list: &str, entry: Value) -> Value {
    let mut document = Mapping::new();
    document.insert("version".into(), DOCUMENT_VERSION.into());
    document.insert("variants".into(), Value::Sequence(Vec::new()));
    document.insert(list.into(), Value::Sequence(vec![entry]));
    Value::Mapping(document)
}

/// A fault of an entry that stood alone, with the place that the entry has.
fn placed(fault: String, list: &str, index: usize) -> String {
    match fault.strip_prefix(&format!("{list}[0]")) {
        Some(rest) => format!("{list}[{index}]{rest}"),
        None => fault,
    }
}

/// The faults of a part, up to the first one in an entry of a list that cannot be left out.
fn faults_of(mut part: Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    while let Some((path, why)) = first_fault(&part) {
        // That of the whole is a dot.
        let place = path.to_string().trim_start_matches('.').to_owned();
        // What a field that was left out is missing from is named by that field.
        if !left_out.iter().any(|field| is_within(field, &place)) {
            faults.push(why);
        }
        // Each fault costs a look at the whole part.
        if faults.len() == FAULTS_SHOWN || !leave_out(&mut part, &path) {
            break;
        }
        left_out.push(place);
    }
    faults
}

fn first_fault(part: &Value) -> Option<(Path, String)> {
    let text = serde_yaml::to_string(part).ok()?;
    let parser = serde_yaml::Deserializer::from_str(&text);
    let error = serde_path_to_error::deserialize::<_, SnapshotDocument>(parser).err()?;
    Some((error.path().clone(), unplaced(error.inner())))
}

/// Removes the field at a path. An entry of a list stays, since the others would lose their places.
fn leave_out(part: &mut Value, path: &Path) -> bool {
    let steps: Vec<&Segment> = path.iter().collect();
    let Some((Segment::Map { key }, above)) = steps.split_last() else {
        return false;
    };
    let parent = above.iter().try_fold(part, |at, step| match step {
        Segment::Map { key } => at.get_mut(key.as_str()),
        Segment::Seq { index } => at.get_mut(*index),
        _ => None,
    });
    match parent {
        Some(Value::Mapping(fields)) => fields.shift_remove(key.as_str()).is_some(),
        _ => false,
    }
}
