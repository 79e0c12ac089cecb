//! Each form of a variant makes the other, but for the count, which the controller alone writes.

use serde_json::{Value, json};

use super::forms::{as_annotations, as_object, declared, declares_still, refusal};
use super::{VariantForm, forms_of};
use crate::policy::scaler::ScalerKind;

const HPA: ScalerKind = ScalerKind::HorizontalPodAutoscaler;
const SCALED_OBJECT: ScalerKind = ScalerKind::ScaledObject;

fn variant() -> Value {
    json!({
        "metadata": {
            "namespace": "ns", "name": "llama", "uid": "u",
            "labels": { "inference.optimization/acceleratorName": "H100", "team": "a" },
        },
        "spec": {
            "modelID": "m", "variantCost": "40", "minReplicas": 2, "maxReplicas": 6,
            "scaleTargetRef": { "kind": "Deployment", "name": "d" },
        },
        "status": { "desiredOptimizedAlloc": { "numReplicas": 3 } },
    })
}

fn hpa(read: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "ns", "name": "scaler", "uid": "h", "resourceVersion": "7",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}", "llm-d.ai/desired-replicas": "9",
            },
        },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
            "maxReplicas": 10,
            "metrics": [{ "type": "External", "external": {
                "metric": { "name": "wva_desired_replicas", "selector": { "matchLabels": { "variant_name": read } } },
                "target": { "type": "AverageValue", "averageValue": "1" },
            }}],
        },
        "status": { "currentReplicas": 3 },
    })
}

fn scaled_object() -> Value {
    json!({
        "metadata": { "namespace": "ns", "name": "scaler" },
        "spec": {
            "scaleTargetRef": { "name": "d" },
            "triggers": [
                { "type": "prometheus", "metadata": {
                    "query": "max(wva_desired_replicas{variant_name=\"llama\"})", "threshold": "1",
                }},
                { "type": "external", "metadata": { "variantName": "llama" } },
            ],
        },
    })
}

