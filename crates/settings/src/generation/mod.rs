//! Generations: what is in force, and what a change of the sources makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dynamic::build;
use super::entries::{ScopeChange, changes};
use super::layers::{base_texts, resolve};
use super::logging::LogLevel;
use super::problem::{Diagnostics, SettingError};
use super::purpose::Purpose;
use super::rejection::Rejected;
use super::schema::{self, Mutability, Reach, Spec};
use super::secret::Secret;
use super::sources::Sources;
use super::statics::StaticSettings;
use super::values::SettingValues;
use wva_policy::params::DynamicSettings;

/// Everything in force at a time. Readers take one per unit of work.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// 1 at start, one more with each change of content.
    pub number: u64,
    /// Fixed for the life of the process.
    pub statics: Arc<StaticSettings>,
    /// In force until the next generation.
    pub dynamic: Arc<DynamicSettings>,
    /// Value and origin of every setting.
    pub values: Arc<SettingValues>,
    /// What the main ConfigMap said about static settings at start. A key that still says it was
    /// not edited, even if a flag or the environment made another value run.
    baseline: Arc<BTreeMap<&'static str, Secret>>,
}

impl Generation {
    /// The more verbose of `LOG_LEVEL` and `V`. Verbosity 0 adds nothing, also to a level below info.
    pub fn log_level(&self) -> LogLevel {
        let level = self.values.log_level(&schema::LOG_LEVEL);
        match self.values.count(&schema::VERBOSITY) {
            0 => level,
            verbosity => level.max(LogLevel::from_verbosity(verbosity)),
        }
    }
}

/// The first generation.
#[derive(Debug, Clone)]
pub struct FirstGeneration {
    /// What is in force.
    pub generation: Generation,
    /// What was found on the way.
    pub diagnostics: Diagnostics,
}

/// What a change of the sources leads to.
#[derive(Debug, Clone)]
pub struct GenerationTransition {
    /// The next generation; `None` if the content is the same.
    pub next: Option<Generation>,
    /// What differs from the generation before.
    pub changes: Vec<SettingChange>,
    /// Static settings whose edit is not followed, all that the main ConfigMap now holds.
    pub rejected: Vec<Rejected>,
    /// What is refused or worth a line, all of it, whether it was there before or not.
    pub diagnostics: Diagnostics,
}

/// One applied change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// What to log.
    pub message: &'static str,
    /// Key of the setting, or name of the policy.
    pub key: &'static str,
    /// The namespace whose policy changed; `None` is global.
    pub namespace: Option<Arc<str>>,
    /// What was in force: a value, or a number of entries.
    pub old: String,
    /// What is in force.
    pub new: String,
    /// Keys of the entries that changed; those that came or went say so.
    pub entries: Vec<String>,
}

/// The first generation from all sources.
///
/// # Errors
/// Everything that forbids to start, at once.
pub fn start(sources: &Sources) -> Result<FirstGeneration, Vec<SettingError>> {
    let resolution = resolve(sources, None);
    let mut errors = resolution.fatal;
    let mut diagnostics = resolution.diagnostics;
    let statics = match StaticSettings::build(&resolution.values) {
        Ok(statics) if errors.is_empty() => statics,
        Ok(_) => return Err(errors),
        Err(contradictions) => {
            errors.extend(contradictions);
            return Err(errors);
        }
    };
    let dynamic = build(&resolution.values, &statics, sources, None, &mut diagnostics);
    let base = base_texts(sources).unwrap_or_default();
    let written = |spec: &'static Spec| Some((spec.name, Secret::new(base.written(spec)?)));
    Ok(FirstGeneration {
        generation: Generation {
            number: 1,
            statics: Arc::new(statics),
            dynamic: Arc::new(dynamic),
            values: Arc::new(resolution.values),
            baseline: Arc::new(static_rows().filter_map(written).collect()),
        },
        diagnostics,
    })
}

/// What the present sources make of the current generation. The sources must be complete: a
/// ConfigMap that is missing from them counts as deleted.
pub fn transition(current: &Generation, sources: &Sources) -> GenerationTransition {
    let resolution = resolve(sources, Some(&current.values));
    let mut diagnostics = resolution.diagnostics;
    let dynamic = build(
        &resolution.values,
        &current.statics,
        sources,
        Some(&current.dynamic),
        &mut diagnostics,
    );
    let mut changes = value_changes(&current.values, &resolution.values);
    changes.extend(policy_changes(&current.dynamic, &dynamic));
    let next = (!changes.is_empty()).then(|| Generation {
        number: current.number.saturating_add(1),
        statics: current.statics.clone(),
        dynamic: Arc::new(dynamic),
        values: Arc::new(resolution.values),
        baseline: current.baseline.clone(),
    });
    GenerationTransition { next, changes, rejected: rejected(current, sources), diagnostics }
}

fn static_rows() -> impl Iterator<Item = &'static Spec> {
    schema::all()
        .filter(|spec| spec.change == Mutability::Static && spec.reach == Reach::Everywhere)
}

/// Keys whose text is neither what runs nor what stood there at start. An absent key is no edit; an
/// empty one is where nothing could be meant by it.
fn rejected(current: &Generation, sources: &Sources) -> Vec<Rejected> {
    let Ok(base) = base_texts(sources) else {
        return Vec::new();
    };
    static_rows()
        .filter_map(|spec| {
            let text =
                base.written(spec).filter(|text| !text.is_empty() || spec.kind.may_be_empty())?;
            let running = current.values.get(spec);
            let as_at_start =
                current.baseline.get(spec.name).is_some_and(|before| before.expose() == text);
            let as_running = spec.parse(text).is_ok_and(|value| value == running.value);
            (!as_at_start && !as_running).then(|| Rejected {
                key: spec.name,
                display: spec.title,
                old: running.value.to_string(),
                new: spec.show(text),
            })
        })
        .collect()
}

/// Live settings whose value differs; where it came from is no difference.
fn value_changes(old: &SettingValues, new: &SettingValues) -> Vec<SettingChange> {
    schema::all()
        .filter_map(|spec| {
            let (old, new) = (old.get(spec).value, new.get(spec).value);
            (old != new).then(|| SettingChange {
                message: spec.applied,
                key: spec.name,
                namespace: None,
                old: old.to_string(),
                new: new.to_string(),
                entries: Vec::new(),
            })
        })
        .collect()
}

fn policy_changes(old: &DynamicSettings, new: &DynamicSettings) -> Vec<SettingChange> {
    let policies = [
        (
            Purpose::Saturation,
            "Updated saturation config",
            changes(&old.saturation.entries, &new.saturation.entries),
        ),
        (
            Purpose::ScaleToZero,
            "Updated scale-to-zero config",
            changes(&old.scale_to_zero.entries, &new.scale_to_zero.entries),
        ),
        (
            Purpose::QueueingModel,
            "Updated queueing model config",
            changes(&old.queueing_model.entries, &new.queueing_model.entries),
        ),
        (
            Purpose::ServiceClasses,
            "Updated service classes",
            ScopeChange::between(None, &old.service_classes.entries, &new.service_classes.entries)
                .into_iter()
                .collect(),
        ),
    ];
    policies
        .into_iter()
        .flat_map(|(purpose, message, changes)| {
            changes.into_iter().map(move |change| SettingChange {
                message,
                key: purpose.as_str(),
                namespace: change.namespace,
                old: entry_count(change.old),
                new: entry_count(change.new),
                entries: change.entries,
            })
        })
        .collect()
}

fn entry_count(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}

#[cfg(test)]
mod tests;
