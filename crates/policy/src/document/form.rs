//! What else is wrong with the form of a document: its parser stops at the first fault.

use serde_path_to_error::{Path, Segment};
use serde_yaml::{Mapping, Value};

use super::read::{DocumentError, DocumentFault, FAULTS_SHOWN};
use super::{DOCUMENT_VERSION, MAX_DOCUMENT, SnapshotDocument};
use crate::pod_autoscaler::object::is_within;
use crate::signal::FreshnessBands;
use wva_base::yaml::{check_bounds, unplaced};

/// Lists whose entries are read one by one, so that a fault of one hides none of another.
const LISTS: [&str; 3] = [VARIANTS, "models", "podAutoscalers"];
const VARIANTS: &str = "variants";

/// Fields by which ages of a variant are judged.
const SHARED: [&str; 3] = ["version", "time", "collection"];

/// A list with the place and the value of one of its entries.
type ListEntry = (&'static str, usize, Value);

/// The faults of a document without the one that its parser met, each behind its path and without a position.
pub(super) fn other_faults(text: &str, met: &serde_yaml::Error) -> Vec<String> {
    let Some((document, entries)) = parts(text) else {
        return Vec::new();
    };
    let mut faults = faults_of(Value::Mapping(document));
    for (list, index, entry) in entries {
        let found = faults_of(alone(list, entry)).into_iter();
        faults.extend(found.map(|fault| placed(fault, list, index)));
    }
    let met = unplaced(met);
    faults.retain(|fault| *fault != met);
    faults
}

impl SnapshotDocument {
    /// What cannot be in variants of the documented form, where the document as a whole has another one.
    pub fn variant_faults(text: &str, bands: &FreshnessBands) -> Vec<DocumentFault> {
        let text = text.trim_start_matches('\u{feff}');
        let is_bounded = text.len() <= MAX_DOCUMENT && check_bounds(text).is_ok();
        let Some((mut document, entries)) = is_bounded.then(|| parts(text)).flatten() else {
            return Vec::new();
        };
        document.retain(|key, _| key.as_str().is_some_and(|key| SHARED.contains(&key)));
        let mut faults = Vec::new();
        for (list, index, entry) in entries {
            if list == VARIANTS {
                document.insert(list.into(), Value::Sequence(vec![entry]));
                let found = judged(&document, bands).into_iter();
                faults.extend(found.filter_map(|fault| {
                    let rest = fault.path.strip_prefix("variants[0]")?;
                    let path = format!("{list}[{index}]{rest}");
                    let why = fault.why;
                    Some(DocumentFault { path, why })
                }));
            }
        }
        faults
    }
}

/// What cannot be in a document; nothing of one of another form.
fn judged(document: &Mapping, bands: &FreshnessBands) -> Vec<DocumentFault> {
    let text = serde_yaml::to_string(document).ok();
    let read = text.and_then(|text| serde_yaml::from_str::<SnapshotDocument>(&text).ok());
    match read.map(|document| document.situation(bands)) {
        Some(Err(DocumentError::Faults(faults))) => faults,
        _ => Vec::new(),
    }
}

/// A document with empty lists, and the entries of those.
fn parts(text: &str) -> Option<(Mapping, Vec<ListEntry>)> {
    let Value::Mapping(mut document) = serde_yaml::from_str::<Value>(text).ok()? else {
        return None;
    };
    let mut entries = Vec::new();
    for list in LISTS {
        if let Some(Value::Sequence(items)) = document.get_mut(list) {
            let items = std::mem::take(items).into_iter().enumerate();
            entries.extend(items.map(|(index, entry)| (list, index, entry)));
        }
    }
    Some((document, entries))
}

/// A document that holds one entry of a list and nothing else.
fn alone(list: &str, entry: Value) -> Value {
    let mut document = Mapping::new();
    document.insert("version".into(), DOCUMENT_VERSION.into());
    document.insert(VARIANTS.into(), Value::Sequence(Vec::new()));
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
