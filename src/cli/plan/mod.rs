//! `wva plan`: repeats a decision at a desk, from a file, without a cluster.

mod arguments;
mod check;
mod render;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod note_tests;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use schemars::schema_for;

use self::arguments::{Arguments, Command};
use self::render::{Outcome, render};
use super::{complain, print};
use crate::policy::document::{DocumentError, SnapshotDocument};
use crate::policy::{check_plan, learn, plan};
use crate::settings::bundle::{Bundle, read_noted};

/// Input that is not accepted.
const REFUSED: u8 = 2;

/// The generation of settings that come from a file.
const GENERATION: u64 = 1;

/// Runs the command.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let outcome = match arguments::parse(arguments) {
        Ok(Command::Help) => Ok(arguments::USAGE.to_owned()),
        Ok(Command::Schema) => schema().map_err(|error| vec![error.to_string()]),
        Ok(Command::Plan(arguments)) => read(&arguments)
            .and_then(|(snapshot, settings)| answer(&snapshot, &settings, &arguments)),
        Err(errors) => Err(errors),
    };
    match outcome {
        Ok(text) => print(&text),
        Err(errors) => {
            for error in errors {
                complain(&format!("error: {error}\n"));
            }
            ExitCode::from(REFUSED)
        }
    }
}

fn schema() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schema_for!(SnapshotDocument))?;
    text.push('\n');
    Ok(text)
}

/// Texts of the two files.
fn read(arguments: &Arguments) -> Result<(String, String), Vec<String>> {
    let load = |path: &str| {
        std::fs::read_to_string(path)
            .map_err(|error| vec![format!("{path}: {error}; name a file that can be read")])
    };
    let settings = arguments.settings.as_deref().map(load).transpose()?;
    Ok((load(&arguments.snapshot)?, settings.unwrap_or_default()))
}

/// Plans and shows the plan.
fn answer(snapshot: &str, settings: &str, arguments: &Arguments) -> Result<String, Vec<String>> {
    let settings_name = arguments.settings.as_deref().unwrap_or("settings");
    let Bundle { settings, notes } = read_noted(settings).map_err(|errors| {
        errors
            .iter()
            .map(|error| format!("{settings_name}: {error}"))
            .collect::<Vec<_>>()
    })?;
    let refused = |error: DocumentError| -> Vec<String> {
        let text = error.to_string();
        text.lines()
            .map(|line| format!("{}: {line}", arguments.snapshot))
            .collect()
    };
    let document = SnapshotDocument::parse(snapshot).map_err(refused)?;
    let situation = document.situation(&settings.freshness).map_err(refused)?;
    let contradictions = check::contradictions(&document, &settings);
    if !contradictions.is_empty() {
        return Err(refused(DocumentError::Faults(contradictions)));
    }
    let in_settings = notes
        .into_iter()
        .chain(check::unserved(&document, &settings));
    let in_snapshot = check::classless(&document, &settings).into_iter();
    let notes: Vec<String> = in_settings
        .map(|note| format!("{settings_name}: {note}"))
        .chain(in_snapshot.map(|note| format!("{}: {note}", arguments.snapshot)))
        .collect();
    let before = situation.learned.unwrap_or_default();
    let learned = learn(&situation.snapshot, &before, &settings, situation.now);
    let plan = plan(
        &situation.snapshot,
        &learned,
        &settings,
        GENERATION,
        situation.now,
    );
    let violation = check_plan(&situation.snapshot, &settings, &plan).err();
    let outcome = Outcome {
        plan: &plan,
        learned: &learned,
        violation: violation.as_ref(),
        notes: &notes,
    };
    let text = render(&outcome, arguments);
    text.map_err(|error| vec![error])
}
