//! Variants that scalers declare are judged as VariantAutoscalings are.

use serde_json::{Value, json};

use super::answers::model;
use super::causes::{Cause, edit, objects, remove, with_environment};
use super::codes;
use super::fleets::external_scaler;
use super::healthy::{facts, resolve};
use super::manifests::written;
use crate::doctor::facts::{Facts, LiveKind};
use crate::doctor::object::LiveObject;
use crate::doctor::{FindingCode as Code, examine};

const HPA: LiveKind = LiveKind::HorizontalPodAutoscaler;
const SCALED_OBJECT: LiveKind = LiveKind::ScaledObject;

fn annotate(facts: &mut Facts, kind: LiveKind, name: &str, cost: &str) {
    let count = "llm-d.ai/desired-replicas";
    let annotations = json!({
        "llm-d.ai/managed": "true", "llm-d.ai/model-id": "meta/llama", "llm-d.ai/variant-cost": cost, count: "2",
    });
    edit(facts, kind, name, "/metadata/annotations", annotations);
    let owned = json!({ "f:metadata": { "f:annotations": { format!("f:{count}"): {} } } });
    let managers = json!([{ "manager": "wva-one", "operation": "Apply", "fieldsV1": owned }]);
    edit(facts, kind, name, "/metadata/managedFields", managers);
}

pub(super) fn tier(facts: &mut Facts, kind: LiveKind, name: &str, tier: &str) {
    let place = "/metadata/annotations/llm-d.ai~1scaling-policy";
    edit(facts, kind, name, place, json!(tier));
}

/// The healthy fleet without VariantAutoscalings.
pub(super) fn fleet() -> Facts {
    let mut facts = facts();
    objects(&mut facts, LiveKind::VariantAutoscaling).clear();
    annotate(&mut facts, HPA, "a", "10");
    annotate(&mut facts, SCALED_OBJECT, "b", "20");
    with_settings(&mut facts, &[]);
    facts
}

/// Gives the controller settings, and those that are in ConfigMaps.
pub(super) fn with_settings(facts: &mut Facts, more: &[(&str, &str)]) {
    let enabled = ("ANNOTATED_SCALERS_ENABLED", "true");
    let all: Vec<_> = [enabled].into_iter().chain(more.iter().copied()).collect();
    resolve(facts, &[with_environment("wva", &all)]);
}

const CAUSES: &[Cause] = causes! {
    CountNotRead: HorizontalPodAutoscaler "a"
        "/spec/metrics/0/external/metric/selector/matchLabels/variant_name" = "wrong";
    CountNotRead: ScaledObject "b" "/spec/triggers" = [{ "type": "cpu", "metadata": { "value": "80" } }];
    WrongTarget: ScaledObject "b" "/spec/triggers/0/metricType" = "Value";
    SeveralScalers => |facts| {
        let mut other = objects(facts, HPA)[0].clone();
        other.0["metadata"] = json!({ "namespace": "ns", "name": "other" });
        objects(facts, HPA).push(other);
    };
    TargetContested => |facts| {
        let mut other = objects(facts, HPA)[0].clone();
        let annotations = json!({ "llm-d.ai/managed": "true", "llm-d.ai/model-id": "meta/llama" });
        other.0["metadata"] = json!({ "namespace": "ns", "name": "other", "annotations": annotations });
        objects(facts, HPA).push(other);
    };
    TargetMissing => |facts| remove(facts, LiveKind::Deployment, "a");
    TargetKindUnknown: HorizontalPodAutoscaler "a" "/spec/scaleTargetRef" = { "kind": "Thing", "name": "a" };
    CostsEqual => |facts| annotate(facts, SCALED_OBJECT, "b", "1e1");
    ModelNameDiffers => |facts| model(facts, "other");
    NamespaceExcluded: Namespace "ns" "/metadata/annotations" = { "wva.llmd.ai/exclude": "true" };
    VariantMalformed => |facts| annotate(facts, HPA, "a", "cheap");
    VariantMalformed: HorizontalPodAutoscaler "a" "/metadata/annotations/llm-d.ai~1managed" = "True";
    VariantMalformed: HorizontalPodAutoscaler "a" "/metadata/annotations/llm-d.ai~1variantcost" = "4";
    TierWithoutEffect => |facts| tier(facts, HPA, "a", "gold");
    VariantMalformed => |facts| {
        external_scaler(facts);
        annotate(facts, SCALED_OBJECT, "a", "10");
        let place = "/spec/triggers/0/metadata/scalingPolicy";
        edit(facts, SCALED_OBJECT, "b", place, json!("gold"));
    };
};

