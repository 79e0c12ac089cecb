//! Each cause, planted in healthy facts, has exactly its own code.

use serde_json::{Value, json};

use super::healthy::{LEASE, controller, resolve};
use crate::doctor::FindingCode;
use crate::doctor::facts::{Facts, LiveKind, Reading};
use crate::doctor::object::LiveObject;

use FindingCode as Code;

/// A cause and how it is planted.
pub(super) type Cause = (FindingCode, fn(&mut Facts));

pub(super) fn objects(facts: &mut Facts, kind: LiveKind) -> &mut Vec<LiveObject> {
    match facts.objects.get_mut(&kind) {
        Some(Reading::Known(objects)) => objects,
        other => panic!("{kind:?} is {other:?}"),
    }
}

/// A device class stands behind a resource that the containers of a target request.
pub(super) fn class_of(facts: &mut Facts, resource: &str) {
    let class = json!({
        "kind": "DeviceClass", "metadata": { "name": "gpu.example.com" },
        "spec": { "extendedResourceName": resource },
    });
    objects(facts, LiveKind::DeviceClass).push(LiveObject::new(class));
    let limits = "/spec/template/spec/containers/0/resources/limits";
    edit(
        facts,
        LiveKind::Deployment,
        "a",
        limits,
        json!({ resource: "1" }),
    );
}

/// Sets a field of an object; `null` removes it.
pub(super) fn edit(facts: &mut Facts, kind: LiveKind, name: &str, pointer: &str, value: Value) {
    let mut all = objects(facts, kind).iter_mut();
    let object = all.find(|one| one.name() == name).unwrap();
    set(&mut object.0, pointer, value);
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/");
        place = match part.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[part],
        };
    }
    *place = value;
}

pub(super) fn remove(facts: &mut Facts, kind: LiveKind, name: &str) {
    objects(facts, kind).retain(|one| one.name() != name);
}

pub(super) fn absent(facts: &mut Facts, kind: LiveKind) {
    facts.objects.insert(kind, Reading::Absent);
}

pub(super) fn again(facts: &mut Facts) {
    resolve(facts, &[controller("wva")]);
}

pub(super) fn main_config(facts: &mut Facts, name: &str, value: &str) {
    edit(
        facts,
        LiveKind::ConfigMap,
        "main",
        &format!("/data/{name}"),
        json!(value),
    );
    again(facts);
}

pub(super) fn with_environment(name: &str, variables: &[(&str, &str)]) -> Value {
    let mut object = controller(name);
    for (name, value) in variables {
        let variable = json!({ "name": name, "value": value });
        let all = &mut object["spec"]["template"]["spec"]["containers"][0]["env"];
        all.as_array_mut().unwrap().push(variable);
    }
    object
}

pub(super) fn map(facts: &mut Facts, namespace: &str, name: &str, key: &str, text: &str) {
    let object = json!({ "kind": "ConfigMap", "metadata": { "namespace": namespace, "name": name }, "data": { key: text } });
    objects(facts, LiveKind::ConfigMap).push(LiveObject::new(object));
}

/// A certificate that is valid until then, as a caBundle: base64 of PEM.
pub(super) fn bundle(day: u8) -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2026, 1, day);
    let pem = params.self_signed(&key).unwrap().pem();
    serde_json::to_value(k8s_openapi::ByteString(pem.into_bytes())).unwrap()
}

fn entry(facts: &mut Facts, text: &str) {
    map(
        facts,
        "system",
        "wva-saturation-scaling-config",
        "default",
        text,
    );
    again(facts);
}

pub(super) fn scale_to_zero(facts: &mut Facts) {
    for name in ["a", "b"] {
        let kind = LiveKind::VariantAutoscaling;
        edit(facts, kind, name, "/spec/minReplicas", Value::Null);
    }
    main_config(facts, "WVA_SCALE_TO_ZERO", "true");
}

