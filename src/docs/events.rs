//! `docs/events.md`: a table of every reason, in both directions equal to the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{check, code, row};

const INTRODUCTION: &str = "\
# Events

<!-- Made from src/docs/events.rs, which is compared with the code. Do not edit: run the tests with UPDATE=1. -->

Events are of `events.k8s.io/v1`, on the object that they are about, from
`llmd.ai/workload-variant-autoscaler`. Of one object and reason at most one a minute is sent. What
comes in between is told when the minute is over, in one event if there is room in it, and what
only comes again is counted up. `wva_events_dropped_total` counts what was not told, by the reason.
The cycle in a note is the one in the log and in the status.

| Reason | Type | On | When |
|---|---|---|---|
";

const CONDITIONS: &str = "
A condition of a VariantAutoscaling that begins to fail, fails otherwise, or recovers, is an event as
well: its reason is that of the condition, Warning where it fails, Normal where it is well again.
[Operations](operations.md) lists them.
";

/// Reason, type, object, occasion.
const EVENTS: [[&str; 4]; 9] = [
    [
        "ScaledUp",
        "Normal",
        "VariantAutoscaling",
        "the published count was raised",
    ],
    [
        "ScaledDown",
        "Normal",
        "VariantAutoscaling",
        "the published count was lowered",
    ],
    [
        "ScaledToZero",
        "Normal",
        "VariantAutoscaling",
        "the published count became 0",
    ],
    [
        "VariantRefused",
        "Warning",
        "VariantAutoscaling",
        "the controller already handles as many variants as it accepts",
    ],
    [
        "VariantQuarantined",
        "Warning",
        "VariantAutoscaling",
        "the handling of the object keeps failing; its count is kept",
    ],
    [
        "NoOtherController",
        "Normal",
        "VariantAutoscaling",
        "a conflict with another controller is over",
    ],
    [
        "PermissionMissing",
        "Warning",
        "the controller's pod",
        "the API server refuses what the shipped roles grant",
    ],
    [
        "ServiceMonitorDeleted",
        "Warning",
        "ServiceMonitor",
        "Prometheus will no longer scrape the controller",
    ],
    [
        "ImmutableConfigChangeRejected",
        "Warning",
        "ConfigMap",
        "an edit needs a restart; the rest of it was applied",
    ],
];

fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    for [reason, kind, object, occasion] in EVENTS {
        text.push_str(&row(&[
            code(reason),
            kind.to_owned(),
            object.to_owned(),
            occasion.to_owned(),
        ]));
    }
    text.push_str(CONDITIONS);
    text
}

/// Literals that become the reason of an event.
fn reasons(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.to_string_lossy().contains("tests");
        if path.is_dir() {
            reasons(&path, found);
        } else if !is_test {
            let text = fs::read_to_string(&path).unwrap();
            let code = text
                .split("#[cfg(test)]\nmod tests {")
                .next()
                .unwrap_or_default();
            for line in code.lines().map(str::trim) {
                let literal = line
                    .strip_prefix("reason: \"")
                    .or_else(|| line.split_once("REASON: &str = \"").map(|(_, rest)| rest))
                    .or_else(|| {
                        line.strip_prefix("Action::Scale")
                            .and_then(|rest| Some(rest.split_once("=> \"")?.1))
                    });
                found.extend(literal.and_then(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }
}

#[test]
fn the_page_in_the_repository_has_every_reason() {
    check("docs/events.md", &page());
}

#[test]
fn every_reason_in_the_code_is_on_the_page_and_no_other() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    for folder in ["actors", "cluster", "settings"] {
        reasons(&sources.join(folder), &mut found);
    }
    let shown: BTreeSet<String> = EVENTS
        .iter()
        .map(|[reason, ..]| (*reason).to_owned())
        .collect();
    assert_eq!(found, shown);
}
