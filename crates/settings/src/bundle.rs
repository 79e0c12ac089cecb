//! All settings in one file: the keys of the configuration file and the policy ConfigMaps, for
//! an offline plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_yaml::{Mapping, Value};

use super::problem::{SettingError, Severity, Warning};
use super::sources::{Data, PolicySources, Sources};
use super::statics::StaticSettings;
use super::{FirstGeneration, start};
use wva_base::nearest::with_suggestion;
use wva_base::yaml::{MAX_TEXT, YamlError, check_bounds};
use wva_policy::params::DynamicSettings;

/// Largest file that is read, in bytes.
pub const MAX_BUNDLE: usize = 16 * MAX_TEXT;

/// Sections that hold entries of policy ConfigMaps.
const SECTIONS: [&str; 4] = ["saturation", "scaleToZero", "queueingModel", "serviceClasses"];

/// The section of namespaces, each with policy sections of its own.
const NAMESPACES: &str = "namespaces";

/// An address that every setting needs and no plan uses.
const NO_PROMETHEUS: (&str, &str) = ("PROMETHEUS_BASE_URL", "https://prometheus.invalid");

/// Settings, and what is to be known about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// What is in force.
    pub settings: DynamicSettings,
    /// What a process keeps for its life.
    pub statics: Arc<StaticSettings>,
    /// What a running controller would mention in its log.
    pub notes: Vec<String>,
}

/// Reads settings for one plan, as [`read_noted`] does, without the notes.
pub fn read_bundle(text: &str) -> Result<DynamicSettings, Vec<String>> {
    Ok(read_noted(text)?.settings)
}

/// Reads settings for one plan. What was meant and does not act, like an unknown key, is refused,
/// where a running controller would only mention it: an offline plan has no log.
///
/// # Errors
/// Everything that is not accepted, with its path and the remedy.
pub fn read_noted(text: &str) -> Result<Bundle, Vec<String>> {
    let (sources, form, mut errors) = sources(text)?;
    let said = |error: &dyn ToString| placed(&error.to_string(), form);
    let (started, fatal) = match start(&sources) {
        Ok(started) => (Some(started), Vec::new()),
        Err(fatal) => (start_without(sources, &fatal), fatal),
    };
    errors.extend(fatal.iter().map(|error| said(error)));
    let Some(started) = started else {
        return Err(errors);
    };
    // Nothing is in force instead: there is no plan.
    let problems = started.diagnostics.problems.iter();
    errors.extend(problems.map(|problem| said(&problem.subject())));
    let is_mistake = |notice: &&Warning| notice.severity() == Severity::Mistake;
    let (mistakes, notes): (Vec<_>, Vec<_>) =
        started.diagnostics.notices.iter().partition(is_mistake);
    errors.extend(mistakes.into_iter().map(|mistake| said(mistake)));
    if errors.is_empty() {
        Ok(Bundle {
            settings: (*started.generation.dynamic).clone(),
            statics: Arc::clone(&started.generation.statics),
            notes: notes.into_iter().map(ToString::to_string).collect(),
        })
    } else {
        Err(errors)
    }
}

/// The sections of policy ConfigMaps that a file does not have, so that their defaults are in force.
pub fn absent_sections(text: &str) -> Vec<&'static str> {
    let text = text.trim_start_matches('\u{feff}');
    let keys: Mapping = serde_yaml::from_str(text).unwrap_or_default();
    let sections = SECTIONS.into_iter();
    sections.filter(|section| !keys.contains_key(*section)).collect()
}

/// A start without the settings that forbid one, so that these hide nothing else that is refused.
fn start_without(mut sources: Sources, fatal: &[SettingError]) -> Option<FirstGeneration> {
    let (key, address) = NO_PROMETHEUS;
    (sources.environment).insert(key.to_owned(), address.to_owned());
    let mut keys: Mapping = serde_yaml::from_str(sources.config_file.as_deref()?).ok()?;
    let mut fatal = fatal.to_vec();
    loop {
        let before = keys.len();
        keys.retain(|key, _| {
            let is_named = |name: &str| {
                let mut names =
                    (fatal.iter()).flat_map(|error| [error.key, error.origin.name.as_str()]);
                names.any(|refused| refused.eq_ignore_ascii_case(name))
            };
            !key.as_str().is_some_and(is_named)
        });
        if keys.len() == before {
            return None;
        }
        sources.config_file = Some(serde_yaml::to_string(&keys).ok()?);
        match start(&sources) {
            Ok(started) => return Some(started),
            Err(further) => fatal = further,
        }
    }
}

/// How the entries of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Each as the text that a ConfigMap holds, or there are none.
    Text,
    /// At least one as YAML of the file itself, which is written anew before it is read.
    Yaml,
}

/// A message, without the position in a text that was written anew.
fn placed(message: &str, form: Form) -> String {
    match message.rsplit_once(" at line ") {
        Some((before, position)) if form == Form::Yaml => {
            let mut rest = position.split_once(" column ").map_or("", |(_, rest)| rest);
            rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
            format!("{before}{rest}")
        }
        _ => message.to_owned(),
    }
}