#[test]
fn a_declared_variant_is_judged_as_an_object_is() {
    let healthy = fleet();
    assert_eq!(codes(&healthy), Vec::new());
    let mut wrong = Vec::new();
    for (code, plant) in CAUSES {
        let mut facts = healthy.clone();
        plant(&mut facts);
        facts.declare();
        if codes(&facts) != [*code] {
            wrong.push(format!("{code:?}: {}", examine(&facts).to_text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A conflict of a scaler is an event; the last one counts.
#[test]
fn what_the_controller_reports_of_a_scaler_is_found_until_it_is_over() {
    let event = |second: u32, kind: &str, action: &str| {
        let at = format!("2025-12-31T23:00:0{second}.000000Z");
        LiveObject::new(json!({
            "kind": "Event", "metadata": { "namespace": "ns", "name": at }, "eventTime": at,
            "regarding": { "kind": "HorizontalPodAutoscaler", "namespace": "ns", "name": "a" },
            "reportingController": "llmd.ai/workload-variant-autoscaler",
            "type": kind, "action": action, "reason": "Reason", "note": "why",
        }))
    };
    let failed = event(1, "Warning", "ControllerConflict");
    let over = event(2, "Normal", "ControllerConflict");
    let again = event(3, "Warning", "ControllerConflict");
    let other = event(4, "Normal", "MetricsAvailable");
    let mut foreign = failed.clone();
    foreign.0["reportingController"] = json!("other");
    for (events, expected) in [
        (vec![&foreign], &[][..]),
        (vec![&failed], &[Code::NotApplied]),
        (vec![&over, &failed], &[]),
        (vec![&again, &over, &failed], &[Code::NotApplied]),
        (vec![&again, &other], &[Code::NotApplied]),
        (vec![&over, &other], &[]),
    ] {
        let mut facts = fleet();
        *objects(&mut facts, LiveKind::Event) = events.into_iter().cloned().collect();
        facts.declare();
        assert_eq!(codes(&facts), expected);
    }
}

#[test]
fn annotations_of_others_are_no_misspelt_ones() {
    for key in ["model", "variant", "managed-by", "role", "model-name", "variant-cost-note"] {
        let mut facts = fleet();
        let place = format!("/metadata/annotations/llm-d.ai~1{key}");
        edit(&mut facts, HPA, "a", &place, json!("x"));
        assert_eq!(codes(&facts), Vec::new(), "{key}");
    }
}

/// An object that states a model and no switch was meant to have one; others may mean another key.
#[test]
fn a_misspelt_switch_is_found_where_a_model_is_stated() {
    for (annotations, count) in [
        (json!({ "llm-d.ai/manged": "true" }), 0),
        (json!({ "llm-d.ai/manged": "true", "llm-d.ai/model-id": "m" }), 1),
        (
            json!({ "llm-d.ai/managed": "false", "llm-d.ai/manged": "true", "llm-d.ai/model-id": "m" }),
            0,
        ),
        (json!({ "llm-d.ai/variantcost": "4", "llm-d.ai/model-id": "m" }), 0),
    ] {
        let causes = wrong_annotations(&annotations);
        assert_eq!(causes.len(), count, "{annotations}: {causes:?}");
        let word = "annotation \"llm-d.ai/manged\" has no effect; write llm-d.ai/managed";
        assert!(causes.iter().all(|cause| cause.starts_with(word)), "{causes:?}");
    }
}

/// What is wrong with the annotations of the HorizontalPodAutoscaler.
fn wrong_annotations(annotations: &Value) -> Vec<String> {
    let mut facts = fleet();
    edit(&mut facts, HPA, "a", "/metadata/annotations", annotations.clone());
    let diagnosis = examine(&facts);
    let found = diagnosis.findings();
    let causes = found.filter(|one| one.code == Code::VariantMalformed);
    causes.map(|one| one.cause.clone()).collect()
}

/// VariantAutoscalings and labels have other groups than annotations.
#[test]
fn a_key_of_a_group_that_is_nearly_ours_is_found() {
    let with = |group: &str| {
        let switch = format!("{group}/managed");
        let annotations = json!({ &switch: "true", "llm-d.ai/model-id": "m" });
        (switch, annotations)
    };
    for (group, is_found) in
        [("llm-d.ai", false), ("llmd.ai", true), ("wva.llmd.ai", true), ("example.com", false)]
    {
        let (switch, annotations) = with(group);
        let expected =
            format!("annotation {switch:?} has no effect; write llm-d.ai/managed, or remove it");
        let expected: &[String] = if is_found { &[expected] } else { &[] };
        assert_eq!(wrong_annotations(&annotations), expected, "{group}");
    }
    let name = |key: &str| json!({ "llmd.ai/managed": "true", key: "m" });
    assert_eq!(wrong_annotations(&name("llmd.ai/model")).len(), 0);
    assert_eq!(wrong_annotations(&name("llmd.ai/model-id")).len(), 2);
}

#[test]
fn misspelt_keys_and_wrong_values_are_found_at_once() {
    let cost = "llm-d.ai/variant-cost";
    let slips = ["llm-d.ai/replica-start-second", "llm-d.ai/scaling-polcy"];
    let annotations = |managed: &str, stated: &str| {
        json!({
            "llm-d.ai/managed": managed, "llm-d.ai/model-id": "m", cost: stated, slips[0]: "9", slips[1]: "gold",
        })
    };
    let starts = |found: Vec<String>, expected: &[&str]| {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for part in expected {
            assert!(found.iter().any(|one| one.contains(part)), "{found:?}");
        }
    };
    starts(wrong_annotations(&annotations("true", "4")), &slips);
    for (managed, stated, fault) in [
        ("true", "cheap", "llm-d.ai/variant-cost=\"cheap\""),
        ("True", "4", "llm-d.ai/managed=\"True\""),
    ] {
        let found = wrong_annotations(&annotations(managed, stated));
        starts(found, &[fault, slips[0], slips[1]]);
    }
}

#[test]
fn a_value_without_quotes_is_named_with_its_key() {
    let found = |annotations: &Value, metadata: &Value| {
        let object = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": { "name": "s", "annotations": annotations },
            "spec": { "scaleTargetRef": { "name": "d" }, "triggers": [{ "type": "external", "metadata": metadata }] },
        });
        let text = object.to_string();
        let diagnosis = examine(&written(&[("s.yaml", text.as_str())]));
        let found = diagnosis.findings();
        let causes = found.filter(|one| one.code == Code::VariantMalformed);
        causes.map(|one| one.cause.clone()).collect::<Vec<_>>()
    };
    let quoted = json!({ "modelID": "m", "variantCost": "40" });
    assert_eq!(found(&json!({}), &quoted), Vec::<String>::new());
    for (annotations, metadata, cause) in wva_base::cases! {
        (json!({ "llm-d.ai/managed": true }), quoted.clone(),
         "metadata.annotations.llm-d.ai/managed: invalid type: boolean `true`, expected a string"),
        (json!({ "llm-d.ai/variant-cost": 40 }), quoted.clone(),
         "metadata.annotations.llm-d.ai/variant-cost: invalid type: integer `40`, expected a string"),
        (json!({}), json!({ "modelID": "m", "variantCost": 40 }),
         "spec.triggers[0].metadata.variantCost: invalid type: integer `40`, expected a string"),
    } {
        assert_eq!(found(&annotations, &metadata), [cause]);
    }
}

#[test]
fn a_declared_variant_needs_no_name_in_its_trigger() {
    let mut facts = fleet();
    external_scaler(&mut facts);
    for (name, cost) in [("a", "10"), ("b", "20")] {
        annotate(&mut facts, SCALED_OBJECT, name, cost);
        let metadata = json!({ "scalerAddress": "wva-external-scaler.system.svc:443" });
        let place = "/spec/triggers/0/metadata";
        edit(&mut facts, SCALED_OBJECT, name, place, metadata);
    }
    assert_eq!(codes(&facts), Vec::new());
    // KEDA knows it as another metric.
    let names = json!({ "externalMetricNames": ["s0-queue"] });
    edit(&mut facts, SCALED_OBJECT, "b", "/status", names);
    assert_eq!(codes(&facts), [Code::CountNotRead]);
}

#[test]
fn manifests_show_what_a_declared_variant_lacks() {
    let found = |spec: Value| {
        let object = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": { "name": "s", "annotations": { "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m" } },
            "spec": spec,
        });
        let text = object.to_string();
        let diagnosis = examine(&written(&[("s.yaml", text.as_str())]));
        diagnosis.findings().map(|one| one.code).collect::<Vec<_>>()
    };
    let spec = |metadata: Value| {
        json!({ "scaleTargetRef": { "name": "d" }, "fallback": { "replicas": 1, "failureThreshold": 3 },
        "advanced": { "horizontalPodAutoscalerConfig": { "behavior": {
            "scaleUp": { "tolerance": "0" }, "scaleDown": { "tolerance": "0" } } } },
        "triggers": [{ "type": "external", "metadata": metadata }] })
    };
    for (metadata, codes) in wva_base::cases! {
        (json!({ "scalerAddress": "x" }), &[][..]),
        (json!({ "scalerAddress": "x", "variantName": "other" }), &[Code::CountNotRead]),
        (json!({ "scalerAddress": "x", "queueLength": "5" }), &[Code::VariantMalformed]),
        (json!({ "variantName": "s", "scalingPolicy": "gold" }), &[Code::VariantMalformed]),
        (json!({ "variantName": "s", "variantCost": "77" }), &[Code::VariantMalformed]),
    } {
        assert_eq!(found(spec(metadata.clone())), codes, "{metadata}");
    }
}

#[test]
fn nothing_is_declared_where_no_controller_takes_annotations() {
    let mut facts = fleet();
    facts.declare();
    assert_eq!(facts.variants().count(), 2);
    resolve(&mut facts, &[with_environment("wva", &[])]);
    facts.declare();
    assert_eq!(facts.variants().count(), 0);
}

#[test]
fn two_of_one_name_are_named_both_and_only_what_is_asked_for_is_shown() {
    let titles = |facts: &Facts, code: Code| {
        let diagnosis = examine(facts);
        let found = diagnosis.findings().filter(|one| one.code == code);
        let mut found: Vec<String> = found.map(|one| one.object.to_string()).collect();
        found.sort();
        found
    };
    let mut facts = fleet();
    facts.declare();
    assert!(titles(&facts, Code::TargetContested).is_empty());
    let mut other = objects(&mut facts, HPA)[0].clone();
    other.0["metadata"]["name"] = json!("b");
    other.0["spec"]["scaleTargetRef"]["name"] = json!("elsewhere");
    objects(&mut facts, HPA).push(other);
    facts.declare();
    let both = ["HorizontalPodAutoscaler ns/b".to_owned(), "ScaledObject ns/b".to_owned()];
    assert_eq!(titles(&facts, Code::TargetContested), both);
    let mut wrong = facts.clone();
    let cost = "/metadata/annotations/llm-d.ai~1variant-cost";
    edit(&mut wrong, SCALED_OBJECT, "b", cost, json!("cheap"));
    wrong.declare();
    assert!(titles(&wrong, Code::TargetContested).is_empty());
    facts.variant = Some("a".to_owned());
    assert!(titles(&facts, Code::TargetContested).is_empty());
    annotate(&mut facts, HPA, "a", "cheap");
    facts.declare();
    let own = titles(&facts, Code::VariantMalformed);
    assert_eq!(own, ["HorizontalPodAutoscaler ns/a".to_owned()]);
    facts.variant = Some("b".to_owned());
    assert!(titles(&facts, Code::VariantMalformed).is_empty());
    assert_eq!(titles(&facts, Code::TargetContested), both);
}

#[test]
fn scalers_of_other_variants_than_the_asked_one_have_no_finding() {
    let texts = |name: &str, query: &str| {
        let query = query.replace("NAME", name);
        format!(
            "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {{name: {name}, namespace: ns}}\n\
             spec: {{scaleTargetRef: {{name: {name}}}, modelID: m-{name}, minReplicas: 1, maxReplicas: 5}}\n---\n\
             apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: s-{name}, namespace: ns}}\n\
             spec:\n  scaleTargetRef: {{name: {name}}}\n  minReplicaCount: 1\n  pollingInterval: 15\n  triggers:\n  \
             - type: prometheus\n    metadata: {{serverAddress: x, threshold: '1', ignoreNullValues: 'false', \
             query: '{query}'}}\n"
        )
    };
    let max = "max(wva_desired_replicas{variant_name=\"NAME\",exported_namespace=\"ns\"})";
    let sum = max.replace("max", "sum");
    let added = format!("{max} + 1");
    for (query, asked, expected) in wva_base::cases! {
        // KEDA's own limit of 100 does not hold a variant of 5 replicas back.
        (max, None, &[][..]),
        (max, Some("b"), &[]),
        (sum.as_str(), Some("a"), &[Code::QueryAddsUp]),
        (sum.as_str(), Some("b"), &[]),
        (added.as_str(), Some("a"), &[Code::WrongTarget]),
        (added.as_str(), Some("b"), &[]),
    } {
        let (a, b) = (texts("a", query), texts("b", max));
        let mut facts = written(&[("a.yaml", a.as_str()), ("b.yaml", b.as_str())]);
        facts.variant = asked.map(str::to_owned);
        assert_eq!(codes(&facts), expected, "{query} {asked:?}");
    }
}
