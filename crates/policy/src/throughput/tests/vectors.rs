//! The published cases as data: given an input, which values come out.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;

use super::answers::{Given, answer};
use crate::tests::vectors::{Tally, run};

const TABLE: &str = include_str!("../../../../../tests/vectors/throughput.yaml");

fn find<'a>(tree: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(tree, |node, name| node.get(name)).unwrap_or(&Value::Null)
}

fn is_same(actual: &Value, expected: &Value) -> bool {
    match (actual.as_f64(), expected.as_f64()) {
        (Some(actual), Some(expected)) => {
            (actual - expected).abs() <= 1e-5 * expected.abs().max(1e-6)
        }
        _ => actual == expected,
    }
}

#[test]
fn the_published_cases() {
    let faults = RefCell::new(Vec::new());
    let tally = run(TABLE, |id, given: Given, expect: BTreeMap<String, Value>| {
        assert!(!expect.is_empty(), "{id}: nothing is expected");
        let tree = answer(&given);
        for (path, expected) in &expect {
            let actual = find(&tree, path);
            if !is_same(actual, expected) {
                let fault = format!("{id}: {path} is {actual}, not {expected}");
                faults.borrow_mut().push(fault);
            }
        }
    });
    assert_eq!(faults.take(), Vec::<String>::new());
    assert_eq!(tally, Tally::of(62, 2, 0));
}
