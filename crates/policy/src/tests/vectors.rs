//! The published cases as data: how they are read, run and counted.

use serde::Deserialize;
use serde::de::DeserializeOwned;

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
        Self { passed, corrected, not_applicable }
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
