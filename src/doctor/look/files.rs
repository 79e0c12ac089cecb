//! Reads facts from manifests, without a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::controllers::{controller, has_image, is_controller};
use super::schema;
use crate::api::{INSTANCE_LABEL, variant_autoscaling};
use crate::doctor::checks::likely_purpose;
use crate::doctor::facts::{ControllerFacts, FactSource, Facts, LiveKind, Reading};
use crate::doctor::object::{LiveObject, ObjectName, list};
use crate::policy::pod_autoscaler::object::{API_VERSION, KIND};
use crate::settings::pool_group::PoolGroup;
use crate::settings::purpose::Purpose;
use wva_base::names::{check_namespace, check_object_name};
use wva_base::nearest::nearest;
use wva_base::yaml::check_keys;

const MOST_FILES: usize = 10_000;
/// Most bytes of a file.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// The key of YAML by which a mapping takes in others.
const MERGE_KEY: &str = "<<";
/// Why a template is not read.
const TEMPLATE: &str = "it is a template; render it first: helm template";

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
    let files = files(path)?;
    let patches = patches(path, &files);
    for file in files {
        let is_patch = file.canonicalize().is_ok_and(|file| patches.contains(&file));
        match text(&file) {
            Ok(text) => documents(&file, &text, is_patch, &mut facts),
            Err((why, true)) => facts.unreadable.push((file.display().to_string(), why)),
            Err((why, false)) => {
                let why = format!("it is no manifest: {why}");
                not_read(file.display().to_string(), why, &mut facts);
            }
        }
    }
    let deployments: Vec<LiveObject> = facts
        .all(LiveKind::Deployment)
        .iter()
        // One without an image is a patch of another one.
        .filter(|one| is_controller(one) && has_image(one))
        .cloned()
        .collect();
    let controllers = deployments.iter().map(|one| of_files(one, &facts));
    facts.controllers = Reading::Known(controllers.collect());
    if deployments.is_empty() {
        without_controller(&mut facts);
    }
    facts.declare();
    Ok(facts)
}

/// The controller of a Deployment. Where several files hold one of its ConfigMaps, each of them is judged as the patch
/// of the others, so that none hides what is wrong in another.
fn of_files(deployment: &LiveObject, facts: &Facts) -> ControllerFacts {
    let mut judged = controller(deployment, facts);
    let names = judged.generation().map(|one| one.statics.config_maps.clone());
    let is_read = |map: &LiveObject| {
        let mut names = names.iter();
        names.all(|names| names.purpose(map.name()).is_some())
    };
    let maps = facts.all(LiveKind::ConfigMap);
    let places = maps.iter().enumerate();
    let last: BTreeMap<(&str, &str), usize> =
        places.map(|(place, map)| ((map.namespace(), map.name()), place)).collect();
    for (place, map) in maps.iter().enumerate().filter(|(_, map)| is_read(map)) {
        if last.get(&(map.namespace(), map.name())) == Some(&place) {
            continue;
        }
        let others = maps.iter().filter(|one| !std::ptr::eq(*one, map));
        let ordered = others.chain([map]).cloned().collect();
        let mut facts = Facts::default();
        facts.objects.insert(LiveKind::ConfigMap, Reading::Known(ordered));
        let other = controller(deployment, &facts);
        judged.problems.extend(other.problems);
        judged.notes.extend(other.notes);
        // Where all of them together are refused, that is a finding already.
        let errors = other.settings.err().filter(|_| judged.settings.is_ok());
        let errors = errors.into_iter().flatten();
        let errors = errors.map(|why| (Some(map.title()), why));
        judged.problems.extend(errors);
    }
    judged
}

/// Judges ConfigMaps of thresholds, each as the only one of a controller with defaults.
fn without_controller(facts: &mut Facts) {
    let maps = facts.all(LiveKind::ConfigMap).iter();
    let maps = maps.filter(|map| likely_purpose(map) == Some(Purpose::Saturation));
    let judged: Vec<_> = maps.map(|map| (map.title(), judged_alone(map))).collect();
    for (title, judged) in judged {
        let problems = judged.problems.into_iter().map(|(_, why)| why);
        let faults = judged.settings.err().unwrap_or_else(|| problems.collect());
        let faults = faults.into_iter().map(|fault| (title.clone(), fault));
        facts.settings_faults.extend(faults);
        let notes = judged.notes.into_iter().map(|(_, note)| {
            let note = format!("{note}; every other setting is taken at its default");
            (title.clone(), note)
        });
        facts.settings_notes.extend(notes);
    }
}

