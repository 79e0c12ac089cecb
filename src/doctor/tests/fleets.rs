//! Installations that differ from each other, none of which lacks anything.

use serde_json::{Value, json};

use super::answers::answer;
use super::causes::{
    absent, again, edit, forget_running, main_config, map, objects, remove, scale_to_zero,
    with_environment,
};
use super::harmless::{role, same_cost, serve};
use super::healthy::{LEASE, QUERY, answered, resolve, series};
use crate::doctor::facts::{Facts, LiveKind, QueryAnswers, Reading};
use crate::doctor::object::LiveObject;
use crate::doctor::probe::PrometheusProbe as Probe;

const VARIANT: LiveKind = LiveKind::VariantAutoscaling;
const HPA: LiveKind = LiveKind::HorizontalPodAutoscaler;

/// What is installed, and how that differs from the healthy facts.
type HealthyFleet = (&'static str, fn(&mut Facts));

fn put(facts: &mut Facts, kind: LiveKind, object: Value) {
    objects(facts, kind).push(LiveObject::new(object));
}

/// The first object of a kind with every `from` in quotes replaced.
fn copied(object: &LiveObject, from: &str, to: &str) -> LiveObject {
    let text = object.0.to_string();
    let text = text.replace(&format!("\"{from}\""), &format!("\"{to}\""));
    // Within a query the quotes have backslashes.
    let text = text.replace(&format!("\"{from}\\\""), &format!("\"{to}\\\""));
    LiveObject::new(text.parse().unwrap())
}

fn copy(facts: &mut Facts, kind: LiveKind, to: &str) {
    let from = objects(facts, kind)[0].clone();
    let copy = copied(&from, from.name(), to);
    objects(facts, kind).push(copy);
}

fn reference(name: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name })
}

