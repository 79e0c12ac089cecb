//! Where a decision is read: a snapshot, the debug pages of the controller, or the status of the object.

use std::fmt::Write as _;
use std::io::Read;

use jiff::Timestamp;
use serde_json::Value;

use super::arguments::{DecisionSource, WhyQuestion};
use super::render;
use crate::cli::add_notes;
use crate::cli::controller_api::ControllerApi;
use crate::cli::plan;
use crate::cli::replay::{self, LastEntries};
use crate::cli::status::{FleetObjects, FleetStatus, old_note};
use crate::cluster::client::{KubeconfigSource, connect};
use crate::policy::document::SnapshotDocument;
use crate::policy::key::{ObjectKey, VariantKey};
use crate::policy::plan::Plan;
use crate::policy::tiered;
use crate::settings::bundle::{Bundle, read_noted};
use wva_base::moment::WallTime;
use wva_recording::RecordingReader;

/// Answers a question.
///
/// # Errors
/// What cannot be read, or has no decision about the object; with the remedy.
pub(super) async fn answer(question: &WhyQuestion) -> Result<String, String> {
    let WhyQuestion { object, source } = question;
    match source {
        DecisionSource::Snapshot { file, settings } => {
            let settings = settings.as_deref().map(plan::load).transpose()?;
            from_snapshot(object, file, &plan::load(file)?, &settings.unwrap_or_default())
        }
        DecisionSource::Recording { file, at } => {
            let mut reader = replay::open(file)?;
            from_recording(object, &mut reader, *at).map_err(|error| format!("{file}: {error}"))
        }
        DecisionSource::Controller { api, at } => from_controller(object, api, *at).await,
        DecisionSource::Status => from_status(object).await,
    }
}

