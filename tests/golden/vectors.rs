//! Tables of `tests/vectors` whose cases are whole snapshots.

use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;
use serde_yaml::Value;
use wva::policy::document::SnapshotDocument;
use wva::policy::learned::Learned;
use wva::settings::bundle::read_bundle;

use super::decisions::{COLUMNS, line, made};
use super::is_golden;

const TABLES: [&str; 3] = ["plan.yaml", "limited.yaml", "idle.yaml"];

#[derive(Deserialize)]
struct Case {
    id: String,
    given: Option<Given>,
}

#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    settings: Value,
    snapshot: Value,
    #[serde(default)]
    then: Vec<Value>,
}

/// One setting with two values.
#[derive(Deserialize)]
struct Knob {
    name: String,
    from: Value,
    to: Value,
    snapshot: Value,
}

fn table<T: for<'de> Deserialize<'de>>(name: &str) -> Vec<T> {
    let path = format!("{}/../../tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Plans snapshots one after another, each with what the one before taught, and writes a line for each
/// decision.
fn write(page: &mut String, name: &str, snapshots: &[Value], settings: &Value) {
    let settings = match settings {
        Value::Null => String::new(),
        other => serde_yaml::to_string(other).unwrap(),
    };
    let settings = read_bundle(&settings).unwrap();
    let mut learned = Learned::default();
    for (number, snapshot) in snapshots.iter().enumerate() {
        let mut snapshot = snapshot.clone();
        snapshot.apply_merge().unwrap();
        let text = serde_yaml::to_string(&snapshot).unwrap();
        let document = SnapshotDocument::parse(&text).unwrap();
        let made = made(name, &document, learned, &settings);
        let cycle = match snapshots.len() {
            1 => String::new(),
            _ => format!("#{}", number + 1),
        };
        for decision in made.plan.decisions.values() {
            writeln!(page, "{name}{cycle}  {}", line(decision)).unwrap();
        }
        learned = made.learned;
    }
}

#[test]
fn vectors() {
    let mut page =
        format!("# case, with the number of its snapshot where it has several, then:\n{COLUMNS}");
    for name in TABLES {
        writeln!(page, "\n## {name}").unwrap();
        for case in table::<Case>(name) {
            let Some(given) = case.given else { continue };
            let mut snapshots = vec![given.snapshot];
            snapshots.extend(given.then);
            write(&mut page, &case.id, &snapshots, &given.settings);
        }
    }
    page.push_str("\n## knobs.yaml\n");
    for knob in table::<Knob>("knobs.yaml") {
        let snapshots = [knob.snapshot];
        write(&mut page, &format!("{}/from", knob.name), &snapshots, &knob.from);
        write(&mut page, &format!("{}/to", knob.name), &snapshots, &knob.to);
    }
    is_golden("vectors.txt", &page);
}