/// The HorizontalPodAutoscaler that KEDA makes.
fn made_by_keda(name: &str, is_active: bool) -> Value {
    let active = if is_active {
        json!({ "type": "ScalingActive", "status": "True", "reason": "ValidMetricFound" })
    } else {
        json!({ "type": "ScalingActive", "status": "False", "reason": "ScalingDisabled" })
    };
    json!({
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "namespace": "ns", "name": format!("keda-hpa-{name}"), "ownerReferences": [{
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": name, "uid": "u", "controller": true }] },
        "spec": {
            "scaleTargetRef": reference(name), "minReplicas": 1, "maxReplicas": 8,
            "metrics": [{ "type": "External", "external": {
                "metric": { "name": "s0-prometheus", "selector": { "matchLabels": { "scaledobject.keda.sh/name": name } } },
                "target": { "type": "AverageValue", "averageValue": "1" } } }],
        },
        "status": { "desiredReplicas": 2, "currentMetrics": [], "conditions": [
            { "type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale" }, active ] },
    })
}

/// Every variant below KEDA.
pub(super) fn all_by_keda(facts: &mut Facts, is_active: bool) {
    objects(facts, HPA).clear();
    copy(facts, LiveKind::ScaledObject, "a");
    for name in ["a", "b"] {
        put(facts, HPA, made_by_keda(name, is_active));
    }
    answered(facts, 2.0);
}

pub(super) fn external_scaler(facts: &mut Facts) {
    all_by_keda(facts, true);
    for name in ["a", "b"] {
        let trigger = json!([{ "type": "external-push", "metricType": "AverageValue", "metadata": {
            "scalerAddress": "wva-external-scaler.system.svc:443", "variantName": name } }]);
        edit(facts, LiveKind::ScaledObject, name, "/spec/triggers", trigger);
    }
    // The page of the controller is not scraped at all.
    answer(facts, Probe::Counts, Vec::new());
    answer(facts, Probe::Starts, Vec::new());
    facts.triggers = Reading::Known(QueryAnswers::new());
}

/// Variant a runs in groups of a leader and a worker, and may go to zero.
fn groups(facts: &mut Facts) {
    let kind = "LeaderWorkerSet";
    let reference =
        json!({ "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": kind, "name": "a" });
    scale_to_zero(facts);
    all_by_keda(facts, true);
    for scaled in [VARIANT, LiveKind::ScaledObject] {
        edit(facts, scaled, "a", "/spec/scaleTargetRef", reference.clone());
    }
    edit(facts, HPA, "keda-hpa-a", "/spec/scaleTargetRef", reference);
    for name in ["a", "b"] {
        edit(facts, LiveKind::ScaledObject, name, "/spec/minReplicaCount", json!(0));
    }
    remove(facts, LiveKind::Deployment, "a");
    remove(facts, LiveKind::Pod, "a-0");
    let labels = json!({ "leaderworkerset.sigs.k8s.io/name": "a", "pool": "p" });
    let container = json!([{ "name": "vllm", "args": ["--model=meta/llama-3"] }]);
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": container } });
    put(
        facts,
        LiveKind::LeaderWorkerSet,
        json!({ "kind": kind, "metadata": { "namespace": "ns", "name": "a" }, "spec": { "replicas": 1,
            "leaderWorkerTemplate": { "size": 2, "leaderTemplate": template, "workerTemplate": template } } }),
    );
    for pod in ["a-0", "a-0-1"] {
        put(
            facts,
            LiveKind::Pod,
            json!({ "kind": "Pod", "metadata": { "namespace": "ns", "name": pod, "labels": labels,
                "creationTimestamp": "2025-12-31T23:00:00Z" }, "spec": {},
                "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } }),
        );
    }
}

/// Both variants are at zero.
fn asleep(facts: &mut Facts) {
    scale_to_zero(facts);
    all_by_keda(facts, false);
    answered(facts, 0.0);
    for name in ["a", "b"] {
        let pod = format!("{name}-0");
        remove(facts, LiveKind::Pod, &pod);
        forget_running(facts, &pod);
        edit(facts, LiveKind::Deployment, name, "/spec/replicas", json!(0));
        edit(facts, VARIANT, name, "/status/desiredOptimizedAlloc/numReplicas", json!(0));
        let scaler = LiveKind::ScaledObject;
        edit(facts, scaler, name, "/spec/minReplicaCount", json!(0));
        let conditions = json!([
            { "type": "Ready", "status": "True", "reason": "ScaledObjectReady", "message": "" },
            { "type": "Active", "status": "False", "reason": "ScalerNotActive", "message": "" },
            { "type": "Fallback", "status": "False", "reason": "NoFallbackFound", "message": "" },
        ]);
        let status = json!({ "conditions": conditions });
        edit(facts, scaler, name, "/status", status);
    }
    map(facts, "ns", "epp", "config.yaml", "flowControl:\n  defaultRequestTTL: 300s\n");
}

/// A PodAutoscaler of each strategy, each with a Deployment.
pub(super) fn pod_autoscalers(facts: &mut Facts) {
    for strategy in ["KPA", "APA", "HPA"] {
        let name = strategy.to_lowercase();
        let source = if strategy == "HPA" {
            json!({ "metricSourceType": "resource", "targetMetric": "cpu", "targetValue": "70" })
        } else {
            json!({ "metricSourceType": "pod", "protocolType": "http", "port": "8000", "path": "/metrics",
                "targetMetric": "num_requests_running", "targetValue": "8" })
        };
        put(
            facts,
            LiveKind::PodAutoscaler,
            json!({ "apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler",
                "metadata": { "namespace": "ns", "name": name },
                "spec": { "scalingStrategy": strategy, "scaleTargetRef": reference(&name),
                    "minReplicas": 1, "maxReplicas": 10, "metricsSources": [source] },
                "status": { "conditions": [
                    { "type": "ValidSpec", "status": "True", "reason": "AsExpected" },
                    { "type": "ScalingActive", "status": "False", "reason": "Stable" },
                    { "type": "AbleToScale", "status": "True", "reason": "SucceededGetScale" },
                    { "type": "MetricsAvailable", "status": "True", "reason": "MetricsFound" },
                    { "type": "Ready", "status": "True", "reason": "AsExpected" } ] } }),
        );
        let target = copied(&objects(facts, LiveKind::Deployment)[0], "a", &name);
        objects(facts, LiveKind::Deployment).push(target);
    }
    put(
        facts,
        HPA,
        json!({ "kind": "HorizontalPodAutoscaler", "metadata": { "namespace": "ns", "name": "hpa-hpa",
            "ownerReferences": [{ "apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler",
                "name": "hpa", "uid": "u", "controller": true }] },
            "spec": { "scaleTargetRef": reference("hpa"), "minReplicas": 1, "maxReplicas": 10,
                "metrics": [{ "type": "Resource", "resource": { "name": "cpu",
                    "target": { "type": "Utilization", "averageUtilization": 70 } } }] } }),
    );
}

/// The same fleet once more, in another namespace.
fn twin(facts: &mut Facts, namespace: &str) {
    for reading in facts.objects.values_mut() {
        if let Reading::Known(all) = reading {
            let own = all.iter();
            let own = own.filter(|one| one.namespace() == "ns" || one.name() == "ns");
            let twins: Vec<LiveObject> = own.map(|one| copied(one, "ns", namespace)).collect();
            all.extend(twins);
        }
    }
    for reading in facts.series.values_mut() {
        if let Reading::Known(all) = reading {
            let mut twins = all.clone();
            twins.retain(|one| one.labels.values().any(|value| value == "ns"));
            for value in twins.iter_mut().flat_map(|one| one.labels.values_mut()) {
                if value == "ns" {
                    namespace.clone_into(value);
                }
            }
            all.extend(twins);
        }
    }
    answered(facts, 2.0);
}

/// Gives every variant of a namespace, its scaler and its counts an instance.
fn belong(facts: &mut Facts, namespace: &str, instance: &str) {
    let own = |facts: &mut Facts, kind, change: &dyn Fn(&mut Value)| {
        let all = objects(facts, kind).iter_mut();
        for object in all.filter(|one| one.namespace() == namespace) {
            change(&mut object.0);
        }
    };
    own(facts, VARIANT, &|object| {
        object["metadata"]["labels"] = json!({ "wva.llmd.ai/controller-instance": instance });
    });
    own(facts, HPA, &|object| {
        object["spec"]["metrics"][0]["external"]["metric"]["selector"]["matchLabels"]["controller_instance"] =
            json!(instance);
    });
    own(facts, LiveKind::ScaledObject, &|object| {
        let query = QUERY.replace("\"ns\"", &format!("\"{namespace}\""));
        let selector = format!(",controller_instance=\"{instance}\"}})");
        object["spec"]["triggers"][0]["metadata"]["query"] = json!(query.replace("})", &selector));
    });
    let lease = objects(facts, LiveKind::Lease)[0].clone();
    let own = format!("{LEASE}-{instance}");
    objects(facts, LiveKind::Lease).push(copied(&lease, LEASE, &own));
}

/// Two controllers with different settings. What one of them is set to says nothing about the variants of the other.
fn two_instances(facts: &mut Facts) {
    twin(facts, "other");
    belong(facts, "ns", "blue");
    belong(facts, "other", "green");
    answered(facts, 2.0);
    for object in objects(facts, VARIANT) {
        object.0["spec"]["minReplicas"] = Value::Null;
    }
    // Neither a pool nor a router in the namespace of the one.
    objects(facts, LiveKind::InferencePool).retain(|one| one.namespace() != "ns");
    for probe in [Probe::RouterPicks, Probe::RouterQueues] {
        answer(facts, probe, vec![series("namespace=other", 2.0)]);
    }
    // Limits to GPUs, scale to zero and throughput alone are for the other.
    let claims = "/spec/template/spec/resourceClaims";
    edit(facts, LiveKind::Deployment, "a", claims, json!([{ "name": "gpu" }]));
    let address = "https://prometheus.monitoring.svc:9090";
    map(facts, "system", "green-main", "PROMETHEUS_BASE_URL", address);
    let throughput = "analyzers:\n- name: throughput\n  type: throughput\n  enabled: true";
    let thresholds = "green-saturation-scaling-config";
    map(facts, "system", thresholds, "default", throughput);
    let blue = with_environment("blue", &[("CONTROLLER_INSTANCE", "blue")]);
    let green = with_environment(
        "green",
        &[
            ("CONTROLLER_INSTANCE", "green"),
            ("CONFIG_MAP_NAME", "green-main"),
            ("SATURATION_CONFIG_MAP_NAME", thresholds),
            ("WVA_SCALE_TO_ZERO", "true"),
            ("WVA_LIMITED_MODE", "true"),
        ],
    );
    resolve(facts, &[blue, green]);
}

/// Two namespaces, one with thresholds of its own.
fn namespaced_config_maps(facts: &mut Facts) {
    twin(facts, "other");
    let name = "wva-saturation-scaling-config";
    for (namespace, threshold) in [("system", "0.8"), ("other", "0.7")] {
        let text = format!("kvCacheThreshold: {threshold}\nqueueLengthThreshold: 5");
        map(facts, namespace, name, "default", &text);
    }
    again(facts);
}

/// Each namespace with a controller of its own, which sees no other.
fn namespaced_controllers(facts: &mut Facts) {
    twin(facts, "other");
    let controllers = [("one", "ns"), ("two", "other")].map(|(system, watched)| {
        let mut object = with_environment("wva", &[("WATCH_NAMESPACE", watched)]);
        object["metadata"]["namespace"] = json!(system);
        for kind in [LiveKind::ConfigMap, LiveKind::Lease] {
            let mut own = objects(facts, kind)[0].clone();
            own.0["metadata"]["namespace"] = json!(system);
            objects(facts, kind).push(own);
        }
        object
    });
    resolve(facts, &controllers);
}

/// One variant is served by vLLM, the other one by SGLang.
fn two_engines(facts: &mut Facts) {
    let container = json!([{ "name": "sglang", "command": ["python3", "-m", "sglang.launch_server"],
        "args": ["--model-path", "/models/llama", "--served-model-name", "meta/llama", "--tp", "4"] }]);
    let path = "/spec/template/spec/containers";
    edit(facts, LiveKind::Deployment, "b", path, container);
}

pub(super) const FLEETS: &[HealthyFleet] = &[
    ("HPAs on external metrics, without KEDA", |facts| {
        copy(facts, HPA, "b");
        absent(facts, LiveKind::ScaledObject);
        answered(facts, 2.0);
    }),
    ("KEDA that asks Prometheus", |facts| {
        all_by_keda(facts, true);
    }),
    ("KEDA that asks the controller", external_scaler),
    ("HPAs on metrics that the controller serves", |facts| {
        serve(facts);
        answer(facts, Probe::Counts, Vec::new());
        absent(facts, LiveKind::ScaledObject);
    }),
    ("groups of pods", groups),
    ("prefill and decode at one price", |facts| {
        same_cost(facts);
        role(facts, "a", "prefill");
        role(facts, "b", "decode");
    }),
    ("a model at zero", asleep),
    ("PodAutoscalers among variants", pod_autoscalers),
    ("PodAutoscalers alone, in the namespace looked at", |facts| {
        pod_autoscalers(facts);
        for kind in [VARIANT, LiveKind::ScaledObject] {
            objects(facts, kind).clear();
        }
        remove(facts, HPA, "a");
        facts.is_narrowed = true;
        facts.triggers = Reading::NotAsked;
    }),
    ("a tier, with a part of the variants looked at", |facts| {
        let name = "wva-saturation-scaling-config";
        map(facts, "system", name, "gold", "kvSpareTrigger: 0.2");
        again(facts);
        facts.is_narrowed = true;
    }),
    ("two controllers with different settings", two_instances),
    ("thresholds of a namespace", namespaced_config_maps),
    ("a controller for each namespace", namespaced_controllers),
    ("vLLM and SGLang", two_engines),
    ("PodAutoscalers switched off, and none", |facts| {
        main_config(facts, "POD_AUTOSCALERS_ENABLED", "false");
    }),
];
