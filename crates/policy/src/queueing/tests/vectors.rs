//! The published cases as data: given an input, which numbers come out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::answers::{Given, answer};

const TABLE: &str = include_str!("../../../../../tests/vectors/queueing-model.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    not_applicable: Option<String>,
    given: Option<serde_yaml::Value>,
    #[serde(default)]
    expect: BTreeMap<String, f64>,
    error: Option<String>,
    /// Relative.
    #[serde(default = "default_tolerance")]
    tolerance: f64,
    /// Absolute, by name.
    #[serde(default)]
    within: BTreeMap<String, f64>,
}

fn default_tolerance() -> f64 {
    1e-4
}

impl Case {
    fn faults(&self, given: &serde_yaml::Value) -> Vec<String> {
        let answered = serde_yaml::from_value::<Given>(given.clone())
            .map_err(|error| error.to_string())
            .and_then(|given| answer(&given));
        match (answered, &self.error) {
            (Err(text), Some(part)) if text.contains(part) => Vec::new(),
            (Err(text), _) => vec![format!("{}: failed with {text:?}", self.id)],
            (Ok(numbers), Some(_)) => vec![format!("{}: did not fail: {numbers:?}", self.id)],
            (Ok(numbers), None) => self.compare(&numbers),
        }
    }

    fn compare(&self, numbers: &BTreeMap<String, f64>) -> Vec<String> {
        assert!(!self.expect.is_empty(), "{}: nothing is expected", self.id);
        let faults = self.expect.iter().filter_map(|(name, expected)| {
            let Some(actual) = numbers.get(name) else {
                return Some(format!("{}: no {name}", self.id));
            };
            let relative = self.tolerance * expected.abs() + 1e-12;
            let allowed = self.within.get(name).copied().unwrap_or(relative);
            let off = (actual - expected).abs();
            (off > allowed).then(|| format!("{}: {name} is {actual}, not {expected}", self.id))
        });
        faults.collect()
    }
}

#[test]
fn the_published_cases() {
    let cases: Vec<Case> = serde_yaml::from_str(TABLE).unwrap();
    let mut ids = BTreeSet::new();
    let (mut passed, mut not_applicable) = (0, 0);
    let mut faults = Vec::new();
    for case in &cases {
        assert!(ids.insert(&case.id), "{} stands twice", case.id);
        match (&case.given, &case.not_applicable) {
            (Some(given), None) => {
                faults.extend(case.faults(given));
                passed += 1;
            }
            (None, Some(_)) => not_applicable += 1,
            _ => panic!("{}: either given or not_applicable", case.id),
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!((passed, not_applicable), (86, 12));
}