#[test]
fn the_scaler_that_follows_gets_name_bounds_and_labels_of_its_variant() {
    let hpa = hpa("llama");
    let other = json!({ "metadata": { "namespace": "ns", "name": "x" }, "spec": {
        "scaleTargetRef": { "kind": "Deployment", "name": "d" }, "maxReplicas": 2,
    }});
    let printed = as_annotations(&variant(), &[(HPA, &other), (HPA, &hpa)]).unwrap();
    assert_eq!(
        printed["metadata"],
        json!({
            "namespace": "ns", "name": "scaler",
            "labels": { "inference.optimization/acceleratorName": "H100" },
            "annotations": {
                "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m", "llm-d.ai/variant-cost": "40",
            },
        })
    );
    assert_eq!(
        (&printed["spec"]["minReplicas"], &printed["spec"]["maxReplicas"]),
        (&json!(2), &json!(6))
    );
    let selector = printed.pointer("/spec/metrics/0/external/metric/selector/matchLabels");
    assert_eq!(selector, Some(&json!({ "variant_name": "scaler" })));
    assert!(printed.get("status").is_none());

    let scaled = scaled_object();
    let printed = as_annotations(&variant(), &[(SCALED_OBJECT, &scaled)]).unwrap();
    let triggers = printed["spec"]["triggers"].to_string();
    assert!(triggers.contains(r#"variant_name=\"scaler\""#), "{triggers}");
    assert!(triggers.contains(r#""variantName":"scaler""#), "{triggers}");
    assert_eq!(printed["spec"]["minReplicaCount"], 2);
    assert_eq!(printed["kind"], "ScaledObject");
}

#[test]
fn a_variant_without_one_scaler_of_its_own_is_left_out_with_the_reason() {
    let (own, foreign) = (hpa("llama"), hpa("other"));
    let scaled = scaled_object();
    for scalers in [vec![], vec![(HPA, &foreign)], vec![(HPA, &own), (SCALED_OBJECT, &scaled)]] {
        let why = as_annotations(&variant(), &scalers).unwrap_err();
        assert!(why.contains("VariantAutoscaling ns/llama"), "{why}");
    }
}

/// What the VariantAutoscaling does not state would count from the scaler.
#[test]
fn a_scaler_that_states_more_than_its_variant_is_left_out() {
    let stated = |pointer: &str, value: Value| {
        let mut hpa = hpa("llama");
        let (place, name) = pointer.rsplit_once('#').unwrap();
        let fields = hpa.pointer_mut("/metadata").unwrap();
        fields[place][name] = value;
        as_annotations(&variant(), &[(HPA, &hpa)])
    };
    let instance = "labels#wva.llmd.ai/controller-instance";
    let tier = "annotations#llm-d.ai/scaling-policy";
    for (place, value, part) in
        [(instance, "blue", "controller-instance=\"blue\""), (tier, "gold", "scalingPolicy")]
    {
        let why = stated(place, json!(value)).unwrap_err();
        assert!(why.contains(part), "{why}");
        assert!(why.contains("VariantAutoscaling ns/llama"), "{why}");
    }
    // That of the variant counts, and is printed.
    let accelerator = "labels#inference.optimization/acceleratorName";
    let printed = stated(accelerator, json!("A100")).unwrap();
    let labels = printed.pointer("/metadata/labels");
    let own = json!({ "inference.optimization/acceleratorName": "H100" });
    assert_eq!(labels, Some(&own));

    let mut bare = variant();
    bare["metadata"]["labels"] = json!({});
    bare["spec"].as_object_mut().unwrap().remove("variantCost");
    let mut costly = hpa("llama");
    costly["metadata"]["annotations"]["llm-d.ai/variant-cost"] = json!("7");
    let why = as_annotations(&bare, &[(HPA, &costly)]).unwrap_err();
    assert!(why.contains("a cost"), "{why}");
    let mut labelled = hpa("llama");
    labelled["metadata"]["labels"] = own;
    let why = as_annotations(&bare, &[(HPA, &labelled)]).unwrap_err();
    assert!(why.contains("acceleratorName=\"H100\""), "{why}");
}

#[test]
fn a_printed_object_has_no_label_of_a_deployment_tool() {
    let mut annotated = as_annotations(&variant(), &[(HPA, &hpa("llama"))]).unwrap();
    annotated["metadata"]["labels"]["argocd.argoproj.io/instance"] = json!("app");
    let object = as_object((HPA, &annotated)).unwrap().unwrap();
    let own = json!({ "inference.optimization/acceleratorName": "H100" });
    assert_eq!(object.pointer("/metadata/labels"), Some(&own));
    annotated["metadata"]["labels"] = json!({ "argocd.argoproj.io/instance": "app" });
    let object = as_object((HPA, &annotated)).unwrap().unwrap();
    assert_eq!(object.pointer("/metadata/labels"), None);
}

#[test]
fn a_trigger_that_declares_the_variant_still_is_said() {
    let mut scaled = scaled_object();
    scaled["metadata"]["annotations"] =
        json!({ "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m" });
    assert_eq!(declares_still((SCALED_OBJECT, &scaled)), None);
    scaled["spec"]["triggers"] = json!([{ "type": "external", "metadata": { "modelID": "m" } }]);
    let said = declares_still((SCALED_OBJECT, &scaled)).unwrap();
    assert!(said.contains("ScaledObject ns/scaler"), "{said}");
    assert!(said.contains("modelID"), "{said}");
}

#[test]
fn a_scaler_that_may_not_read_the_new_name_is_left_out() {
    let query = |matcher: &str| {
        let mut scaled = scaled_object();
        let query = format!("max(wva_desired_replicas{{{matcher}}})");
        scaled["spec"]["triggers"][0]["metadata"]["query"] = json!(query);
        (SCALED_OBJECT, scaled)
    };
    let selector = |values: &[&str]| {
        let mut hpa = hpa("llama");
        let expression = json!({ "key": "variant_name", "operator": "In", "values": values });
        hpa["spec"]["metrics"][0]["external"]["metric"]["selector"] =
            json!({ "matchExpressions": [expression] });
        (HPA, hpa)
    };
    let own = |kind: ScalerKind, object: Value| {
        let mut object = object;
        object["metadata"]["name"] = json!("llama");
        (kind, object)
    };
    let regex = query(r#"variant_name=~"llama""#);
    let two = {
        let (kind, mut scaled) = query(r#"variant_name="llama""#);
        scaled["spec"]["triggers"][1]["metadata"]["variantName"] = json!("other");
        (kind, scaled)
    };
    for (scaler, expected) in wva_base::cases! {
        (query(r#"variant_name = "llama""#), Ok(r#"variant_name = \"scaler\""#)),
        (query(r#"exported_namespace="ns""#), Ok("exported_namespace")),
        (selector(&["llama"]), Ok(r#""values":["scaler"]"#)),
        (own(regex.0, regex.1.clone()), Ok("=~")),
        (regex, Err("variant_name=~")),
        (query(r#"variant_name!="x""#), Err("variant_name!=")),
        (query(r#"variant_name="llama",variant_name=~"l.*""#), Err("variant_name=~")),
        (selector(&["llama", "other"]), Err("\"other\"")),
        (two, Err("\"other\"")),
    } {
        let printed = as_annotations(&variant(), &[(scaler.0, &scaler.1)]);
        let text = printed.map(|printed| printed["spec"].to_string());
        match (&text, expected) {
            (Ok(text), Ok(part)) => assert!(text.contains(part), "{text} lacks {part}"),
            (Err(why), Err(part)) => {
                let why = why.replace('\\', "");
                assert!(why.contains(part), "{why} lacks {part}");
                assert!(why.contains("VariantAutoscaling ns/llama"), "{why}");
            }
            _ => panic!("{text:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn a_printed_object_keeps_no_idle_count_that_keda_refuses() {
    for (idle, min, kept) in [(0, Some(0), false), (0, Some(1), true), (2, Some(2), false)] {
        let mut scaled = scaled_object();
        scaled["spec"]["idleReplicaCount"] = json!(idle);
        let mut variant = variant();
        variant["spec"]["minReplicas"] = json!(min);
        let printed = as_annotations(&variant, &[(SCALED_OBJECT, &scaled)]).unwrap();
        let is_kept = printed.pointer("/spec/idleReplicaCount").is_some();
        assert_eq!(is_kept, kept, "{idle} {min:?}");
    }
}

#[test]
fn bounds_that_a_server_may_refuse_are_said() {
    let object = |kind: &str, spec: Value| json!({ "kind": kind, "metadata": { "namespace": "ns", "name": "a" }, "spec": spec });
    for (kind, spec, part) in wva_base::cases! {
        ("HorizontalPodAutoscaler", json!({ "maxReplicas": 2 }), None),
        ("HorizontalPodAutoscaler", json!({ "minReplicas": 2, "maxReplicas": 2 }), None),
        ("HorizontalPodAutoscaler", json!({ "minReplicas": 0, "maxReplicas": 2 }), Some("before Kubernetes 1.37")),
        ("ScaledObject", json!({ "minReplicaCount": 0, "maxReplicaCount": 2 }), None),
        ("VariantAutoscaling", json!({ "minReplicas": 0 }), None),
    } {
        let said = refusal(&object(kind, spec.clone()));
        assert_eq!(said.is_some(), part.is_some(), "{kind} {spec}");
        let said = said.unwrap_or_default();
        assert!(said.contains(part.unwrap_or_default()), "{said}");
    }
}

#[test]
fn a_variant_with_crossed_bounds_is_left_out() {
    for (min, is_printed) in [(6, true), (7, false)] {
        let mut variant = variant();
        variant["spec"]["minReplicas"] = json!(min);
        let printed = as_annotations(&variant, &[(SCALED_OBJECT, &scaled_object())]);
        assert_eq!(printed.is_ok(), is_printed, "{printed:?}");
        let why = printed.err().unwrap_or_default();
        let part = "spec.minReplicaCount is 7, and spec.maxReplicaCount 6";
        assert!(is_printed || why.contains(part), "{why}");
    }
}

#[test]
fn of_two_scalers_with_one_target_or_name_neither_is_printed() {
    let one = as_annotations(&variant(), &[(HPA, &hpa("llama"))]).unwrap();
    let other = |name: &str, target: &str| {
        let mut other = scaled_object();
        other["metadata"]["name"] = json!(name);
        other["spec"]["scaleTargetRef"]["name"] = json!(target);
        other["spec"]["triggers"] = json!([{ "type": "external", "metadata": { "modelID": "m" } }]);
        other
    };
    for (other, is_printed) in
        [(other("other", "e"), true), (other("other", "d"), false), (other("scaler", "e"), false)]
    {
        let plain = hpa("llama");
        let scalers = [(HPA, &one), (SCALED_OBJECT, &other), (HPA, &plain)];
        let printed = forms_of(&[], &scalers, VariantForm::Objects);
        let whys: Vec<&String> = printed.iter().filter_map(|one| one.as_ref().err()).collect();
        assert_eq!((printed.len(), whys.is_empty()), (2, is_printed), "{whys:?}");
        let name = other["metadata"]["name"].as_str().unwrap();
        let both =
            ["HorizontalPodAutoscaler ns/scaler".to_owned(), format!("ScaledObject ns/{name}")];
        for (why, own) in whys.iter().zip(&both) {
            assert!(why.starts_with(own) && both.iter().all(|one| why.contains(one)), "{why}");
        }
    }
}

/// A variant or a scaler with this name and target.
fn placed(mut object: Value, name: &str, target: &str) -> Value {
    object["metadata"]["name"] = json!(name);
    object["spec"]["scaleTargetRef"]["name"] = json!(target);
    object
}

/// Why forms are left out, and how many are printed.
fn left_out(
    variants: &[Value],
    scalers: &[(ScalerKind, Value)],
    to: VariantForm,
) -> (usize, Vec<String>) {
    let scalers: Vec<_> = scalers.iter().map(|(kind, object)| (*kind, object)).collect();
    let forms = forms_of(variants, &scalers, to);
    let printed = forms.iter().filter(|form| form.is_ok()).count();
    (printed, forms.into_iter().filter_map(Result::err).collect())
}

fn assert_named(whys: &[String], expected: &[(&str, &str)]) {
    assert_eq!(whys.len(), expected.len(), "{whys:?}");
    for (why, (own, rival)) in whys.iter().zip(expected) {
        let start = format!("{own}: {rival} is a variant with its target or name");
        assert!(why.starts_with(&start), "{why} instead of {start}");
    }
}

#[test]
fn a_scaler_that_becomes_a_rival_of_another_variant_is_left_out() {
    let to = VariantForm::Annotations;
    let object = |name: &str, target: &str| placed(variant(), name, target);
    let plain = |read: &str, name: &str, target: &str| (HPA, placed(hpa(read), name, target));
    let reading = |read: &str, name: &str, target: &str| {
        let mut scaled = placed(scaled_object(), name, target);
        scaled["spec"]["triggers"] =
            json!([{ "type": "external", "metadata": { "variantName": read } }]);
        (SCALED_OBJECT, scaled)
    };
    let annotated = |name: &str, target: &str| {
        let one = as_annotations(&variant(), &[(HPA, &hpa("llama"))]).unwrap();
        (HPA, placed(one, name, target))
    };

    let scalers = [plain("x", "p", "d"), plain("y", "q", "e")];
    let (printed, whys) = left_out(&[object("x", "d"), object("y", "e")], &scalers, to);
    assert_eq!((printed, whys), (2, Vec::new()));
    // Two VariantAutoscalings with one target.
    let scalers = [plain("x", "p", "d"), plain("y", "q", "d")];
    let (printed, whys) = left_out(&[object("x", "d"), object("y", "d")], &scalers, to);
    assert_eq!(printed, 0);
    assert_named(
        &whys,
        &[
            ("VariantAutoscaling ns/x", "VariantAutoscaling ns/y"),
            ("VariantAutoscaling ns/y", "VariantAutoscaling ns/x"),
        ],
    );
    // Two scalers with one name.
    let scalers = [plain("x", "q", "d"), reading("y", "q", "e")];
    let (printed, whys) = left_out(&[object("x", "d"), object("y", "e")], &scalers, to);
    assert_eq!(printed, 0);
    assert_named(
        &whys,
        &[
            ("VariantAutoscaling ns/x", "ScaledObject ns/q"),
            ("VariantAutoscaling ns/y", "HorizontalPodAutoscaler ns/q"),
        ],
    );
    // A scaler with the name of one that is annotated.
    let scalers = [reading("x", "q", "d"), annotated("other", "e")];
    assert_eq!(left_out(&[object("x", "d")], &scalers, to), (1, Vec::new()));
    let scalers = [reading("x", "q", "d"), annotated("q", "e")];
    let (printed, whys) = left_out(&[object("x", "d")], &scalers, to);
    assert_eq!(printed, 0);
    assert_named(&whys, &[("VariantAutoscaling ns/x", "HorizontalPodAutoscaler ns/q")]);
    // A scaler that is annotated already is no rival of itself.
    let scalers = [annotated("scaler", "d")];
    assert_eq!(left_out(&[object("scaler", "d")], &scalers, to), (1, Vec::new()));
}

#[test]
fn an_object_that_becomes_a_rival_of_another_variant_is_left_out() {
    let one = as_annotations(&variant(), &[(HPA, &hpa("llama"))]).unwrap();
    let scalers = [(HPA, one)];
    for (name, target, is_printed) in
        [("b", "e", true), ("b", "d", false), ("scaler", "e", false), ("scaler", "d", false)]
    {
        let there = [placed(variant(), name, target)];
        let (printed, whys) = left_out(&there, &scalers, VariantForm::Objects);
        assert_eq!(printed == 1, is_printed, "{name} {target}");
        let rival = format!("VariantAutoscaling ns/{name}");
        let named = [("HorizontalPodAutoscaler ns/scaler", &*rival)];
        assert_named(&whys, &named[usize::from(is_printed)..]);
    }
}

#[test]
fn the_cost_that_counts_is_printed() {
    for (annotation, trigger, cost) in [
        (Some("1e1"), None, Some("10")),
        (Some("2.50"), None, Some("2.5")),
        (None, Some("40"), Some("40")),
        (None, None, None),
    ] {
        let mut scaled = scaled_object();
        scaled["spec"]["triggers"] =
            json!([{ "type": "external", "metadata": { "modelID": "m" } }]);
        if let Some(text) = trigger {
            scaled["spec"]["triggers"][0]["metadata"]["variantCost"] = json!(text);
        }
        if let Some(text) = annotation {
            scaled["metadata"]["annotations"] = json!({ "llm-d.ai/variant-cost": text });
        }
        let object = as_object((SCALED_OBJECT, &scaled)).unwrap().unwrap();
        let printed = object.pointer("/spec/variantCost");
        assert_eq!(printed, cost.map(|text| json!(text)).as_ref());
    }
}

#[test]
fn an_annotated_scaler_gives_the_object_that_it_stands_for() {
    let plain = hpa("llama");
    assert_eq!(as_object((HPA, &plain)), None);
    let annotated = as_annotations(&variant(), &[(HPA, &plain)]).unwrap();
    let object = as_object((HPA, &annotated)).unwrap().unwrap();
    let expected = json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": {
            "namespace": "ns", "name": "scaler",
            "labels": { "inference.optimization/acceleratorName": "H100" },
        },
        "spec": {
            "modelID": "m", "variantCost": "40", "minReplicas": 2, "maxReplicas": 6,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
        },
    });
    assert_eq!(object, expected);
    let mut stored = annotated;
    stored["metadata"]["annotations"]["llm-d.ai/desired-replicas"] = json!("3");
    stored["metadata"]["managedFields"] = json!([{
        "manager": "wva-a",
        "fieldsV1": { "f:metadata": { "f:annotations": { "f:llm-d.ai/desired-replicas": {} } } },
    }]);
    let shown = declared((HPA, &stored)).unwrap();
    assert_eq!(shown.pointer("/status/desiredOptimizedAlloc/numReplicas"), Some(&json!(3)));

    let mut tiered = stored.clone();
    tiered["metadata"]["annotations"]["llm-d.ai/scaling-policy"] = json!("gold");
    let why = as_object((HPA, &tiered)).unwrap().unwrap_err();
    assert!(why.contains("scalingPolicy"), "{why}");

    let mut wrong = stored;
    wrong["metadata"]["annotations"]["llm-d.ai/variant-cost"] = json!("abc");
    let why = as_object((HPA, &wrong)).unwrap().unwrap_err();
    assert!(why.contains("llm-d.ai/variant-cost"), "{why}");
    let shown = declared((HPA, &wrong)).unwrap();
    assert_eq!(shown.pointer("/status/conditions/0/message"), Some(&json!(&*why)));
    assert_eq!(shown.pointer("/status/desiredOptimizedAlloc/numReplicas"), Some(&json!(3)));
}
