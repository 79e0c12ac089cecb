//! `wva bundle`: one archive for a bug report, without secrets.

pub(super) mod archive;
mod redact;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::Parser;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};

use self::archive::ArchiveWriter;
use self::redact::{redact, redact_recording};
use super::controller_api::{ControllerApi, ControllerFlags};
use super::doctor;
use super::namespace_flags::NamespaceFlags;
use super::status::{FleetObjects, list_events};
use super::{block_on, misused, print_or_fail};
use crate::doctor::look::DoctorScope;
use crate::version;
use wva_recording::RecordingReader;

const PAGES: [(&str, &str); 4] = [
    ("/debug/settings", "settings.json"),
    ("/debug/decisions", "decisions.json"),
    ("/debug/snapshot", "snapshot.json"),
    ("/debug/tree", "tree.json"),
];

/// Writes one archive for a bug report, without secrets
#[derive(Debug, Parser)]
#[command(
    name = "bundle",
    after_help = "The archive has the version, objects with their status, events, findings of wva doctor, and with --address \
                  settings, decisions with their inputs and actors. wva replay repeats its decisions.\n\
                  Exit code: 0 with an archive, 1 without one, 2 where arguments are not accepted."
)]
pub(super) struct BundleFlags {
    /// The archive
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, default_value = "wva-bundle.tgz", value_parser = NonEmptyStringValueParser::new())]
    output: String,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    /// A recording in place of the controller's memory
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    recording: Option<String>,
    #[command(flatten)]
    controller: ControllerFlags,
}

pub(super) fn run(flags: &BundleFlags) -> ExitCode {
    match ControllerApi::of(&flags.controller) {
        Ok(controller) => print_or_fail(block_on(collected(flags, controller.as_ref()))),
        Err(error) => misused([error]),
    }
}

async fn collected(
    flags: &BundleFlags,
    controller: Option<&ControllerApi>,
) -> Result<String, String> {
    let mut bundle = Bundled::default();
    bundle.text("version.txt", &format!("wva {}\n", version::shown()));
    objects(flags, &mut bundle).await;
    if let Some(controller) = controller {
        pages(flags, controller, &mut bundle).await;
    } else {
        let lacking = match flags.recording {
            Some(_) => "no settings of now",
            None => "no decisions and no settings",
        };
        let note = format!("without --address the archive has {lacking}");
        bundle.notes.push(note);
    }
    if let Some(path) = &flags.recording {
        let bytes = given(path)?;
        bundle.archive.add(archive::RECORDING, &bytes);
    }
    let path = &flags.output;
    let (bytes, notes) = bundle.finish();
    std::fs::write(path, bytes)
        .map_err(|error| format!("{path}: {error}; name a file in a folder that can be written"))?;
    let notes = notes.iter().map(|note| format!("note: {note}"));
    let lines: Vec<String> = std::iter::once(path.clone()).chain(notes).collect();
    Ok(lines.join("\n") + "\n")
}

/// A recording from a file, redacted.
///
/// # Errors
/// The file holds none.
fn given(path: &str) -> Result<Vec<u8>, String> {
    let refused = |why: String| {
        format!("{path}: {why}; name a DECISION_RECORD_FILE, or what /debug/recording writes")
    };
    let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    match RecordingReader::new(bytes.as_slice()).next_entry() {
        Ok(Some(_)) => {}
        Ok(None) => return Err(refused("the recording has no cycle".to_owned())),
        Err(error) => return Err(refused(error.to_string())),
    }
    redact_recording(&bytes).map_err(|error| refused(error.to_string()))
}

async fn objects(flags: &BundleFlags, bundle: &mut Bundled) {
    let (client, namespace) = match flags.namespaces.connect().await {
        Ok(reached) => reached,
        Err(error) => return bundle.notes.push(error),
    };
    let namespace = namespace.as_deref();
    match FleetObjects::read(&client, namespace).await {
        Ok(found) => {
            let (document, notes) = found.into_document();
            bundle.document("objects.json", document);
            bundle.notes.extend(notes);
        }
        Err(error) => bundle.notes.push(error),
    }
    match list_events(&client, namespace).await {
        Ok(events) => bundle.document("events.json", json!(events)),
        Err(error) => bundle.notes.push(error),
    }
    let scope = DoctorScope { namespace: namespace.map(str::to_owned), ..DoctorScope::default() };
    match doctor::once(&client, &scope).await {
        Ok(diagnosis) => bundle.document("findings.json", diagnosis.to_json()),
        Err(error) => bundle.notes.push(format!("findings.json: {error}")),
    }
}

async fn pages(flags: &BundleFlags, controller: &ControllerApi, bundle: &mut Bundled) {
    for (page, name) in PAGES {
        match controller.json(page).await {
            Ok(document) => bundle.document(name, document),
            Err(error) => bundle.notes.push(error),
        }
    }
    // An archive has one recording, and the given one comes before the controller's.
    if flags.recording.is_some() {
        return;
    }
    match controller.page("/debug/recording").await {
        Ok(bytes) => bundle.recording(&bytes),
        Err(error) => bundle.notes.push(error),
    }
}

/// What goes into the archive; nothing gets there other than redacted.
#[derive(Debug, Default)]
struct Bundled {
    archive: ArchiveWriter,
    notes: Vec<String>,
}

impl Bundled {
    fn text(&mut self, name: &str, text: &str) {
        self.archive.add(name, redact::redacted(text).as_bytes());
    }

    fn document(&mut self, name: &str, mut document: Value) {
        redact(&mut document);
        match serde_json::to_vec_pretty(&document) {
            Ok(bytes) => self.archive.add(name, &bytes),
            Err(error) => self.notes.push(format!("{name}: {error}")),
        }
    }

    fn recording(&mut self, bytes: &[u8]) {
        match redact_recording(bytes) {
            Ok(bytes) => self.archive.add(archive::RECORDING, &bytes),
            Err(error) => self.notes.push(format!("the recording is left out: {error}")),
        }
    }

    fn finish(mut self) -> (Vec<u8>, Vec<String>) {
        let notes = self.notes.join("\n");
        self.text("notes.txt", &notes);
        (self.archive.finish(), self.notes)
    }
}