/// The sources that a file stands for, how it is written, and what belongs to none of them.
fn sources(text: &str) -> Result<(Sources, Form, Vec<String>), Vec<String>> {
    if text.len() > MAX_BUNDLE {
        let size = text.len();
        return Err(vec![format!("the settings have {size} bytes; at most {MAX_BUNDLE} are read")]);
    }
    let text = text.trim_start_matches('\u{feff}');
    check_bounds(text).map_err(|error| vec![error.to_string()])?;
    let mut keys = match serde_yaml::from_str(text) {
        Ok(Value::Null) => Mapping::new(),
        Ok(Value::Mapping(keys)) => keys,
        Ok(_) => {
            return Err(vec!["the settings are not a list of keys with values".to_owned()]);
        }
        Err(error) => return Err(vec![YamlError::from(error).to_string()]),
    };
    let form = form_of(&keys);
    let mut errors = Vec::new();
    let mut sources = Sources::default();
    let [saturation, to_zero, queueing, classes] =
        SECTIONS.map(|section| take(&mut keys, section, section, &mut errors));
    sources.saturation.global = saturation;
    sources.scale_to_zero.global = to_zero;
    sources.queueing_model.global = queueing;
    sources.service_classes = classes;
    if let Some(namespaces) = keys.remove(NAMESPACES) {
        read_namespaces(namespaces, &mut sources, &mut errors);
    }
    errors.extend(keys.iter().filter_map(unknown_section));
    keys.retain(|key, value| !key.is_string() || !is_section(value));
    let (key, address) = NO_PROMETHEUS;
    if !keys.contains_key(key) {
        sources.environment.insert(key.to_owned(), address.to_owned());
    }
    let rest = serde_yaml::to_string(&keys).map_err(|error| vec![error.to_string()])?;
    sources.config_file = Some(rest);
    Ok((sources, form, errors))
}

fn form_of(keys: &Mapping) -> Form {
    let namespaces = keys.get(NAMESPACES).and_then(Value::as_mapping);
    let namespaces = namespaces.into_iter().flat_map(Mapping::values);
    let scopes = std::iter::once(keys).chain(namespaces.filter_map(Value::as_mapping));
    let sections = scopes.flat_map(|scope| SECTIONS.iter().filter_map(|name| scope.get(*name)));
    let mut entries = sections.filter_map(Value::as_mapping).flat_map(Mapping::values);
    if entries.all(Value::is_string) { Form::Text } else { Form::Yaml }
}

fn is_section(value: &Value) -> bool {
    matches!(value, Value::Mapping(_) | Value::Sequence(_))
}

/// A key with more than a single value below it, which none of the settings has.
fn unknown_section((key, value): (&Value, &Value)) -> Option<String> {
    let key = key.as_str()?;
    is_section(value).then(|| {
        let known = SECTIONS.into_iter().chain([NAMESPACES]);
        format!(
            "sections are {}, and other keys take a single value: unknown section {}",
            known.clone().collect::<Vec<_>>().join(", "),
            with_suggestion(key, known)
        )
    })
}

fn read_namespaces(value: Value, sources: &mut Sources, errors: &mut Vec<String>) {
    let misplaced =
        || format!("{NAMESPACES}: write each namespace with its policy sections below it");
    let Value::Mapping(namespaces) = value else {
        errors.push(misplaced());
        return;
    };
    for (name, sections) in namespaces {
        let (Value::String(name), Value::Mapping(mut sections)) = (name, sections) else {
            errors.push(misplaced());
            continue;
        };
        let mut put = |policy: &mut PolicySources, section: &str| {
            let path = format!("{NAMESPACES}.{name}.{section}");
            if let Some(data) = take(&mut sections, section, &path, errors) {
                policy.namespaces.insert(Arc::from(name.as_str()), data);
            }
        };
        put(&mut sources.saturation, SECTIONS[0]);
        put(&mut sources.scale_to_zero, SECTIONS[1]);
        put(&mut sources.queueing_model, SECTIONS[2]);
        let unknown = sections.keys().filter_map(Value::as_str);
        errors.extend(unknown.map(|key| unknown_of_namespace(&name, key)));
    }
}

/// A section that a namespace does not have.
fn unknown_of_namespace(name: &str, key: &str) -> String {
    let [saturation, to_zero, queueing, classes] = SECTIONS;
    if key == classes {
        return format!(
            "{NAMESPACES}.{name}.{classes}: service classes are for all namespaces; write {classes} \
             at the level of {NAMESPACES}"
        );
    }
    let own = [saturation, to_zero, queueing];
    let unknown = with_suggestion(key, own);
    let dot = if unknown.ends_with('?') { "" } else { "." };
    format!(
        "{NAMESPACES}.{name}: unknown section {unknown}{dot} A namespace has {}",
        own.join(", ")
    )
}

/// Takes the entries of one ConfigMap out of a mapping: each a text, as in a ConfigMap, or YAML.
fn take(keys: &mut Mapping, section: &str, path: &str, errors: &mut Vec<String>) -> Option<Data> {
    let Value::Mapping(entries) = keys.remove(section)? else {
        errors.push(format!("{path}: write the entries of its ConfigMap below it, like default"));
        return None;
    };
    let mut data = BTreeMap::new();
    for (name, entry) in entries {
        let text = match entry {
            Value::String(text) => Ok(text),
            other => serde_yaml::to_string(&other),
        };
        match (name, text) {
            (Value::String(name), Ok(text)) => {
                data.insert(name, text);
            }
            (_, Err(error)) => errors.push(format!("{path}: {error}")),
            (name, Ok(_)) => errors
                .push(format!("{path}: {name:?} is no name of an entry; write text like default")),
        }
    }
    Some(data)
}

#[cfg(test)]
mod tests;
