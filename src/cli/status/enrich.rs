//! What the controller itself knows beyond the objects: its last decisions, and the ages of its samples.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::fleet::FleetStatus;
use crate::cli::controller_api::ControllerApi;
use crate::policy::key::VariantKey;
use crate::policy::plan::Plan;
use wva_base::duration::{format_duration, parse_duration};
use wva_base::moment::WallTime;

/// Age of the last decision from on which the controller leads no more.
const OLD: Duration = Duration::from_mins(10);

/// Adds what the debug pages hold; what cannot be read is a note.
pub(super) async fn enrich(status: &mut FleetStatus, controller: &ControllerApi) {
    match controller.json("/debug/decisions").await {
        Ok(decisions) => {
            let now = WallTime(Timestamp::now().as_millisecond());
            status.notes.extend(old_note(&decisions, now));
            add_decisions(status, decisions);
        }
        Err(error) => status.notes.push(error),
    }
    match controller.json("/debug/snapshot").await {
        Ok(snapshot) => add_ages(status, &snapshot),
        Err(error) => status.notes.push(error),
    }
}

/// A note where the plan of `/debug/decisions` is old.
pub(in crate::cli) fn old_note(decisions: &Value, now: WallTime) -> Option<String> {
    let decided = decisions.pointer("/at/wall")?.as_i64()?;
    let age = now.since(WallTime(decided));
    (age > OLD).then(|| {
        let seconds = age.as_secs();
        format!(
            "the last decision of this controller is {seconds} s old by the clock of this machine: another \
             controller leads, or the clocks differ; read the leader of the lease"
        )
    })
}

/// Adds the reasons of the last decisions, as `/debug/decisions` has them.
pub(super) fn add_decisions(status: &mut FleetStatus, mut decisions: Value) {
    // A decision may be made and not applied: what fails now comes first.
    let rows = status.pod_autoscalers.iter_mut();
    for row in rows.filter(|row| !row.is_failing) {
        let key = format!("{}/{}", row.namespace, row.name);
        let found = decisions.get("podAutoscalers").and_then(|all| all.get(&key));
        let words = found.and_then(|found| {
            let decision = found.get("decision")?;
            let words = ["reason", "invalid", "unseen"];
            words.iter().find_map(|name| decision.get(name)?.as_str())
        });
        if let Some(words) = words {
            words.clone_into(&mut row.decision);
        }
    }
    if decisions.get("decisions").is_none() {
        status.notes.push(
            "this controller has made no plan: another one leads, or it has just started"
                .to_owned(),
        );
        return;
    }
    if let Some(fields) = decisions.as_object_mut() {
        fields.remove("podAutoscalers");
    }
    let plan: Plan = match serde_json::from_value(decisions) {
        Ok(plan) => plan,
        Err(error) => {
            status.notes.push(format!(
                "/debug/decisions: {error}; use the wva of the controller's version"
            ));
            return;
        }
    };
    for row in &mut status.variants {
        let key = VariantKey::new(&*row.namespace, &*row.name);
        if let Some(decision) = plan.decisions.get(&key) {
            row.decision = decision.reason();
        }
    }
}

/// Adds the age of the oldest sample of each variant, as `/debug/snapshot` has them.
pub(super) fn add_ages(status: &mut FleetStatus, snapshot: &Value) {
    let ago = snapshot.pointer("/collection/ago").map(span);
    let variants = snapshot.get("variants").and_then(Value::as_array);
    let ages: BTreeMap<(&str, &str), Duration> = variants
        .into_iter()
        .flatten()
        .filter_map(|variant| {
            let text = |name: &str| variant.get(name)?.as_str();
            let oldest = oldest(variant)?.saturating_add(ago.unwrap_or_default());
            Some(((text("namespace")?, text("name")?), oldest))
        })
        .collect();
    for row in &mut status.variants {
        let age = ages.get(&(&*row.namespace, &*row.name));
        // Parts of a second only hide the rest.
        let seconds = age.map(|age| Duration::from_secs(age.as_secs()));
        row.signal_age = seconds.map(format_duration);
    }
}

/// The greatest age among the readings of all pods; `None` without any reading.
fn oldest(variant: &Value) -> Option<Duration> {
    let pods = variant.get("pods")?.as_array()?;
    let signals = pods.iter().filter_map(|pod| pod.get("signals")?.as_object());
    let readings = signals.flat_map(serde_json::Map::values);
    let ages = readings.filter(|reading| !reading.is_null());
    ages.map(|reading| reading.get("age").map(span).unwrap_or_default()).max()
}

fn span(value: &Value) -> Duration {
    let text = value.as_str().unwrap_or_default();
    parse_duration(text).unwrap_or_default()
}
