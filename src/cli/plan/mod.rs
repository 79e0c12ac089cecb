//! `wva plan`: repeats a decision offline, from a file, without a cluster.

mod arguments;
mod autoscalers;
mod check;
mod render;

#[cfg(test)]
mod autoscaler_tests;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod note_tests;
#[cfg(test)]
mod tests;

use std::io::Read as _;
use std::process::ExitCode;

use schemars::schema_for;

pub(super) use self::arguments::PlanFlags;
use self::arguments::{Detail, PlanArguments, PlanCommand};
use self::autoscalers::AutoscalerPlan;
use self::render::{RenderedOutcome, render};
pub(super) use self::render::{model_notes, steps};
use super::{complain, misused, print};
use crate::policy::document::{DocumentError, MAX_DOCUMENT, Situation, SnapshotDocument};
use crate::policy::key::ObjectKey;
use crate::policy::learned::Learned;
use crate::policy::params::DynamicSettings;
use crate::policy::plan::Plan;
use crate::policy::{check_plan, learn, plan, tiered};
use crate::settings::StaticSettings;
use crate::settings::bundle::{Bundle, read_noted};

/// The generation of settings that come from a file.
const GENERATION: u64 = 1;

/// Runs the command.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let outcome = match arguments::parse(arguments) {
        Ok(PlanCommand::Help(text)) => Ok(text),
        Ok(PlanCommand::Schema) => schema().map_err(|error| vec![error.to_string()]),
        Ok(PlanCommand::Plan(arguments)) => {
            // Apart from the answer, which programs read.
            if let Some(note) = settings_note(&arguments) {
                complain(&format!("note: {note}\n"));
            }
            read(&arguments)
                .and_then(|(snapshot, settings)| answer(&snapshot, &settings, &arguments))
        }
        Err(error) => Err(vec![error.to_string()]),
    };
    match outcome {
        Ok(text) => print(&text),
        Err(errors) => misused(errors),
    }
}

/// A snapshot has no settings.
fn settings_note(arguments: &PlanArguments) -> Option<&'static str> {
    let is_default = arguments.settings.is_none();
    is_default
        .then_some("default settings are in force; name those of the controller with --settings")
}

fn schema() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schema_for!(SnapshotDocument))?;
    text.push('\n');
    Ok(text)
}

fn read(arguments: &PlanArguments) -> Result<(String, String), Vec<String>> {
    let settings = arguments.settings.as_deref().map(load).transpose()?;
    Ok((load(&arguments.snapshot)?, settings.unwrap_or_default()))
}

/// The text of a file; of a longer one than any that is read, its beginning.
pub(super) fn load(path: &str) -> Result<String, Vec<String>> {
    let limit = u64::try_from(MAX_DOCUMENT).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    file.and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| vec![format!("{path}: {error}; name a file that can be read")])?;
    let binary = || {
        vec![format!(
            "{path}: the file is binary; name one that holds YAML or JSON"
        )]
    };
    let text = String::from_utf8(bytes).map_err(|_no_text| binary())?;
    if text.contains('\0') {
        return Err(binary());
    }
    Ok(text)
}

fn answer(
    snapshot: &str,
    settings: &str,
    arguments: &PlanArguments,
) -> Result<String, Vec<String>> {
    let settings_name = arguments.settings.as_deref().unwrap_or("settings");
    let bundle = read_noted(settings).map_err(|errors| {
        errors
            .iter()
            .map(|error| format!("{settings_name}: {error}"))
            .collect::<Vec<_>>()
    });
    let refused = |error: DocumentError| -> Vec<String> {
        let text = error.to_string();
        text.lines()
            .map(|line| format!("{}: {line}", arguments.snapshot))
            .collect()
    };
    let document = SnapshotDocument::parse(snapshot).map_err(refused);
    let (bundle, document) = match (bundle, document) {
        (Ok(bundle), Ok(document)) => (bundle, document),
        (bundle, document) => {
            let errors = bundle.err().into_iter().chain(document.err());
            return Err(errors.flatten().collect());
        }
    };
    let Bundle {
        settings,
        statics,
        notes,
    } = bundle;
    let situation = document
        .situation(&settings.freshness)
        .map_err(|error| refused(check::with_bounds(error, &document, &settings)))?;
    let settings = tiered(&settings, &situation.snapshot);
    let contradictions = check::contradictions(&document, &settings);
    if !contradictions.is_empty() {
        return Err(refused(DocumentError::Faults(contradictions)));
    }
    let in_settings = notes
        .into_iter()
        .chain(check::unused_entries(&document, &settings))
        .chain(check::unused_quotas(&document, &settings));
    let autoscalers: Vec<AutoscalerPlan<'_>> = (situation.autoscalers.iter())
        .map(|autoscaler| AutoscalerPlan::of(autoscaler, situation.now))
        .collect();
    let unquoted = (!autoscalers.is_empty()).then(|| autoscalers::unquoted(snapshot));
    let unquoted = unquoted.into_iter().flatten();
    let in_snapshot = check::classless(&document, &settings)
        .into_iter()
        .chain(check::understated(&situation.snapshot, &settings))
        .chain(autoscalers::all_notes(&autoscalers, &statics))
        .chain(unquoted);
    let notes: Vec<String> = in_settings
        .map(|note| format!("{settings_name}: {note}"))
        .chain(in_snapshot.map(|note| format!("{}: {note}", arguments.snapshot)))
        .collect();
    let (learned, plan) = decide(&situation, &settings);
    let violation = check_plan(&situation.snapshot, &settings, &plan);
    let violation = violation.err().map(|violation| violation.to_string());
    let outcome = RenderedOutcome {
        plan: &plan,
        learned: &learned,
        violation: violation.as_deref(),
        autoscalers: &autoscalers,
        notes: &notes,
    };
    let text = render(&outcome, arguments);
    text.map_err(|error| vec![error])
}

/// Learns from the last collection of a snapshot, and plans.
pub(super) fn decide(situation: &Situation, settings: &DynamicSettings) -> (Learned, Plan) {
    let before = situation.learned.clone().unwrap_or_default();
    let learned = learn(&situation.snapshot, &before, settings, situation.now);
    let plan = plan(
        &situation.snapshot,
        &learned,
        settings,
        GENERATION,
        situation.now,
    );
    (learned, plan)
}

/// The decision about one PodAutoscaler with its steps; `None` if the snapshot has none of that name.
pub(super) fn explained_autoscaler(
    situation: &Situation,
    settings: &StaticSettings,
    object: &ObjectKey,
) -> Option<String> {
    let mut plans = (situation.autoscalers.iter())
        .map(|autoscaler| AutoscalerPlan::of(autoscaler, situation.now));
    let found = plans.find(|plan| plan.key() == object.to_string())?;
    let notes = found.notes(&settings.pod_pages.endpoint_hosts);
    let mut text = String::new();
    autoscalers::table(&mut text, &[found], Detail::Everything);
    text.extend(notes.iter().map(|note| format!("note: {note}\n")));
    Some(text)
}
