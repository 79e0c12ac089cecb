//! The page of the causes that are planted on real servers: what names each, and how soon.

use std::fmt::Write as _;

use super::said::{alert, conditions, observed, own_event};
use crate::doctor::finding::FindingCode;

const CAUSES: &str = include_str!("../../../tests/cluster/cases/doctor/causes.rs");

/// Causes that the doctor names later than in a second, with the time as it is printed, rounded up to an order. They
/// become visible with a scrape, with the end of old series, or with pods that are half a minute old.
const LATER: [(&str, &str); 17] = [
    ("own series not scraped", "10 s"),
    ("engines not scraped", "a minute"),
    ("scrapes of engines fail", "10 s"),
    ("series without a pod", "10 s"),
    ("series of a dead pod", "10 s"),
    ("series of another engine", "10 s"),
    ("no engine", "10 s"),
    ("router without a queue", "10 s"),
    ("engines scraped twice", "10 s"),
    ("query with several series", "10 s"),
    ("an HPA that selects by namespace", "10 s"),
    ("an HPA whose adapter lacks the metric", "10 s"),
    ("zero replicas by hand", "10 s"),
    ("KEDA asks a server that is gone", "10 s"),
    ("pods that no node takes", "a minute"),
    ("a second controller", "10 s"),
    ("requests expire before a start", "10 s"),
];

const INTRODUCTION: &str = "\
# The doctor on real servers

<!-- Made from tests/cluster/cases/doctor/causes.rs by src/doctor/tests/planted.rs. Do not edit: run the tests with UPDATE=1. -->

A case of the real servers plants each cause, waits until `wva doctor` names its code and no other one, mends it, and
waits until nothing is found. It fails where a code takes more than a minute. `tests/run` runs it; with the servers built
it is

```text
cargo test --locked --package wva-sim --test cluster -- doctor::names_every_planted_cause
```

which prints the seconds of each cause. The column of the doctor has them rounded up to a second, 10 s or a minute. The
controller names causes with the planning cycle that sees them, so within `GLOBAL_OPT_INTERVAL`: by a condition, and by
an event of the same reason. The alert fires when a finding lasts ";

/// Codes and words of the causes.
fn causes() -> Vec<(FindingCode, &'static str)> {
    let pieces = CAUSES.split("\"WVA").skip(1);
    // Names of settings begin like codes.
    let pieces = pieces.filter(|piece| piece.starts_with(|letter: char| letter.is_ascii_digit()));
    let read = pieces.map(|piece| {
        let (number, rest) = piece.split_once("\",").unwrap();
        let what = rest.trim_start().strip_prefix('"').unwrap();
        let what = what.split_once('"').unwrap().0;
        let id = format!("WVA{number}");
        let mut codes = FindingCode::ALL.into_iter();
        (codes.find(|code| code.id() == id).unwrap(), what)
    });
    read.collect()
}

fn page() -> String {
    let (conditions, observed) = (conditions(), observed());
    let (left_out, lasts) = alert();
    let mut page = format!("{INTRODUCTION}{lasts}.\n\n");
    page.push_str(
        "| cause | doctor | within | condition | event | alert |\n|---|---|---|---|---|---|\n",
    );
    for (code, what) in causes() {
        let id = code.id();
        let within = LATER.iter().find(|(later, _)| *later == what);
        let within = within.map_or("a second", |(_, within)| within);
        let said: Vec<String> = conditions
            .get(&code)
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let reasons = said.iter().filter_map(|said| said.split(' ').nth(1));
        let own = own_event(code).map(|reason| format!("`{}`", reason.as_str()));
        let events: Vec<String> = reasons.map(str::to_owned).chain(own).collect();
        let alerts = observed.contains(&code) && !left_out.contains(&id);
        let alerts = if alerts { "`WVAFinding`" } else { "" };
        let (said, events) = (said.join(", "), events.join(", "));
        let link = format!("[{id}](../user-guide/findings.md#{})", id.to_lowercase());
        writeln!(
            page,
            "| {what} | {link} | {within} | {said} | {events} | {alerts} |"
        )
        .unwrap();
    }
    page
}

#[test]
fn the_page_has_every_planted_cause() {
    let causes = causes();
    assert!(causes.len() > 50, "{causes:?}");
    for (later, _) in LATER {
        assert!(causes.iter().any(|(_, what)| *what == later), "{later}");
    }
    crate::docs::check("docs/development/doctor.md", &page());
}
