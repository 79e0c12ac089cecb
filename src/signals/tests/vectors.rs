//! Reads the test vectors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Reads one file of test vectors.
pub(super) fn load<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What every case says about itself.
#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    corrected: Option<String>,
    not_applicable: Option<String>,
}

const FILES: [&str; 5] =
    ["escaping.yaml", "queries.yaml", "source.yaml", "records.yaml", "transport.yaml"];

/// The published cases of the tables that these files copy.
const EXPECTED: [(&str, &[u32]); 6] = [
    ("ESC", &[1, 3, 5, 7, 9, 11, 13, 15]),
    ("QRY", &[1, 3, 5, 7, 9, 11, 13, 15, 17, 19]),
    ("SRC", &[1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25]),
    ("REQ", &[1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25]),
    ("REC", &[1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]),
    ("TLS", &[1, 3, 5, 7]),
];

fn all_cases() -> Vec<Case> {
    FILES
        .iter()
        .flat_map(|name| load::<BTreeMap<String, Vec<Case>>>(name).into_values().flatten())
        .collect()
}

#[test]
fn every_published_case_is_here_once() {
    let cases = all_cases();
    let ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids.len(), cases.len(), "an id occurs twice");
    for (table, numbers) in EXPECTED {
        for number in numbers {
            let id = format!("{table}-{number:02}");
            assert!(ids.contains(id.as_str()), "{id} is missing");
        }
    }
    for case in &cases {
        assert!(
            case.corrected.is_none() || case.not_applicable.is_none(),
            "{} is corrected and not applicable",
            case.id
        );
    }
}