fn judged_alone(map: &LiveObject) -> ControllerFacts {
    let mut facts = Facts::default();
    facts.objects.insert(LiveKind::ConfigMap, Reading::Known(vec![map.clone()]));
    in_namespace(&mut facts, "default");
    let namespace = match map.namespace() {
        "" => "default",
        stated => stated,
    };
    let variables = [
        ("POD_NAMESPACE", namespace),
        ("PROMETHEUS_BASE_URL", "https://prometheus"),
        ("SATURATION_CONFIG_MAP_NAME", map.name()),
    ];
    let variables = variables.map(|(name, value)| json!({ "name": name, "value": value }));
    let deployment = LiveObject::new(json!({
        "metadata": { "name": "controller", "namespace": namespace },
        "spec": { "template": { "spec": { "containers": [{ "env": variables }] } } },
    }));
    controller(&deployment, &facts)
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
            return Err(format!("{} holds more than {MOST_FILES} files", path.display()));
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file; otherwise why it has none, and whether it may be a manifest.
fn text(file: &Path) -> Result<String, (String, bool)> {
    let mut bytes = Vec::new();
    fs::File::open(file)
        .and_then(|open| open.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| (error.to_string(), true))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        let why = format!("it has more than {MOST_BYTES} bytes");
        return Err((why, states_version(&bytes)));
    }
    String::from_utf8(bytes).map_err(|error| (error.to_string(), states_version(error.as_bytes())))
}

/// Whether bytes, UTF-16 too, state the version of an object. In a vocabulary of a model the word has a number.
fn states_version(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).replace('\0', "");
    let mut places = text.split("apiVersion").skip(1);
    places.any(|rest| {
        let rest = rest.trim_start_matches(['"', '\'']).trim_start();
        let value = rest.strip_prefix(':').map(str::trim_start);
        value.is_some_and(|value| !value.starts_with(|letter: char| letter.is_ascii_digit()))
    })
}

/// Files that a kustomization applies to other objects. It may stand in any folder from that of a file up to the named
/// path, and its name may have no extension.
fn patches(path: &Path, files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let root = match path.parent() {
        Some(folder) if path.is_file() => folder,
        _ => path,
    };
    let folders = files.iter().flat_map(|file| {
        let folders = file.ancestors().skip(1);
        folders.take_while(move |folder| folder.starts_with(root))
    });
    let folders: BTreeSet<&Path> = folders.collect();
    let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let kustomizations = folders.into_iter().flat_map(|folder| names.map(|name| folder.join(name)));
    let mut found = BTreeSet::new();
    for file in kustomizations {
        let value = text(&file).map(|text| serde_yaml::from_str::<Value>(&text));
        let Ok(Ok(value)) = value else { continue };
        let patches = list(&value, "/patches").iter();
        let paths = patches.filter_map(|patch| patch.get("path"));
        let paths = paths.chain(list(&value, "/patchesStrategicMerge"));
        let paths = paths.filter_map(Value::as_str);
        found.extend(paths.filter_map(|path| file.with_file_name(path).canonicalize().ok()));
    }
    found
}

fn documents(file: &Path, text: &str, is_patch: bool, facts: &mut Facts) {
    // Some editors begin a file with a mark of its byte order, which the parser takes for a key.
    let text = text.trim_start_matches('\u{feff}');
    let file: Arc<str> = file.display().to_string().into();
    let mut seen = BTreeSet::new();
    let again = serde_yaml::Deserializer::from_str(text);
    for (document, again) in serde_yaml::Deserializer::from_str(text).zip(again) {
        match Value::deserialize(document) {
            Ok(mut value) => {
                merge(&mut value);
                let repeated = value.get("kind").and_then(|_| check_keys(again).err());
                if let Some(why) = repeated {
                    facts.unreadable.push((file.to_string(), why.to_string()));
                    let holder = holder(&value, &why.to_string()).clone();
                    let object = LiveObject::new(holder).in_file(Some(Arc::clone(&file)));
                    facts.ambiguous.push(object.title());
                }
                object(&file, value, is_patch, &mut seen, facts);
            }
            Err(error) => {
                let file = file.to_string();
                if text.contains("{{") {
                    not_read(file, TEMPLATE.to_owned(), facts);
                } else if states_version(text.as_bytes()) {
                    facts.unreadable.push((file, error.to_string()));
                } else {
                    not_read(file, format!("it is no manifest: {error}"), facts);
                }
                // The rest of the text cannot be separated from this document.
                return;
            }
        }
    }
}