pub(super) const CONTROLLER: &[Cause] = &[
    (Code::ControllerMissing, |facts| resolve(facts, &[])),
    (Code::ControllerNotReady, |facts| {
        let mut object = controller("wva");
        object["status"] = json!({});
        resolve(facts, &[object]);
    }),
    (Code::ControllerOff, |facts| {
        let mut object = controller("wva");
        object["spec"]["replicas"] = json!(0);
        object["status"] = json!({});
        resolve(facts, &[object]);
    }),
    (Code::ControllersOverlap, |facts| {
        resolve(facts, &[controller("wva"), controller("other")]);
    }),
    (Code::SettingsRefused, |facts| {
        main_config(facts, "PROMETHEUS_BASE_URL", "nowhere");
    }),
    (Code::SettingIgnored, |facts| {
        main_config(facts, "GLOBAL_OPT_INTERVALL", "30s");
    }),
    (Code::ConfigMapUnread, |facts| {
        map(
            facts,
            "system",
            "workload-variant-autoscaler-wva-saturation-scaling-config",
            "default",
            "kvCacheThreshold: 0.8",
        );
    }),
    (Code::ConfigMapUnread, |facts| {
        map(
            facts,
            "system",
            "thresholds",
            "default",
            "analyzerName: slo",
        );
    }),
    (Code::RightMissing, |facts| {
        let Reading::Known(rights) = &mut facts.rights else {
            return;
        };
        rights[0].is_granted = false;
    }),
    (Code::ScalerRightMissing, |facts| {
        let Reading::Known(rights) = &mut facts.scaler_rights else {
            return;
        };
        rights[0].is_granted = false;
    }),
    (Code::LeaseUnheld, |facts| {
        edit(
            facts,
            LiveKind::Lease,
            LEASE,
            "/spec/renewTime",
            json!("2025-12-31T23:00:00Z"),
        );
    }),
    (Code::LeaseUnheld, |facts| {
        edit(
            facts,
            LiveKind::Lease,
            LEASE,
            "/spec/holderIdentity",
            json!(""),
        );
    }),
    (Code::LeaseUnheld, |facts| {
        remove(facts, LiveKind::Lease, LEASE);
    }),
];

/// The object has a condition that reports an obstacle.
fn obstacle(facts: &mut Facts) {
    let condition = json!({ "type": "OptimizationReady", "status": "False", "reason": "RequestsWaiting", "message": "", "lastTransitionTime": "2025-12-31T23:00:00Z" });
    let conditions = "/status/conditions/0";
    edit(
        facts,
        LiveKind::VariantAutoscaling,
        "a",
        conditions,
        condition,
    );
}

