//! What looks like a cause, and is none.

use std::process::Command;

use serde_json::{Value, json};

use super::answers::{answer, triggers};
use super::causes::{edit, forget_running, objects, remove, scale_to_zero, with_environment};
use super::healthy::{LEASE, NOW, controller, resolve, series};
use crate::doctor::examine;
use crate::doctor::facts::{Facts, LiveKind, Reading};
use crate::doctor::finding::FindingCode;
use crate::doctor::object::{LiveObject, ObjectName};
use crate::doctor::probe::PrometheusProbe as Probe;

const VARIANT: LiveKind = LiveKind::VariantAutoscaling;

/// The controller serves the counts itself, and no scaler asks Prometheus.
pub(super) fn serve(facts: &mut Facts) {
    let service = "v1beta1.external.metrics.k8s.io";
    let name = json!("wva-external-metrics");
    edit(facts, LiveKind::APIService, service, "/spec/service/name", name);
    let mut object = objects(facts, LiveKind::HorizontalPodAutoscaler)[0].clone();
    let text = object.0.to_string().replace("\"a\"", "\"b\"");
    object.0 = text.parse().unwrap();
    objects(facts, LiveKind::HorizontalPodAutoscaler).push(object);
    objects(facts, LiveKind::ScaledObject).clear();
    facts.triggers = Reading::NotAsked;
}

pub(super) fn role(facts: &mut Facts, target: &str, role: &str) {
    let labels = "/spec/template/metadata/labels/llm-d.ai~1role";
    edit(facts, LiveKind::Deployment, target, labels, json!(role));
}

pub(super) fn same_cost(facts: &mut Facts) {
    edit(facts, VARIANT, "b", "/spec/variantCost", json!("10.0"));
}

