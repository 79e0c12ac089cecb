//! The published cases as data: how they are read, run and counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

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

impl Tally {
    pub(crate) fn of(passed: usize, corrected: usize, not_applicable: usize) -> Self {
        Self {
            passed,
            corrected,
            not_applicable,
        }
    }
}

/// Runs every case of a table. `check` panics, naming the id, where a case fails.
pub(crate) fn run<G: DeserializeOwned, E: DeserializeOwned>(
    table: &str,
    check: impl Fn(&str, G, E),
) -> Tally {
    let mut tally = Tally::of(0, 0, 0);
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

const TABLES: [&str; 10] = [
    include_str!("../../../../tests/vectors/sat1a.yaml"),
    include_str!("../../../../tests/vectors/sat1r.yaml"),
    include_str!("../../../../tests/vectors/sat1t.yaml"),
    include_str!("../../../../tests/vectors/enf.yaml"),
    include_str!("../../../../tests/vectors/snet.yaml"),
    include_str!("../../../../tests/vectors/rec.yaml"),
    include_str!("../../../../tests/vectors/tgt.yaml"),
    include_str!("../../../../tests/vectors/act.yaml"),
    include_str!("../../../../tests/vectors/rcl.yaml"),
    include_str!("../../../../tests/vectors/idx.yaml"),
];

/// Checks that the list of corrections holds the corrected cases of some tables, each with its reason,
/// and that no id stands twice. That it holds no others is seen by `tests/tidy`. Returns how many cases
/// and corrections there are.
pub(crate) fn check_corrections(tables: &[&str]) -> (usize, usize) {
    let mut ids = BTreeSet::new();
    let mut found = BTreeMap::new();
    for table in tables {
        for case in serde_yaml::from_str::<Vec<Vector<IgnoredAny, IgnoredAny>>>(table).unwrap() {
            assert!(ids.insert(case.id.clone()), "{} stands twice", case.id);
            if let Some(reason) = case.corrected {
                found.insert(case.id, reason);
            }
        }
    }
    let list = include_str!("../../../../tests/vectors/corrections.yaml");
    let listed: BTreeMap<String, String> = serde_yaml::from_str(list).unwrap();
    for (id, reason) in &found {
        assert_eq!(listed.get(id), Some(reason), "{id}");
    }
    (ids.len(), found.len())
}

#[test]
fn the_list_of_corrections_is_complete() {
    assert_eq!(check_corrections(&TABLES), (105, 12));
}
