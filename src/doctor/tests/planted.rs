//! The page of the causes that are planted on real servers: what names each, and how soon.

use std::fmt::Write as _;

use super::said::{conditions, own_event};
use crate::doctor::finding::FindingCode;

const CAUSES: &str = include_str!("../../../tests/cluster/cases/doctor/causes.rs");

/// Words of rows for the delay of a cause, and its time as it is printed.
const DELAYS: [(&str, &str); 2] = [("takes Scrape", "10 s"), ("takes Minute", "a minute")];

/// Every printed time.
const CLASSES: [&str; 3] = ["a few seconds", "10 s", "a minute"];

const INTRODUCTION: &str = "\
# The doctor on real servers

<!-- Made from tests/cluster/cases/doctor/causes.rs by src/doctor/tests/planted.rs. Do not edit: run the tests with UPDATE=1. -->

A case of the real servers plants each cause, waits until `wva doctor` names its code alone, mends it, and waits until
nothing is found. Before the first cause nothing is found either, also with the chart's rights alone (`helm test`).

```text
cargo test --locked --package wva-sim --test cluster -- doctor::names_every_planted_cause
```

It prints the seconds of each cause; the classes below are of a run on two idle cores. It fails where a cause of a few
seconds takes 25 s, one of 10 s takes 50 s, or any takes more than a minute. Where a row of
`tests/cluster/cases/doctor/causes.rs` has `says`, it waits for the condition with that reason and for `wva_findings`
too.

The controller names causes with the planning cycle that sees them, so within `GLOBAL_OPT_INTERVAL`;
[findings](../user-guide/findings.md#where-each-is-said) has condition, event and alert of each code.
The controller reports ";

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
    let failing = FindingCode::ALL.into_iter().filter(|code| said_as(*code) != *code);
    let failing: Vec<String> = failing.map(FindingCode::id).collect();
    let mut page = format!("{INTRODUCTION}{} as WVA125: the scaler fails.\n", failing.join(", "));
    let causes = causes();
    for class in CLASSES {
        write!(page, "\n## Within {class}\n\n").unwrap();
        for row in causes.iter().filter(|row| row.within == class) {
            let (what, id) = (row.what, row.code.id());
            let link = format!("../user-guide/findings.md#{}", id.to_lowercase());
            writeln!(page, "- {what}: [{id}]({link})").unwrap();
        }
    }
    page
}

#[test]
fn each_case_waits_for_a_reason_of_its_code() {
    let conditions = conditions();
    let mut waiting = 0;
    for Row { code, what, says, .. } in causes() {
        let said = conditions.get(&said_as(code)).into_iter().flatten();
        let reasons = said.filter_map(|said| said.split(' ').nth(1)).map(str::to_owned);
        let own = own_event(code).map(|reason| format!("`{}`", reason.as_str()));
        let events: Vec<String> = reasons.chain(own).collect();
        if let Some(reason) = says {
            assert!(events.contains(&format!("`{reason}`")), "{what}: {reason}");
            waiting += 1;
        }
    }
    assert!(waiting > 0);
}

#[test]
fn the_page_has_every_planted_cause() {
    let causes = causes();
    assert!(causes.len() > 50, "{}", causes.len());
    for class in CLASSES {
        assert!(causes.iter().any(|row| row.within == class), "{class}");
    }
    crate::docs::check("docs/development/doctor.md", &page());
}