pub(super) fn from_snapshot(
    object: &ObjectKey,
    file: &str,
    snapshot: &str,
    settings: &str,
) -> Result<String, String> {
    let noted = read_noted(settings).map_err(|errors| {
        let lines = errors.iter().map(|error| format!("settings: {error}"));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    let Bundle { settings, statics, .. } = noted;
    let placed = |error: &dyn ToString| format!("{file}: {}", error.to_string());
    let document = SnapshotDocument::parse(snapshot).map_err(|error| placed(&error))?;
    let situation = document.situation(&settings.freshness).map_err(|error| placed(&error))?;
    if let Some(text) = plan::explained_autoscaler(&situation, &statics, object) {
        return Ok(text);
    }
    let (_, plan) = plan::decide(&situation, &settings);
    let settings = tiered(&settings, &situation.snapshot);
    render::variant(&plan, Some(&settings), &variant(object)).ok_or_else(|| {
        format!(
            "{file} has no {object}; name a VariantAutoscaling or PodAutoscaler of the snapshot"
        )
    })
}

fn variant(object: &ObjectKey) -> VariantKey {
    VariantKey::new(object.namespace.clone(), object.name.clone())
}

/// Repeats a recorded decision, and explains.
pub(super) fn from_recording<R: Read>(
    object: &ObjectKey,
    reader: &mut RecordingReader<R>,
    at: Option<WallTime>,
) -> Result<String, String> {
    let mut last = LastEntries::read(reader, at)?;
    let note = last.note.take();
    let version = reader.header().map_or("?", |header| &header.version);
    let mut text = recorded(object, last, version)?;
    add_notes(&mut text, note);
    Ok(text)
}

/// The newest of the last decisions on the object.
fn recorded(object: &ObjectKey, mut last: LastEntries, version: &str) -> Result<String, String> {
    let key = variant(object);
    // A variant may have had the name since, or before.
    let since = last.cycle.as_ref().and_then(|cycle| {
        let is_decided = cycle.decided.variants.contains_key(&key);
        is_decided.then_some(cycle.now.wall)
    });
    let recorded = last.autoscalers.remove(object);
    let recorded = recorded.filter(|recorded| since.is_none_or(|since| since <= recorded.now.wall));
    if let Some(recorded) = recorded {
        let replayed = replay::repeated_autoscaler(&recorded)?;
        let mut text = render::recorded_autoscaler(&recorded, &replayed);
        if replayed.difference.is_some() {
            writeln!(text, "note: wva {version} decided {}", recorded.decided).unwrap_or_default();
        }
        return Ok(text);
    }
    let missing = || format!("the recording has no decision on {object} up to that time");
    let cycle = last.cycle.ok_or_else(missing)?;
    let replayed = replay::repeated(&cycle, None)?;
    let settings = tiered(&cycle.settings, &cycle.snapshot);
    let mut text = render::variant(&replayed.plan, Some(&settings), &key).ok_or_else(missing)?;
    let recorded = cycle.decided.variants.get(&key);
    if let Some(recorded) = recorded.filter(|_| !replayed.differences.is_empty()) {
        writeln!(text, "note: wva {version} decided {recorded}").unwrap_or_default();
    }
    Ok(text)
}

/// The record of the controller has what the last plan lacks: settings, and earlier decisions.
async fn from_controller(
    object: &ObjectKey,
    api: &ControllerApi,
    at: Option<WallTime>,
) -> Result<String, String> {
    let recording = api.page("/debug/recording").await;
    let explained = || {
        let bytes = recording?;
        from_recording(object, &mut RecordingReader::new(&*bytes), at)
    };
    if at.is_some() {
        return explained();
    }
    // To repeat a long record takes longer than a server keeps a connection without requests.
    let decisions = api.json("/debug/decisions").await;
    // Of a PodAutoscaler the record has decisions alone, and no reason for none.
    let autoscalers = decisions.as_ref().ok();
    let autoscalers = autoscalers.and_then(|decisions| decisions.get("podAutoscalers"));
    if autoscalers.is_some_and(|all| all.get(object.to_string()).is_some()) {
        return from_decisions(object, decisions?);
    }
    let now = WallTime(Timestamp::now().as_millisecond());
    let note = (decisions.as_ref().ok()).and_then(|decisions| old_note(decisions, now));
    let mut text = match explained() {
        Ok(text) => text,
        Err(_) => from_decisions(object, decisions?)?,
    };
    add_notes(&mut text, note);
    Ok(text)
}

/// Explains the last decisions, as `/debug/decisions` has them.
pub(super) fn from_decisions(object: &ObjectKey, mut decisions: Value) -> Result<String, String> {
    let autoscalers = decisions.as_object_mut().and_then(|fields| fields.remove("podAutoscalers"));
    let record = autoscalers.as_ref().and_then(|all| all.get(object.to_string()));
    if let Some(record) = record {
        return Ok(render::pod_autoscaler(object, record));
    }
    if decisions.get("decisions").is_none() {
        return Err(
            "this controller has made no plan: another one leads, or it has just started; \
             read the leader of the lease"
                .to_owned(),
        );
    }
    let plan: Plan = serde_json::from_value(decisions).map_err(|error| {
        format!("/debug/decisions: {error}; use the wva of the controller's version")
    })?;
    render::variant(&plan, None, &variant(object)).ok_or_else(|| {
        format!("the last plan has no {object}; check its name, and the scope of the controller")
    })
}

async fn from_status(object: &ObjectKey) -> Result<String, String> {
    let client = connect(&KubeconfigSource::Infer).await.map_err(|error| error.to_string())?;
    let objects = FleetObjects::read(&client, Some(&object.namespace)).await?;
    let objects = objects.decided(&client).await;
    let fleet = FleetStatus::of(&objects);
    render::status(&objects, &fleet, object).ok_or_else(|| {
        let missing = format!(
            "there is no VariantAutoscaling and no PodAutoscaler {object}; wva status -A lists them"
        );
        let notes = objects.notes.iter().map(|note| format!("note: {note}"));
        let lines: Vec<String> = [missing].into_iter().chain(notes).collect();
        lines.join("\n")
    })
}
