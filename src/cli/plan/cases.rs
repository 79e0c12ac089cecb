//! Published cases as whole files: a snapshot and settings go in, and what the tables name is read
//! from the explanation.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Format, PlanFlags, answer};
use crate::vectors::{Tally, run};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default)]
    settings: serde_yaml::Value,
    snapshot: serde_yaml::Value,
    /// Later snapshots, each planned with what the one before taught.
    #[serde(default)]
    then: Vec<serde_yaml::Value>,
}

/// Places in the explanation, parts parted by ` > `, with their values.
type Expect = BTreeMap<String, Value>;

fn explained(id: &str, snapshot: &serde_yaml::Value, settings: &str) -> Value {
    let arguments = PlanFlags {
        snapshot: Some(id.to_owned()),
        settings: None,
        format: Format::Json,
        explain: true,
        schema: false,
    };
    let mut snapshot = snapshot.clone();
    snapshot.apply_merge().unwrap();
    let snapshot = serde_yaml::to_string(&snapshot).unwrap();
    let text = answer(&snapshot, settings, &arguments)
        .unwrap_or_else(|errors| panic!("{id}: {}", errors.join("\n")));
    let explanation: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(explanation["violation"], Value::Null, "{id}");
    explanation
}

fn at<'a>(answer: &'a Value, place: &str) -> &'a Value {
    place.split(" > ").fold(answer, |value, part| match part.parse::<usize>() {
        Ok(index) if value.is_array() => &value[index],
        _ => &value[part],
    })
}

fn is_like(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => {
            (found - expected).abs() <= 1e-4 * expected.abs().max(0.01)
        }
        _ => found == expected,
    }
}

/// Plans every case of a table, looks at what is expected, and counts.
fn played(table: &str) -> Tally {
    let file = format!("{}/tests/vectors/{table}", env!("CARGO_MANIFEST_DIR"));
    let broken = RefCell::new(Vec::new());
    let tally = run(&std::fs::read_to_string(file).unwrap(), |id, given: Given, expect: Expect| {
        let settings = match &given.settings {
            serde_yaml::Value::Null => String::new(),
            other => serde_yaml::to_string(other).unwrap(),
        };
        let mut answer = explained(id, &given.snapshot, &settings);
        for mut snapshot in given.then {
            let learned = serde_yaml::to_value(&answer["learned"]).unwrap();
            let fields = snapshot.as_mapping_mut().unwrap();
            fields.insert("learned".into(), learned);
            answer = explained(id, &snapshot, &settings);
        }
        for (place, expected) in &expect {
            let found = at(&answer, place);
            if !is_like(found, expected) {
                let said = format!("{id}: {place}: {found} instead of {expected}");
                broken.borrow_mut().push(said);
            }
        }
    });
    let broken = broken.into_inner();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    tally
}

#[test]
fn tables_are_reached_from_files() {
    assert_eq!(played("plan.yaml"), Tally { passed: 107, corrected: 0, not_applicable: 9 });
}

#[test]
fn what_gpus_allow_is_shown_in_full() {
    assert_eq!(played("limited.yaml"), Tally { passed: 69, corrected: 0, not_applicable: 0 });
}

#[test]
fn what_is_known_to_be_unused_is_released() {
    assert_eq!(played("idle.yaml"), Tally { passed: 19, corrected: 0, not_applicable: 0 });
}

/// One knob: two settings that differ in it alone, and a place of the explanation with its value
/// under each.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Knob {
    name: String,
    from: serde_yaml::Value,
    to: serde_yaml::Value,
    snapshot: serde_yaml::Value,
    place: String,
    values: [Value; 2],
}

#[test]
fn every_knob_moves_what_it_is_documented_to_move() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/knobs.yaml");
    let knobs: Vec<Knob> = serde_yaml::from_str(&std::fs::read_to_string(table).unwrap()).unwrap();
    let mut broken = Vec::new();
    for knob in &knobs {
        assert_ne!(knob.values[0], knob.values[1], "{}", knob.name);
        for (settings, expected) in [&knob.from, &knob.to].into_iter().zip(&knob.values) {
            let settings = serde_yaml::to_string(settings).unwrap();
            let answer = explained(&knob.name, &knob.snapshot, &settings);
            let found = at(&answer, &knob.place);
            if !is_like(found, expected) {
                broken.push(format!("{}: {found} instead of {expected}", knob.name));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_eq!(knobs.len(), 40);
}
