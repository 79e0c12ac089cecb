//! One decision for people.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::thresholds::thresholds;
use crate::cli::plan::{model_notes, steps};
use crate::cli::status::{FleetObjects, FleetStatus};
use crate::cli::{add_notes, or_dash};
use crate::page::time;
use crate::policy::key::{ObjectKey, VariantKey};
use crate::policy::params::{DynamicSettings, SCALE_TO_ZERO_SETTING};
use crate::policy::plan::{Decision, Plan};
use crate::state::autoscalers::shown_decision;
use wva_base::text::shortened;
use wva_recording::{DecisionDifference, RecordedAutoscaler, ReplayedAutoscaler};

/// The decision about one variant; `None` if the plan has none. `settings` are those of the fleet, with its tiers.
pub(super) fn variant(
    plan: &Plan,
    settings: Option<&DynamicSettings>,
    key: &VariantKey,
) -> Option<String> {
    let decision = plan.decisions.get(key)?;
    let mut text = format!(
        "{key}  model {}, accelerator {}, cost {}\n",
        &shortened(&decision.model.model),
        decision.accelerator.label(),
        decision.cost,
    );
    let mut line = |title: &str, words: String| {
        writeln!(text, "{title:<11}{}", &words).unwrap_or_default();
    };
    line(
        "decided",
        format!(
            "{} -> {} ({}) at {}, cycle {}, settings generation {}",
            or_dash(decision.current),
            or_dash(decision.target),
            decision.action(),
            time(plan.at.wall),
            plan.cycle,
            plan.generation,
        ),
    );
    line("because", decision.reason());
    if let Some(because) = decision.unserved() {
        line("unserved", because.to_string());
    }
    line("reported", reported(decision));
    text.push_str("steps\n");
    steps(&mut text, decision);
    model_notes(&mut text, plan, decision);
    let lines = thresholds(plan, decision, settings);
    if !lines.is_empty() {
        text.push_str("thresholds\n");
    }
    for line in lines {
        writeln!(text, "    {line}").unwrap_or_default();
    }
    add_notes(&mut text, &decision.notes);
    if let Some(settings) = settings {
        policy(&mut text, settings, decision);
    }
    Some(text)
}

/// The policy in force, with the source of each value.
fn policy(text: &mut String, settings: &DynamicSettings, decision: &Decision) {
    text.push_str("policy\n");
    for value in settings.effective(&decision.model) {
        let otherwise = || match (value.field, value.value.as_str()) {
            // It is false where no settings state it.
            (SCALE_TO_ZERO_SETTING, "false") => "settings or built in",
            (SCALE_TO_ZERO_SETTING, _) => "settings",
            _ => "built in",
        };
        let source =
            (value.source).map_or_else(|| otherwise().to_owned(), |layer| layer.to_string());
        let (field, value) = (value.field, &value.value);
        writeln!(text, "    {field:<20} {value:<10} {source}").unwrap_or_default();
    }
}

/// Expected against reported.
fn reported(decision: &Decision) -> String {
    let figures = &decision.figures;
    let mut words = format!(
        "{} of {} ready replicas, {} exist; {}",
        figures.reporting,
        figures.ready,
        or_dash(decision.current),
        decision.metrics
    );
    let parts = [
        (figures.outdated, "too old to act on"),
        (figures.stale, "too old to shrink on"),
        (figures.without_kv, "without a KV sample"),
        (figures.without_queue, "without a queue sample"),
    ];
    for (number, what) in parts.into_iter().filter(|(number, _)| *number > 0) {
        write!(words, "; {number} {what}").unwrap_or_default();
    }
    if !figures.saturated.is_empty() {
        write!(words, "; full: {}", figures.saturated.join(", ")).unwrap_or_default();
    }
    words
}

/// A recorded decision about a `PodAutoscaler`, as this program repeats it.
pub(super) fn recorded_autoscaler(
    recorded: &RecordedAutoscaler,
    replayed: &ReplayedAutoscaler,
) -> String {
    let (key, target) = (recorded.key(), &recorded.object.spec.scale_target_ref);
    let decision = match (&replayed.decision, &replayed.difference) {
        (Some(decision), _) => shown_decision(decision, &recorded.state),
        (None, Some(DecisionDifference::Autoscaler { replayed: Err(why), .. })) => {
            json!({ "invalid": why })
        }
        (None, _) => Value::Null,
    };
    let record = json!({
        "target": format!("{} {}/{}", target.kind, key.namespace, target.name),
        "decided": time(recorded.now.wall),
        "decision": decision,
    });
    pod_autoscaler(&key, &record)
}

/// The decision about a `PodAutoscaler`, as the controller shows it.
pub(super) fn pod_autoscaler(key: &ObjectKey, record: &Value) -> String {
    let at = |path: &str| record.pointer(path).and_then(Value::as_str);
    let number = |value: Option<&Value>| or_dash(value.and_then(Value::as_u64));
    let mut text = format!("{key}  {}\n", at("/target").unwrap_or("no target"));
    let mut line = |title: &str, words: &str| {
        writeln!(text, "{title:<11}{words}").unwrap_or_default();
    };
    let decision = record.get("decision").unwrap_or(&Value::Null);
    let (from, to) = (decision.get("current"), decision.get("desired"));
    line(
        "decided",
        &format!("{} -> {} at {}", number(from), number(to), at("/decided").unwrap_or("-")),
    );
    for (title, path) in [
        ("because", "/decision/reason"),
        ("invalid", "/decision/invalid"),
        ("scaled by", "/decision/scaledBy"),
        ("unseen", "/decision/unseen"),
        ("next", "/decision/nextBoundary"),
    ] {
        if let Some(words) = at(path) {
            line(title, words);
        }
    }
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    for note in list(record.get("notes")).iter().filter_map(Value::as_str) {
        line("note", note);
    }
    let would_be = decision.get("wouldBe").filter(|count| count.is_u64());
    if let Some(count) = would_be.filter(|count| Some(*count) != to) {
        line("forecast", &format!("mode Auto would decide {count}"));
    }
    text.push_str("steps\n");
    for step in list(decision.get("steps")) {
        let words = |name: &str| step.get(name).and_then(Value::as_str).unwrap_or_default();
        let (from, to) = (number(step.get("from")), number(step.get("to")));
        let (stage, reason) = (words("stage"), words("reason"));
        writeln!(text, "    {stage:<12} {from} -> {to}  {reason}").unwrap_or_default();
    }
    text
}

/// What the status of an object states about its decision; `None` if there is no object of that name.
pub(super) fn status(
    objects: &FleetObjects,
    fleet: &FleetStatus,
    key: &ObjectKey,
) -> Option<String> {
    let (object, target, words) = objects.named(fleet, &key.namespace, &key.name)?;
    let mut text = format!("{key}  {target}\n");
    writeln!(text, "{:<11}{words}", "because").unwrap_or_default();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    if conditions.is_some() {
        text.push_str("conditions\n");
    }
    for condition in conditions.into_iter().flatten() {
        let words = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
        let (kind, status, message) = (words("type"), words("status"), words("message"));
        writeln!(text, "    {kind:<18} {status:<8} {message}").unwrap_or_default();
    }
    text.push_str("note: the steps are in the controller; name it with --address\n");
    Some(text)
}
