//! The published cases as data.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{Cycle, Fleet, Policy, engine};
use crate::capacity::ServingRole;
use crate::engine_args::{KvTokens, StepTokens};
use crate::tests::vectors::{Tally, run};
use crate::throughput::shape::OutputClass;
use crate::tokens::bound::{CapacityReason, derived, median};
use crate::tokens::history::RollingWindow;
use crate::tokens::instance::waiting_charge;

const TABLE: &str = include_str!("../../../../../tests/vectors/tokens.yaml");

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Given {
    Cycles { queue: Option<f64>, up: Option<f64>, down: Option<f64>, cycles: Vec<Cycle> },
    Derived { budget: Option<u32>, seqs: Option<u32>, input: f64, output: f64 },
    Charge { role: ServingRole, waiting: f64, input: Option<f64>, output: Option<f64> },
    Median { values: Vec<f64>, reasons: Option<Vec<CapacityReason>> },
    Window { limit: usize, values: Vec<f64> },
    Bucket { output: f64 },
    Same { one: Vec<Arc<str>>, other: Vec<Arc<str>> },
}

type Figures = BTreeMap<String, Value>;

fn only(name: &str, value: Value) -> Vec<Figures> {
    vec![BTreeMap::from([(name.to_owned(), value)])]
}

fn answer(given: Given) -> Vec<Figures> {
    match given {
        Given::Cycles { queue, up, down, cycles } => {
            let mut policy = Policy::usual();
            let (thresholds, band) = (&mut policy.thresholds, &mut policy.band);
            thresholds.queue_length_threshold = queue.unwrap_or(thresholds.queue_length_threshold);
            band.scale_up_threshold = up.unwrap_or(band.scale_up_threshold);
            band.scale_down_boundary = down.unwrap_or(band.scale_down_boundary);
            let mut fleet = Fleet::default();
            cycles.iter().map(|cycle| fleet.cycle(cycle, policy)).collect()
        }
        Given::Derived { budget, seqs, input, output } => {
            let tokens = budget
                .zip(seqs)
                .and_then(|(budget, seqs)| derived(StepTokens(budget), seqs, input, output));
            only("tokens", json!(tokens.unwrap_or_default().0))
        }
        Given::Charge { role, waiting, input, output } => {
            only("tokens", json!(waiting_charge(role, waiting, input, output).0))
        }
        Given::Median { values, reasons } => {
            let reasons = reasons.unwrap_or_else(|| vec![CapacityReason::Memory; values.len()]);
            let found = median(values.into_iter().map(KvTokens).zip(reasons));
            let mut figures = only("tokens", json!(found.map_or(0.0, |(tokens, _)| tokens.0)));
            if let Some((_, reason)) = found {
                figures[0].insert("reason".to_owned(), json!(reason));
            }
            figures
        }
        Given::Window { limit, values } => {
            let mut window = RollingWindow::new(limit);
            for value in values {
                window.push(KvTokens(value));
            }
            only("tokens", json!(window.mean().unwrap_or(0.0)))
        }
        Given::Bucket { output } => only("bucket", json!(OutputClass::of(output))),
        Given::Same { one, other } => {
            only("same", json!(engine(&one).fingerprint() == engine(&other).fingerprint()))
        }
    }
}

fn is_equal(actual: &Value, expected: &Value) -> bool {
    match (actual.as_f64(), expected.as_f64()) {
        (Some(actual), Some(expected)) => {
            (actual - expected).abs() <= 1e-4 * expected.abs().max(1e-2)
        }
        _ => actual == expected,
    }
}

#[test]
fn the_published_cases() {
    let tally = run(TABLE, |id, given: Given, expect: Vec<Figures>| {
        let answers = answer(given);
        assert_eq!(answers.len(), expect.len(), "{id}");
        assert!(expect.iter().any(|figures| !figures.is_empty()), "{id}");
        for (cycle, (answer, expect)) in answers.iter().zip(&expect).enumerate() {
            for (name, expected) in expect {
                // Whatever is behind a null has no names of its own.
                let is_absent = expected.is_null() && !answer.contains_key(name);
                let parent = name.rsplit_once('.').map(|(parent, _)| parent);
                assert!(
                    !is_absent || parent.is_some_and(|parent| answer.contains_key(parent)),
                    "{id}, cycle {cycle}: no {name} in {answer:#?}"
                );
                let actual = answer.get(name).unwrap_or(&Value::Null);
                assert!(
                    is_equal(actual, expected),
                    "{id}, cycle {cycle}: {name} is {actual}, not {expected}"
                );
            }
        }
    });
    assert_eq!(tally, Tally::of(91, 15, 0));
}