/// A controller whose address of Prometheus is in a Secret.
fn with_secret() -> Value {
    let mut object = controller("wva");
    object["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{ "secretRef": { "name": "settings" } }]);
    object
}

pub(super) const HARMLESS: &[fn(&mut Facts)] = &[
    // The definition that the chart brings.
    |facts| {
        let object = serde_json::to_value(crate::api::variant_autoscaling::definition()).unwrap();
        objects(facts, LiveKind::CustomResourceDefinition).push(LiveObject::new(object));
    },
    // Nothing of ours reads what the API server cannot serve.
    |facts| {
        serve(facts);
        for kind in [VARIANT, LiveKind::HorizontalPodAutoscaler] {
            objects(facts, kind).clear();
        }
        let failed = json!([{ "type": "Available", "status": "False" }]);
        let name = "v1beta1.external.metrics.k8s.io";
        edit(facts, LiveKind::APIService, name, "/status/conditions", failed);
    },
    // Another scaler has keys of its own, and may state a model.
    |facts| {
        objects(facts, LiveKind::ScaledObject).push(LiveObject::new(json!({
            "kind": "ScaledObject",
            "metadata": {
                "namespace": "ns", "name": "foreign", "annotations": { "llm-d.ai/managed": "false" },
            },
            "spec": {
                "scaleTargetRef": { "name": "worker" },
                "triggers": [{ "type": "external", "metadata": {
                    "scalerAddress": "other:9090", "modelID": "m", "queueLength": "5",
                } }],
            },
        })));
    },
    // Writes are stored while a webhook with this policy has no server.
    |facts| {
        let hook = LiveKind::ValidatingWebhookConfiguration;
        edit(facts, hook, "wva", "/webhooks/0/failurePolicy", json!("Ignore"));
        objects(facts, LiveKind::EndpointSlice).clear();
    },
    |facts| {
        serve(facts);
        answer(facts, Probe::Counts, Vec::new());
    },
    |facts| {
        same_cost(facts);
        role(facts, "a", "prefill");
        role(facts, "b", "decode");
    },
    // Ready for 30 s, and not yet scraped.
    |facts| {
        forget_running(facts, "a-0");
        let time = "/status/conditions/0/lastTransitionTime";
        edit(facts, LiveKind::Pod, "a-0", time, json!("2025-12-31T23:59:30Z"));
    },
    // The target is still known, so its series end soon.
    |facts| {
        for (probe, labels) in [
            (Probe::Running, "namespace=ns,pod=a-9,model_name=meta/llama"),
            (Probe::Pods, "namespace=ns,pod=a-9"),
        ] {
            if let Some(Reading::Known(all)) = facts.series.get_mut(&probe) {
                all.push(series(labels, 1.0));
            }
        }
    },
    // A slow look is no difference of clocks.
    |facts| {
        facts.took = 60.0;
        answer(facts, Probe::Clock, vec![series("", NOW + 62.0)]);
    },
    // Another namespace may have the controller of this instance.
    |facts| {
        let label = json!({ "wva.llmd.ai/controller-instance": "green" });
        for name in ["a", "b"] {
            edit(facts, VARIANT, name, "/metadata/labels", label.clone());
        }
        resolve(facts, &[with_environment("wva", &[("CONTROLLER_INSTANCE", "blue")])]);
        let name = json!(format!("{LEASE}-blue"));
        edit(facts, LiveKind::Lease, LEASE, "/metadata/name", name);
        facts.searched = Some("system".to_owned());
    },
    |facts| {
        scale_to_zero(facts);
        remove(facts, LiveKind::InferencePool, "p");
        let pool = json!({ "kind": "InferencePool", "metadata": { "namespace": "ns", "name": "p" },
            "spec": { "selector": { "pool": "p" } } });
        objects(facts, LiveKind::AlphaInferencePool).push(LiveObject::new(pool));
    },
    // It runs, so what is missing is in the Secret.
    |facts| {
        let main = json!({});
        edit(facts, LiveKind::ConfigMap, "main", "/data", main);
        resolve(facts, &[with_secret()]);
    },
    // While it has a minimum, what there is stays.
    |facts| {
        let fallback = json!({ "replicas": 0, "behavior": "currentReplicas" });
        edit(facts, LiveKind::ScaledObject, "b", "/spec/fallback", fallback);
    },
];

#[test]
fn a_lease_has_expired_only_by_both_clocks() {
    let mut facts = super::facts();
    facts.now = NOW + 3_600.0;
    answer(&mut facts, Probe::Clock, vec![series("", NOW)]);
    assert_eq!(super::codes(&facts), [FindingCode::ClockSkew]);
    answer(&mut facts, Probe::Clock, vec![series("", NOW + 3_600.0)]);
    assert_eq!(super::codes(&facts), [FindingCode::LeaseUnheld]);
}

#[test]
fn costs_of_one_role_are_compared_as_numbers() {
    let mut facts = super::facts();
    same_cost(&mut facts);
    assert_eq!(super::codes(&facts), [FindingCode::CostsEqual]);
    role(&mut facts, "a", "decode");
    role(&mut facts, "b", "decode");
    assert_eq!(super::codes(&facts), [FindingCode::CostsEqual]);
}

#[test]
fn counts_that_no_scaler_finds_are_missing_only_where_one_asks_prometheus() {
    let mut facts = super::facts();
    answer(&mut facts, Probe::Counts, Vec::new());
    triggers(&mut facts, Ok(Vec::new()));
    assert_eq!(super::codes(&facts), [FindingCode::OwnSeriesMissing]);
    serve(&mut facts);
    assert_eq!(super::codes(&facts), Vec::new());
}

#[test]
fn the_remedy_of_a_declared_variant_names_its_scaler() {
    let hpa = || ObjectName::new("HorizontalPodAutoscaler", "ns", "a");
    let variant = || ObjectName::new("VariantAutoscaling", "ns", "a");
    let edit = "kubectl edit horizontalpodautoscaler a --namespace ns";
    let annotate = "kubectl annotate horizontalpodautoscaler a --namespace ns llm-d.ai/managed";
    let delete = "kubectl delete variantautoscaling a --namespace ns";
    for (code, object, value, remedy) in wva_base::cases! {
        (FindingCode::TargetContested, variant(), "", delete.to_owned()),
        (FindingCode::TargetContested, hpa(), "", format!("{annotate}-")),
        (FindingCode::TargetContested, hpa(), "false", format!("{annotate}=false")),
        (FindingCode::CostsEqual, hpa(), "", edit.to_owned()),
        (FindingCode::ModelNameDiffers, hpa(), "m", edit.to_owned()),
        (FindingCode::ModelNameSpelledOtherwise, hpa(), "m", edit.to_owned()),
        (FindingCode::TargetKindUnknown, hpa(), "", edit.to_owned()),
    } {
        assert_eq!(code.at(object, "").with(value).remedy(), remedy, "{code:?}");
    }
}

#[test]
fn the_scaler_of_a_remedy_reaches_zero_where_its_variant_may() {
    for (minimum, sample) in [(1, "hpa.yaml"), (0, "scaledobject.yaml")] {
        let mut facts = super::facts();
        objects(&mut facts, LiveKind::HorizontalPodAutoscaler).clear();
        edit(&mut facts, VARIANT, "a", "/spec/minReplicas", json!(minimum));
        let remedy = remedy_of_no_scaler(&facts);
        let sample =
            format!(" config/samples/scalers/{sample} | kubectl apply --namespace ns -f -");
        assert!(remedy.ends_with(&sample), "{remedy}");
    }
}

fn remedy_of_no_scaler(facts: &Facts) -> String {
    let diagnosis = examine(facts);
    let mut found = diagnosis.findings();
    let found = found.find(|one| one.code == FindingCode::NoScaler);
    found.unwrap().remedy()
}

/// What a remedy gives to kubectl.
fn applied(remedy: &str) -> Value {
    let (command, _) = remedy.split_once(" | kubectl").unwrap();
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", command]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let written = String::from_utf8(bash.output().unwrap().stdout).unwrap();
    serde_yaml::from_str(&written).unwrap()
}

/// Names that hold words of the sample, and a target of another name and kind than its variant.
#[test]
fn the_scaler_of_a_remedy_reads_the_variant_and_scales_its_target() {
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" });
    let group = json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama-8b-llm-d-group",
    });
    for (name, target, minimum) in wva_base::cases! {
        ("a", &deployment, 1),
        ("a", &deployment, 0),
        ("ms-llama-8b-llm-d-decode", &group, 1),
        ("ms-llama-8b-llm-d-decode", &group, 0),
    } {
        let mut facts = super::facts();
        objects(&mut facts, LiveKind::HorizontalPodAutoscaler).clear();
        objects(&mut facts, LiveKind::LeaderWorkerSet).push(LiveObject::new(json!({
            "kind": "LeaderWorkerSet", "metadata": { "namespace": "ns", "name": "llama-8b-llm-d-group" },
        })));
        let place = "/spec/minReplicas";
        edit(&mut facts, VARIANT, "a", place, json!(minimum));
        let place = "/spec/scaleTargetRef";
        edit(&mut facts, VARIANT, "a", place, target.clone());
        edit(&mut facts, VARIANT, "a", "/metadata/name", json!(name));
        let scaler = applied(&remedy_of_no_scaler(&facts));
        assert_eq!(scaler["spec"]["scaleTargetRef"], *target, "{name}");
        assert_eq!(scaler["metadata"]["name"], target["name"], "{name}");
        let labels = json!({ "variant_name": name, "exported_namespace": "ns" });
        let query = format!(
            "max by (variant_name, exported_namespace) \
             (wva_desired_replicas{{variant_name=\"{name}\",exported_namespace=\"ns\"}})"
        );
        let read = if minimum == 0 {
            (&scaler["spec"]["triggers"][0]["metadata"]["query"], json!(query))
        } else {
            let metric = &scaler["spec"]["metrics"][0]["external"]["metric"];
            (&metric["selector"]["matchLabels"], labels)
        };
        assert_eq!(*read.0, read.1, "{name}");
    }
}

#[test]
fn no_word_of_a_remedy_leaves_its_place() {
    let object = || ObjectName::new("VariantAutoscaling", "ns", "a");
    let patch = |value: &str| FindingCode::ModelNameDiffers.at(object(), "").with(value).remedy();
    for (value, word) in [
        ("meta/llama", "meta/llama"),
        ("'; rm -rf /; '", r"'\''; rm -rf /; '\''"),
        (r#"a"}} \"#, r#"a\"}} \\"#),
        ("{name}", "{name}"),
    ] {
        let command = patch(value);
        let end = format!("--patch '{{\"spec\":{{\"modelID\":\"{word}\"}}}}'");
        assert!(command.ends_with(&end), "{command}");
    }
    let label = FindingCode::ForeignInstance.at(object(), "");
    let command = label.with("blue; $(reboot)").remedy();
    assert!(command.ends_with("controller-instance=bluereboot"), "{command}");
}
