//! Reads facts from manifests, without a cluster.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::controllers::{controller, is_controller};
use crate::doctor::facts::{FactSource, Facts, LiveKind, Reading};
use crate::doctor::object::LiveObject;

/// Most files of a folder.
const MOST_FILES: usize = 10_000;
/// Most bytes of a file.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// The manifests below a folder, or of one file.
///
/// # Errors
/// The folder that cannot be read.
pub fn read(path: &Path, variant: Option<String>) -> Result<Facts, String> {
    let mut facts = Facts {
        source: FactSource::Files,
        is_narrowed: variant.is_some(),
        variant,
        ..Facts::default()
    };
    for kind in LiveKind::ALL {
        facts.objects.insert(kind, Reading::Known(Vec::new()));
    }
    for file in files(path)? {
        match text(&file) {
            Ok(text) => documents(&file, &text, &mut facts),
            Err(why) => facts.unreadable.push((file.display().to_string(), why)),
        }
    }
    let deployments: Vec<LiveObject> = facts
        .all(LiveKind::Deployment)
        .iter()
        .filter(|one| is_controller(one))
        .cloned()
        .collect();
    let controllers = deployments.iter().map(|one| controller(one, &facts));
    facts.controllers = Reading::Known(controllers.collect());
    facts.declare();
    Ok(facts)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let why = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| why(&folder, error))? {
            let entry = entry.map_err(|error| why(&folder, error))?;
            let kind = entry.file_type().map_err(|error| why(&folder, error))?;
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
            } else if matches!(
                path.extension().and_then(|end| end.to_str()),
                Some("yaml" | "yml" | "json")
            ) {
                found.push(path);
            }
        }
        if found.len() > MOST_FILES {
            return Err(format!(
                "{} holds more than {MOST_FILES} files",
                path.display()
            ));
        }
    }
    found.sort();
    Ok(found)
}

fn text(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let open = fs::File::open(file).map_err(|error| error.to_string())?;
    let mut limited = open.take(MOST_BYTES + 1);
    limited
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    Ok(text)
}

fn documents(file: &Path, text: &str, facts: &mut Facts) {
    for document in serde_yaml::Deserializer::from_str(text) {
        match Value::deserialize(document) {
            Ok(value) => object(value, facts),
            Err(error) => {
                let file = file.display().to_string();
                facts.unreadable.push((file, error.to_string()));
                // The rest of the text cannot be separated from this document.
                return;
            }
        }
    }
}

fn object(value: Value, facts: &mut Facts) {
    if let Some(items) = value.get("items").and_then(Value::as_array) {
        for item in items.clone() {
            object(item, facts);
        }
        return;
    }
    let object = LiveObject(value);
    let version = object.text("/apiVersion");
    let kind = LiveKind::ALL.into_iter().find(|kind| {
        let path = kind.path();
        object.kind() == kind.as_str()
            && (path.ends_with(&format!("/{version}")) && !version.is_empty())
    });
    let Some(kind) = kind else {
        return;
    };
    if let Some(Reading::Known(objects)) = facts.objects.get_mut(&kind) {
        objects.push(object);
    }
}

/// The same manifest in another namespace, for manifests that state none.
pub fn in_namespace(facts: &mut Facts, namespace: &str) {
    for (kind, reading) in &mut facts.objects {
        let Reading::Known(objects) = reading else {
            continue;
        };
        for object in objects.iter_mut().filter(|_| kind.is_namespaced()) {
            if object.namespace().is_empty()
                && let Some(Value::Object(metadata)) = object.0.pointer_mut("/metadata")
            {
                metadata.insert("namespace".to_owned(), json!(namespace));
            }
        }
    }
    facts.declare();
}
