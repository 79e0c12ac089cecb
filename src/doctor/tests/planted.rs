//! The page of the causes that are planted on real servers: what names each, and how soon.

use std::fmt::Write as _;

use super::said::{alert, conditions, observed, own_event};
use crate::doctor::finding::FindingCode;

const CAUSES: &str = include_str!("../../../tests/cluster/cases/doctor/causes.rs");

/// Words of rows for the delay of a cause, and its time as it is printed.
const DELAYS: [(&str, &str); 2] = [("takes Scrape", "10 s"), ("takes Minute", "a minute")];

const INTRODUCTION: &str = "\
# The doctor on real servers

<!-- Made from tests/cluster/cases/doctor/causes.rs by src/doctor/tests/planted.rs. Do not edit: run the tests with UPDATE=1. -->

A case of the real servers plants each cause, waits until `wva doctor` names its code and no other one, mends it, and
waits until nothing is found. Before the first cause nothing is found either, also by the account of `helm test` with
the rights that the chart names alone. `tests/run` runs it; with the servers built it is

```text
cargo test --locked --package wva-sim --test cluster -- doctor::names_every_planted_cause
```

which prints the seconds of each cause. The column of the doctor has them by class, of a run on two idle cores. The case
fails where a cause of a few seconds takes 25 s, one of 10 s takes 50 s, or any takes more than a minute, so that a
machine with other work passes. Where a row of `tests/cluster/cases/doctor/causes.rs` has `says`, it waits for the
condition with that reason and for `wva_findings`, too, and prints their seconds.

The controller names causes with the planning cycle that sees them, so within `GLOBAL_OPT_INTERVAL`: by a condition, and
by an event of the same reason. Of some it sees alone that scalers fail, which is WVA125.
The alert fires when a finding lasts ";

/// A row of the causes.
struct Row {
    code: FindingCode,
    what: &'static str,
    within: &'static str,
    /// The reason of the condition for which the case waits.
    says: Option<&'static str>,
}

fn causes() -> Vec<Row> {
    let pieces = CAUSES.split("\"WVA").skip(1);
    // Names of settings begin like codes.
    let pieces = pieces.filter(|piece| piece.starts_with(|letter: char| letter.is_ascii_digit()));
    let read = pieces.map(|piece| {
        let (number, rest) = piece.split_once("\",").unwrap();
        let what = rest.trim_start().strip_prefix('"').unwrap();
        let (what, rest) = what.split_once('"').unwrap();
        let words = rest.split_once("=>").unwrap().0;
        let delay = DELAYS.iter().find(|(word, _)| words.contains(word));
        let id = format!("WVA{number}");
        let mut codes = FindingCode::ALL.into_iter();
        Row {
            code: codes.find(|code| code.id() == id).unwrap(),
            what,
            within: delay.map_or("a few seconds", |(_, within)| within),
            says: words.split_once("says \"").and_then(|(_, says)| Some(says.split_once('"')?.0)),
        }
    });
    read.collect()
}

/// The code by which the controller says a cause: of some it sees alone that scalers fail.
fn said_as(code: FindingCode) -> FindingCode {
    match code {
        FindingCode::ExternalMetricsMissing
        | FindingCode::QueryFindsNothing
        | FindingCode::QueryFindsSeveral
        | FindingCode::QueryFails => FindingCode::ScalerFails,
        code => code,
    }
}

fn page() -> String {
    let (conditions, observed) = (conditions(), observed());
    let (left_out, lasts) = alert();
    let mut page = format!("{INTRODUCTION}{lasts}.\n\n");
    page.push_str(
        "| cause | doctor | within | condition | event | alert |\n|---|---|---|---|---|---|\n",
    );
    for row in causes() {
        let Row { code, what, within, .. } = row;
        let (id, said_as) = (code.id(), said_as(code));
        let said: Vec<String> = conditions.get(&said_as).into_iter().flatten().cloned().collect();
        let reasons = said.iter().filter_map(|said| said.split(' ').nth(1));
        let own = own_event(code).map(|reason| format!("`{}`", reason.as_str()));
        let events: Vec<String> = reasons.map(str::to_owned).chain(own).collect();
        if let Some(reason) = row.says {
            assert!(events.contains(&format!("`{reason}`")), "{what}: {reason}");
        }
        let alerts = observed.contains(&said_as) && !left_out.contains(&said_as.id());
        let alerts = if alerts { "`WVAFinding`" } else { "" };
        let (said, events) = (said.join(", "), events.join(", "));
        let link = format!("[{id}](../user-guide/findings.md#{})", id.to_lowercase());
        writeln!(page, "| {what} | {link} | {within} | {said} | {events} | {alerts} |").unwrap();
    }
    page
}

#[test]
fn the_page_has_every_planted_cause() {
    let causes = causes();
    assert!(causes.len() > 50, "{}", causes.len());
    for class in ["a few seconds", "10 s", "a minute"] {
        assert!(causes.iter().any(|row| row.within == class), "{class}");
    }
    crate::docs::check("docs/development/doctor.md", &page());
}
