//! Differences of values.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{apply, diff};

fn patched(old: &Value, new: &Value) -> Value {
    let mut value = old.clone();
    if let Some(patch) = diff(old, new) {
        apply(&mut value, patch).unwrap();
    }
    value
}

#[test]
fn a_window_that_moves_costs_its_new_element_alone() {
    assert_eq!(diff(&json!([1, 2]), &json!([1, 2])), None);
    for (old, new, patch) in [
        (json!([1, 2, 3]), json!([2, 3, 4]), json!([1, 2, {}, [4]])),
        (json!([1, 2, 3]), json!([1, 2]), json!([0, 2, {}, []])),
        (json!([1, 2]), json!([1, 5]), json!([0, 2, {"1": [5]}, []])),
        (json!([]), json!([1]), json!([0, 0, {}, [1]])),
        (json!({"a": 1, "b": 2}), json!({"b": 3}), json!({"a": [], "b": [3]})),
        (json!({"a": null}), json!({"a": null, "b": []}), json!({"b": [[]]})),
        (json!(1), json!([]), json!([[]])),
    ] {
        assert_eq!(diff(&old, &new), Some(patch), "{old} {new}");
        assert_eq!(patched(&old, &new), new);
    }
}

#[test]
fn a_patch_that_does_not_fit_is_refused() {
    for (value, patch) in [
        (json!({}), json!({"a": []})),
        (json!([1]), json!([2, 0, {}, []])),
        (json!([1]), json!([0, 2, {}, []])),
        (json!([1]), json!([0, 1, {"1": [2]}, []])),
        (json!([1]), json!([0, 1, {"x": [2]}, []])),
        (json!([1]), json!([-1, 1, {}, []])),
        (json!({}), json!([0, 1, {}, []])),
        (json!([1]), json!([1, 2])),
        (json!(1), json!(2)),
        (json!(1), json!({"a": [1]})),
    ] {
        assert!(apply(&mut value.clone(), patch.clone()).is_err(), "{value} {patch}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_difference_leads_from_the_old_value_to_the_new(old in values(), new in values()) {
        prop_assert_eq!(patched(&old, &new), new);
    }
}