fn not_read(file: String, why: String, facts: &mut Facts) {
    let line = (file, why);
    if !facts.not_read.contains(&line) {
        facts.not_read.push(line);
    }
}

/// Takes in the mappings of YAML's merge keys, as kubectl does. A field of the mapping itself wins, then the first one.
fn merge(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(merge),
        Value::Object(fields) => {
            fields.values_mut().for_each(merge);
            let sources = match fields.get(MERGE_KEY) {
                Some(Value::Array(sources)) => sources.clone(),
                Some(source) => vec![source.clone()],
                None => return,
            };
            if !sources.iter().all(Value::is_object) {
                return;
            }
            fields.remove(MERGE_KEY);
            for source in sources {
                for (name, value) in source.as_object().into_iter().flatten() {
                    fields.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
        _ => {}
    }
}

/// The object of a document, or of a list that it is, in which a fault lies.
fn holder<'a>(document: &'a Value, fault: &str) -> &'a Value {
    let place = fault.strip_prefix("items[");
    let index = place.and_then(|place| place.split_once(']')?.0.parse::<usize>().ok());
    let item = index.and_then(|index| document.get("items")?.get(index));
    item.unwrap_or(document)
}

fn object(
    file: &Arc<str>,
    value: Value,
    is_patch: bool,
    seen: &mut BTreeSet<(LiveKind, ObjectName)>,
    facts: &mut Facts,
) {
    if let Some(items) = value.get("items").and_then(Value::as_array) {
        for item in items.clone() {
            object(file, item, is_patch, seen, facts);
        }
        return;
    }
    let object = LiveObject::new(value).in_file(Some(Arc::clone(file)));
    if object.kind().is_empty() {
        return;
    }
    facts.objects_read += 1;
    let version = object.text("/apiVersion");
    let mut kinds = LiveKind::ALL.into_iter();
    let kind = kinds.find(|kind| {
        let path = kind.path();
        object.kind() == kind.as_str()
            && (path.ends_with(&format!("/{version}")) && !version.is_empty())
    });
    // Of some groups any version is read.
    let is_pool = object.kind() == LiveKind::InferencePool.as_str()
        && [PoolGroup::GATEWAY, PoolGroup::LLM_D]
            .contains(&version.split('/').next().unwrap_or_default());
    let kind = kind.or_else(|| is_pool.then_some(LiveKind::InferencePool));
    let Some(kind) = kind else {
        let why = unknown(object.kind(), version);
        facts.malformed.extend(why.map(|why| (object.title(), why)));
        return;
    };
    if is_template(kind, &object) {
        facts.objects_read -= 1;
        return not_read(file.to_string(), TEMPLATE.to_owned(), facts);
    }
    let title = object.title();
    if !facts.ambiguous.contains(&title) {
        let faults = refused(kind, &object).into_iter();
        // What a patch leaves out is in the object that it patches.
        let faults = faults.filter(|fault| !is_patch || !fault.ends_with(schema::REQUIRED));
        facts.malformed.extend(faults.map(|fault| (title.clone(), fault)));
    }
    if !title.name.is_empty() && !seen.insert((kind, title.clone())) {
        let why = "the file holds it twice, and the last one is applied; remove one";
        facts.malformed.push((title, why.to_owned()));
    }
    if is_patch && !is_whole(kind, &object) {
        return;
    }
    if let Some(Reading::Known(objects)) = facts.objects.get_mut(&kind) {
        objects.push(object);
    }
}

