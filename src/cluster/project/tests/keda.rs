//! What is made of a count between a trigger and its target.

use super::*;
use crate::api::scaled_object::ScaledObject;
use crate::cluster::project::keda::selects_namespace;
use crate::cluster::project::promql::parse;
use crate::policy::scaler::{Aim, Input};

#[test]
fn a_formula_and_an_activation_threshold_change_the_aim() {
    let aim = |activation: &str, minimum: Option<i32>, modifiers: Value| {
        let object = json!({
            "metadata": { "namespace": "ns", "name": "so" },
            "spec": {
                "scaleTargetRef": { "name": "d" }, "minReplicaCount": minimum,
                "advanced": { "scalingModifiers": modifiers },
                "triggers": [{ "type": "prometheus", "name": "c", "metadata": {
                    "query": "wva_desired_replicas", "threshold": "1", "activationThreshold": activation,
                }}],
            },
        });
        let inputs = project::<ScaledObject>(&object).scaler.inputs;
        let [Input::Published(published)] = inputs.as_slice() else {
            panic!("{inputs:?}");
        };
        match &published.aim {
            Aim::Replicas => String::new(),
            Aim::Other(words) => words.to_string(),
        }
    };
    let formula = |formula: &str, target: &str| json!({ "formula": formula, "target": target });
    let above = "AverageValue 1 above an activationThreshold of 1 (remove that)";
    for (activation, minimum, modifiers, expected) in wva_base::cases! {
        ("0", None, json!(null), ""),
        ("1", None, json!(null), above),
        ("1", Some(0), json!(null), above),
        ("1", Some(1), json!(null), ""),
        ("0", None, json!({}), ""),
        ("0", None, formula("c", "1"), ""),
        ("0", None, formula("max([c, d_1])", "1"), ""),
        ("0", None, formula("c", "4"), "AverageValue 4 of the formula \"c\""),
        ("0", None, formula("c * 2", "1"), "AverageValue 1 of the formula \"c * 2\""),
        ("0", None, formula("sum([c, d])", "1"), "AverageValue 1 of the formula \"sum([c, d])\""),
        ("0", None, formula("max([c, 3])", "1"), "AverageValue 1 of the formula \"max([c, 3])\""),
    } {
        let case = format!("{activation} {minimum:?} {modifiers}");
        assert_eq!(aim(activation, minimum, modifiers), expected, "{case}");
    }
}

#[test]
fn a_tree_of_a_query_has_a_bounded_depth() {
    let nested = |times: usize, before: &str, behind: &str| {
        before.repeat(times) + "wva_desired_replicas" + &behind.repeat(times)
    };
    for (before, behind) in [
        ("(", ")"),
        ("max(", ")"),
        ("-", ""),
        ("", "[1m]"),
        ("", " offset 10m"),
        ("", " @ 1"),
        ("", " + 1"),
    ] {
        let shallow = nested(60, before, behind);
        let read = parse(&shallow).map(|query| query.selectors());
        assert_eq!(read, Ok(vec!["wva_desired_replicas"]), "{before}{behind}");
        let refusal = parse(&nested(100_000, before, behind)).err();
        let why = refusal.as_deref();
        assert_eq!(why, Some("it has more than 128 operands"), "{before}{behind}");
    }
}

#[test]
fn a_namespace_is_that_of_the_first_label_or_not_clear() {
    for (form, namespace, is_selected) in wva_base::cases! {
        ("Q", None, false),
        ("Q{namespace='b'}", Some("b"), true),
        ("Q{exported_namespace='a',namespace='b'}", Some("a"), true),
        ("Q{exported_namespace=~'a.*',namespace='b'}", None, true),
        ("Q{exported_namespace!='',namespace='b'}", None, true),
        ("Q{exported_namespace!='c'}", None, true),
        ("Q{exported_namespace='a'} or Q{namespace='a'}", None, true),
        ("Q and on(exported_namespace) up{exported_namespace='a'}", None, true),
        ("team:Q_max{variant_name='v'}", None, true),
        ("team:Q:max{exported_namespace='a'}", Some("a"), true),
    } {
        let query = form.replace('Q', "wva_desired_replicas");
        let object = json!({
            "metadata": { "namespace": "ns", "name": "so" },
            "spec": { "scaleTargetRef": { "name": "d" }, "triggers": [
                { "type": "prometheus", "metadata": { "query": query, "threshold": "1" } },
            ] },
        });
        let inputs = project::<ScaledObject>(&object).scaler.inputs;
        let [Input::Published(published)] = inputs.as_slice() else {
            panic!("{form}: {inputs:?}");
        };
        assert_eq!(published.namespace.as_deref(), namespace, "{form}");
        assert_eq!(selects_namespace(&query), is_selected, "{form}");
    }
}