pub(super) const VARIANTS: &[Cause] = &[
    (Code::VariantMalformed, |facts| {
        edit(
            facts,
            LiveKind::VariantAutoscaling,
            "a",
            "/spec/minReplicas",
            json!("one"),
        );
        remove(facts, LiveKind::HorizontalPodAutoscaler, "a");
    }),
    // What the object says of the time when a controller had it is no finding.
    (Code::ForeignInstance, |facts| {
        obstacle(facts);
        resolve(
            facts,
            &[with_environment("wva", &[("CONTROLLER_INSTANCE", "blue")])],
        );
        edit(
            facts,
            LiveKind::Lease,
            LEASE,
            "/metadata/name",
            json!(format!("{LEASE}-blue")),
        );
    }),
    (Code::NamespaceNotWatched, |facts| {
        resolve(
            facts,
            &[with_environment("wva", &[("WATCH_NAMESPACE", "elsewhere")])],
        );
    }),
    (Code::NamespaceExcluded, |facts| {
        edit(
            facts,
            LiveKind::Namespace,
            "ns",
            "/metadata/annotations",
            json!({ "wva.llmd.ai/exclude": "true" }),
        );
    }),
    (Code::TargetMissing, |facts| {
        remove(facts, LiveKind::Deployment, "a");
    }),
    // Neither its scaler nor its decision is missing by itself.
    (Code::TargetMissing, |facts| {
        let variant = LiveKind::VariantAutoscaling;
        let name = "/spec/scaleTargetRef/name";
        edit(facts, variant, "a", name, json!("gone"));
        let skipped = json!([{ "type": "OptimizationReady", "status": "False", "reason": "SkippedProcessing", "message": "", "lastTransitionTime": "2025-12-31T23:00:00Z" }]);
        edit(facts, variant, "a", "/status/conditions", skipped);
    }),
    (Code::TargetKindUnknown, |facts| {
        edit(
            facts,
            LiveKind::VariantAutoscaling,
            "a",
            "/spec/scaleTargetRef",
            json!({ "kind": "Thing", "name": "a" }),
        );
    }),
    (Code::TargetContested, |facts| {
        let mut object = objects(facts, LiveKind::VariantAutoscaling)[0].clone();
        object.0["metadata"]["name"] = json!("c");
        object.0["status"] = json!({});
        objects(facts, LiveKind::VariantAutoscaling).push(object);
    }),
    (Code::CostsEqual, |facts| {
        edit(
            facts,
            LiveKind::VariantAutoscaling,
            "b",
            "/spec/variantCost",
            json!("10"),
        );
    }),
    (Code::OneNameTwoModels, |facts| {
        edit(
            facts,
            LiveKind::Deployment,
            "b",
            "/spec/template/spec/containers/0/args",
            json!(["--model", "qwen/qwen-3", "--served-model-name=meta/llama"]),
        );
    }),
    (Code::PodsDoNotStart, |facts| {
        pod(
            facts,
            &json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: Insufficient nvidia.com/gpu" }] }),
            &json!({}),
        );
    }),
    (Code::PodsDoNotStart, |facts| {
        pod(
            facts,
            &json!({ "phase": "Pending", "containerStatuses": [
            { "state": { "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } } }] }),
            &json!({}),
        );
    }),
    (Code::PodsRefused, |facts| {
        let message = "pods \"a-1\" is forbidden: exceeded quota: gpus";
        edit(
            facts,
            LiveKind::Deployment,
            "a",
            "/status/conditions",
            json!([{ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message }]),
        );
    }),
    (Code::PodsGated, |facts| {
        pod(
            facts,
            &json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" }] }),
            &json!({ "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }] }),
        );
    }),
    (Code::ClaimsNotCounted, |facts| {
        edit(
            facts,
            LiveKind::Deployment,
            "a",
            "/spec/template/spec/resourceClaims",
            json!([{ "name": "gpu" }]),
        );
        main_config(facts, "WVA_LIMITED_MODE", "true");
    }),
    (Code::ClaimsNotCounted, |facts| {
        class_of(facts, "example.com/accelerator");
        main_config(facts, "WVA_LIMITED_MODE", "true");
    }),
    (Code::AtZeroByHand, |facts| {
        edit(facts, LiveKind::Deployment, "a", "/spec/replicas", json!(0));
        remove(facts, LiveKind::Pod, "a-0");
        forget_running(facts, "a-0");
    }),
    (Code::ParentOwnsReplicas, |facts| {
        edit(
            facts,
            LiveKind::Deployment,
            "a",
            "/metadata/ownerReferences",
            json!([{ "kind": "LLMInferenceService", "name": "x", "controller": true }]),
        );
        manager(facts, json!({ "manager": "kserve", "operation": "Update" }));
    }),
    (Code::TwoWritersOfScale, |facts| {
        manager(
            facts,
            json!({ "manager": "kubectl", "operation": "Update", "subresource": "scale" }),
        );
    }),
    (Code::TwoWritersOfScale, |facts| {
        manager(
            facts,
            json!({ "manager": "argocd-controller", "operation": "Apply" }),
        );
    }),
    (Code::NotApplied, obstacle),
    (Code::ThroughputWithoutRouter, |facts| {
        entry(
            facts,
            "analyzers:\n- name: throughput\n  type: throughput\n  enabled: true",
        );
        facts.series.insert(
            crate::doctor::probe::PrometheusProbe::RouterPicks,
            Reading::Known(Vec::new()),
        );
    }),
    (Code::TierWithoutEffect, |facts| {
        map(
            facts,
            "system",
            "wva-saturation-scaling-config",
            "llama",
            "kvSpareTrigger: 0.2",
        );
        again(facts);
    }),
];

/// Another pod of target a.
pub(super) fn pod(facts: &mut Facts, status: &Value, spec: &Value) {
    let object = json!({
        "kind": "Pod", "metadata": { "namespace": "ns", "name": "a-1", "labels": { "app": "a" },
            "creationTimestamp": "2025-12-31T23:55:00Z" },
        "spec": spec, "status": status,
    });
    objects(facts, LiveKind::Pod).push(LiveObject::new(object));
}

fn manager(facts: &mut Facts, mut entry: Value) {
    entry["fieldsV1"] = json!({ "f:spec": { "f:replicas": {} } });
    edit(
        facts,
        LiveKind::Deployment,
        "a",
        "/metadata/managedFields/0",
        entry,
    );
}

pub(super) fn forget_running(facts: &mut Facts, pod: &str) {
    for reading in facts.series.values_mut() {
        if let Reading::Known(series) = reading {
            series.retain(|one| one.pod() != pod);
        }
    }
}

pub(super) const WAKING: &[Cause] = &[
    (Code::NoWakeSignal, |facts| {
        scale_to_zero(facts);
        remove(facts, LiveKind::InferencePool, "p");
    }),
    (Code::RequestsExpireFirst, |facts| {
        scale_to_zero(facts);
        map(
            facts,
            "ns",
            "epp",
            "config.yaml",
            "kind: EndpointPickerConfig\nflowControl:\n  defaultRequestTTL: 60s\n",
        );
    }),
];
