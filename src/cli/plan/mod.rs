//! `wva plan`: repeats a decision offline, from a file, without a cluster.

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

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, ValueEnum};
use schemars::schema_for;

use self::autoscalers::AutoscalerPlan;
use self::render::{RenderedOutcome, render};
pub(super) use self::render::{model_notes, steps};
use super::{add_notes, complain, misused, print};
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

/// Shows what the controller would decide, from a file
#[derive(Debug, Parser)]
#[command(
    name = "plan",
    after_help = "Exit code: 0 with a plan, 2 where the input is not accepted."
)]
pub(super) struct PlanFlags {
    /// What is known of the fleet, as YAML or JSON; /debug/snapshot writes one
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    snapshot: Option<String>,
    /// Keys of --config-file, and the sections saturation, scaleToZero, queueingModel, serviceClasses and namespaces;
    /// without it every default applies
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    settings: Option<String>,
    /// The form of the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    format: Format,
    /// Every step with its numbers; as json or yaml also every intermediate figure
    #[arg(long)]
    explain: bool,
    /// Print the JSON schema of a snapshot
    #[arg(long, exclusive = true)]
    schema: bool,
}

pub(super) fn run(flags: &PlanFlags) -> ExitCode {
    // Apart from the answer, which programs read.
    if flags.snapshot.is_some() && flags.settings.is_none() {
        complain(
            "note: default settings are in force; name those of the controller with --settings\n",
        );
    }
    let outcome = if flags.schema {
        schema().map_err(|error| vec![error.to_string()])
    } else {
        let texts = read(flags).map_err(|error| vec![error]);
        texts.and_then(|(snapshot, settings)| answer(&snapshot, &settings, flags))
    };
    match outcome {
        Ok(text) => print(&text),
        Err(errors) => misused(errors),
    }
}

fn schema() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schema_for!(SnapshotDocument))?;
    text.push('\n');
    Ok(text)
}

fn read(flags: &PlanFlags) -> Result<(String, String), String> {
    let missing = "--snapshot is missing; name the file, or --schema to see its form";
    let snapshot = flags.snapshot.as_deref().ok_or(missing)?;
    let settings = flags.settings.as_deref().map(load).transpose()?;
    Ok((load(snapshot)?, settings.unwrap_or_default()))
}

/// The text of a file; of a longer one than any that is read, its beginning.
pub(super) fn load(path: &str) -> Result<String, String> {
    let limit = u64::try_from(MAX_DOCUMENT).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    file.and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| format!("{path}: {error}; name a file that can be read"))?;
    let binary = || format!("{path}: the file is binary; name one that holds YAML or JSON");
    let text = String::from_utf8(bytes).map_err(|_no_text| binary())?;
    if text.contains('\0') {
        return Err(binary());
    }
    Ok(text)
}

fn answer(snapshot: &str, settings: &str, flags: &PlanFlags) -> Result<String, Vec<String>> {
    let snapshot_name = flags.snapshot.as_deref().unwrap_or("snapshot");
    let settings_name = flags.settings.as_deref().unwrap_or("settings");
    let bundle = read_noted(settings).map_err(|errors| {
        errors.iter().map(|error| format!("{settings_name}: {error}")).collect::<Vec<_>>()
    });
    let refused = |error: DocumentError| -> Vec<String> {
        let text = error.to_string();
        text.lines().map(|line| format!("{snapshot_name}: {line}")).collect()
    };
    let document = SnapshotDocument::parse(snapshot).map_err(refused);
    let (bundle, document) = match (bundle, document) {
        (Ok(bundle), Ok(document)) => (bundle, document),
        (bundle, document) => {
            let errors = bundle.err().into_iter().chain(document.err());
            return Err(errors.flatten().collect());
        }
    };
    let Bundle { settings, statics, notes } = bundle;
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
        .chain(in_snapshot.map(|note| format!("{snapshot_name}: {note}")))
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
    let text = render(&outcome, flags);
    text.map_err(|error| vec![error])
}

/// Learns from the last collection of a snapshot, and plans.
pub(super) fn decide(situation: &Situation, settings: &DynamicSettings) -> (Learned, Plan) {
    let before = situation.learned.clone().unwrap_or_default();
    let learned = learn(&situation.snapshot, &before, settings, situation.now);
    let plan = plan(&situation.snapshot, &learned, settings, GENERATION, situation.now);
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
    autoscalers::table(&mut text, &[found], true);
    add_notes(&mut text, notes);
    Some(text)
}