/// Whether what is judged of an object is yet to be rendered. Pods, ConfigMaps and triggers may have own braces.
fn is_template(kind: LiveKind, object: &LiveObject) -> bool {
    let judged = match kind {
        LiveKind::VariantAutoscaling
        | LiveKind::PodAutoscaler
        | LiveKind::HorizontalPodAutoscaler => Some("/spec"),
        LiveKind::ScaledObject => Some("/spec/scaleTargetRef"),
        _ => None,
    };
    let holds = |place: &str| {
        let value = object.0.pointer(place);
        value.is_some_and(|value| value.to_string().contains("{{"))
    };
    let mut places = ["/metadata/name", "/metadata/namespace"].into_iter().chain(judged);
    places.any(holds)
}

/// Whether a patch has the fields without which its kind cannot be read.
fn is_whole(kind: LiveKind, object: &LiveObject) -> bool {
    let needed: &[&str] = match kind {
        LiveKind::VariantAutoscaling => &["/spec/scaleTargetRef", "/spec/modelID"],
        LiveKind::PodAutoscaler | LiveKind::ScaledObject => &["/spec/scaleTargetRef"],
        _ => &[],
    };
    needed.iter().all(|field| object.has(field))
}

/// Why an object that is not read is probably meant to be one of ours.
fn unknown(kind: &str, version: &str) -> Option<String> {
    const VARIANT: &str = "VariantAutoscaling";
    let group = version.split('/').next().unwrap_or_default();
    let expected = match (kind, group) {
        (VARIANT, _) => "llmd.ai/v1alpha1",
        // Other groups have a kind of this name.
        (KIND, "" | "autoscaling.aibrix.ai") => API_VERSION,
        ("HorizontalPodAutoscaler", _) if version.starts_with("autoscaling/v2beta") => {
            "autoscaling/v2"
        }
        (_, "llmd.ai") => {
            return Some(format!("kind {kind:?} is not known in {version}; write {VARIANT}"));
        }
        _ => return None,
    };
    Some(format!("apiVersion {version:?} is not known; write {expected}"))
}

/// What an API server refuses. The rules of PodAutoscalers are more than those of their definition.
fn refused(kind: LiveKind, object: &LiveObject) -> Vec<String> {
    let mut faults = match kind {
        LiveKind::VariantAutoscaling => {
            schema::faults(&variant_autoscaling::definition(), &object.0)
        }
        _ => Vec::new(),
    };
    let (name, namespace) = (object.name(), object.namespace());
    if name.is_empty() && object.text("/metadata/generateName").is_empty() {
        faults.push(format!("metadata.name{}", schema::REQUIRED));
    }
    faults.extend(misspelt_instance(object));
    let checks = [
        ("name", name, check_object_name(name)),
        ("namespace", namespace, check_namespace(namespace)),
    ];
    let wrong = checks.into_iter().filter(|(_, text, _)| !text.is_empty());
    faults.extend(
        wrong.filter_map(|(field, _, checked)| {
            Some(format!("metadata.{field}: {}", checked.err()?))
        }),
    );
    faults
}

/// A label that was probably meant to name the controller in charge.
fn misspelt_instance(object: &LiveObject) -> Option<String> {
    let (group, name) = INSTANCE_LABEL.split_once('/')?;
    let labels = object.0.pointer("/metadata/labels")?.as_object()?;
    let near = labels.keys().find(|label| {
        let stated = label.split_once('/').filter(|(of, _)| *of == group);
        stated.is_some_and(|(_, stated)| stated != name && nearest(stated, [name]).is_some())
    })?;
    Some(format!("label {near:?} has no effect; write {INSTANCE_LABEL}"))
}

/// The same manifest in another namespace, for manifests that state none.
pub fn in_namespace(facts: &mut Facts, namespace: &str) {
    let moved = |object: &mut ObjectName| {
        let kinds = LiveKind::ALL.into_iter().filter(|kind| kind.is_namespaced());
        if object.namespace.is_empty()
            && kinds.map(LiveKind::as_str).any(|kind| kind == object.kind)
        {
            namespace.clone_into(&mut object.namespace);
        }
    };
    let settings = facts.settings_faults.iter_mut();
    let settings = settings.chain(&mut facts.settings_notes);
    let faults = facts.malformed.iter_mut().chain(settings);
    for object in faults.map(|(object, _)| object).chain(&mut facts.ambiguous) {
        moved(object);
    }
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
