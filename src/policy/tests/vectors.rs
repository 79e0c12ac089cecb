//! The published cases as data: how they are read, run and counted.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One published case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector<G, E> {
    id: String,
    /// Why the expected value is not the published one.
    corrected: Option<String>,
    /// Why the case says nothing about us.
    not_applicable: Option<String>,
    given: Option<G>,
    expect: Option<E>,
}

/// How many cases of a table passed as published, passed as corrected, and do not apply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) corrected: usize,
    pub(crate) not_applicable: usize,
}

/// Runs every case of a table. `check` panics, naming the id, where a case fails.
pub(crate) fn run<G: DeserializeOwned, E: DeserializeOwned>(
    table: &str,
    check: impl Fn(&str, G, E),
) -> Tally {
    let mut tally = Tally {
        passed: 0,
        corrected: 0,
        not_applicable: 0,
    };
    for vector in serde_yaml::from_str::<Vec<Vector<G, E>>>(table).unwrap() {
        let id = &vector.id;
        match (vector.given, vector.expect, vector.not_applicable) {
            (Some(given), Some(expect), None) => {
                check(id, given, expect);
                if vector.corrected.is_some() {
                    tally.corrected += 1;
                } else {
                    tally.passed += 1;
                }
            }
            (None, None, Some(_)) if vector.corrected.is_none() => tally.not_applicable += 1,
            _ => panic!("{id}: either given and expect, or not_applicable"),
        }
    }
    tally
}

/// Every table.
const TABLES: [&str; 10] = [
    include_str!("../../../tests/vectors/sat1a.yaml"),
    include_str!("../../../tests/vectors/sat1r.yaml"),
    include_str!("../../../tests/vectors/sat1t.yaml"),
    include_str!("../../../tests/vectors/enf.yaml"),
    include_str!("../../../tests/vectors/snet.yaml"),
    include_str!("../../../tests/vectors/rec.yaml"),
    include_str!("../../../tests/vectors/tgt.yaml"),
    include_str!("../../../tests/vectors/act.yaml"),
    include_str!("../../../tests/vectors/rcl.yaml"),
    include_str!("../../../tests/vectors/idx.yaml"),
];

#[test]
fn the_list_of_corrections_is_complete() {
    let listed: BTreeMap<String, String> =
        serde_yaml::from_str(include_str!("../../../tests/vectors/corrections.yaml")).unwrap();
    let mut found = BTreeMap::new();
    let mut ids = 0;
    for table in TABLES {
        let vectors: Vec<Vector<serde_yaml::Value, serde_yaml::Value>> =
            serde_yaml::from_str(table).unwrap();
        for vector in vectors {
            ids += 1;
            if let Some(reason) = vector.corrected {
                assert_eq!(
                    found.insert(vector.id.clone(), reason),
                    None,
                    "{}",
                    vector.id
                );
            }
        }
    }
    assert_eq!(found, listed);
    assert_eq!((ids, found.len()), (105, 12));
}
