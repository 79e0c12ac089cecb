//! Each cause, planted in healthy facts, has exactly its own code.

use serde_json::{Value, json};

use super::healthy::{LEASE, controller, resolve};
use crate::doctor::FindingCode;
use crate::doctor::facts::{Facts, LiveKind, Reading, RightFact};
use crate::doctor::object::LiveObject;
use crate::doctor::probe::PrometheusProbe;

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
    edit(facts, LiveKind::Deployment, "a", limits, json!({ resource: "1" }));
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
    edit(facts, LiveKind::ConfigMap, "main", &format!("/data/{name}"), json!(value));
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

fn entry(facts: &mut Facts, name: &str, text: &str) {
    let thresholds = "wva-saturation-scaling-config";
    map(facts, "system", thresholds, name, text);
    again(facts);
}

fn deny(rights: &mut Reading<Vec<RightFact>>) {
    if let Reading::Known(rights) = rights {
        rights[0].is_granted = false;
    }
}

pub(super) fn scale_to_zero(facts: &mut Facts) {
    for name in ["a", "b"] {
        let kind = LiveKind::VariantAutoscaling;
        edit(facts, kind, name, "/spec/minReplicas", Value::Null);
    }
    main_config(facts, "WVA_SCALE_TO_ZERO", "true");
}

pub(super) const CONTROLLER: &[Cause] = causes! {
    ControllerMissing => |facts| resolve(facts, &[]);
    ControllerNotReady => |facts| {
        let mut object = controller("wva");
        object["status"] = json!({});
        resolve(facts, &[object]);
    };
    ControllerOff => |facts| {
        let mut object = controller("wva");
        object["spec"]["replicas"] = json!(0);
        object["status"] = json!({});
        resolve(facts, &[object]);
    };
    ControllersOverlap => |facts| resolve(facts, &[controller("wva"), controller("other")]);
    SettingsRefused => |facts| main_config(facts, "PROMETHEUS_BASE_URL", "nowhere");
    SettingIgnored => |facts| main_config(facts, "GLOBAL_OPT_INTERVALL", "30s");
    ConfigMapUnread => |facts| {
        let name = "workload-variant-autoscaler-wva-saturation-scaling-config";
        map(facts, "system", name, "default", "kvCacheThreshold: 0.8");
    };
    ConfigMapUnread => |facts| map(facts, "system", "thresholds", "default", "analyzerName: slo");
    RightMissing => |facts| deny(&mut facts.rights);
    ScalerRightMissing => |facts| deny(&mut facts.scaler_rights);
    LeaseUnheld: Lease LEASE "/spec/renewTime" = "2025-12-31T23:00:00Z";
    LeaseUnheld: Lease LEASE "/spec/holderIdentity" = "";
    LeaseUnheld => |facts| remove(facts, LiveKind::Lease, LEASE);
};

/// The object has a condition that reports an obstacle.
fn obstacle(facts: &mut Facts) {
    let condition = json!({ "type": "OptimizationReady", "status": "False", "reason": "RequestsWaiting", "message": "", "lastTransitionTime": "2025-12-31T23:00:00Z" });
    let conditions = "/status/conditions/0";
    edit(facts, LiveKind::VariantAutoscaling, "a", conditions, condition);
}

pub(super) const VARIANTS: &[Cause] = causes! {
    VariantMalformed: VariantAutoscaling "a" "/spec/minReplicas" = "one"
        => |facts| remove(facts, LiveKind::HorizontalPodAutoscaler, "a");
    // The status of the time when a controller had the object is no finding.
    ForeignInstance => |facts| {
        obstacle(facts);
        resolve(facts, &[with_environment("wva", &[("CONTROLLER_INSTANCE", "blue")])]);
        let name = json!(format!("{LEASE}-blue"));
        edit(facts, LiveKind::Lease, LEASE, "/metadata/name", name);
    };
    NamespaceNotWatched => |facts| {
        resolve(facts, &[with_environment("wva", &[("WATCH_NAMESPACE", "elsewhere")])]);
    };
    NamespaceExcluded: Namespace "ns" "/metadata/annotations" = { "wva.llmd.ai/exclude": "true" };
    TargetMissing => |facts| remove(facts, LiveKind::Deployment, "a");
    // Neither its scaler nor its decision is missing by itself.
    TargetMissing: VariantAutoscaling "a" "/spec/scaleTargetRef/name" = "gone",
        VariantAutoscaling "a" "/status/conditions" = [{ "type": "OptimizationReady", "status": "False",
            "reason": "SkippedProcessing", "message": "", "lastTransitionTime": "2025-12-31T23:00:00Z" }];
    TargetKindUnknown: VariantAutoscaling "a" "/spec/scaleTargetRef" = { "kind": "Thing", "name": "a" };
    TargetContested => |facts| {
        let mut object = objects(facts, LiveKind::VariantAutoscaling)[0].clone();
        object.0["metadata"]["name"] = json!("c");
        object.0["status"] = json!({});
        objects(facts, LiveKind::VariantAutoscaling).push(object);
    };
    CostsEqual: VariantAutoscaling "b" "/spec/variantCost" = "10";
    OneNameTwoModels: Deployment "b" "/spec/template/spec/containers/0/args" =
        ["--model", "qwen/qwen-3", "--served-model-name=meta/llama"];
    PodsDoNotStart => |facts| {
        let unscheduled = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes: Insufficient nvidia.com/gpu" });
        pod(facts, &json!({ "phase": "Pending", "conditions": [unscheduled] }), &json!({}));
    };
    PodsDoNotStart => |facts| {
        let waiting = json!({ "reason": "ImagePullBackOff", "message": "no such image" });
        let statuses = json!([{ "state": { "waiting": waiting } }]);
        pod(facts, &json!({ "phase": "Pending", "containerStatuses": statuses }), &json!({}));
    };
    PodsRefused: Deployment "a" "/status/conditions" = [{ "type": "ReplicaFailure", "status": "True",
        "reason": "FailedCreate", "message": "pods \"a-1\" is forbidden: exceeded quota: gpus" }];
    PodsGated => |facts| {
        let gated = json!({ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" });
        let gates = json!({ "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }] });
        pod(facts, &json!({ "phase": "Pending", "conditions": [gated] }), &gates);
    };
    ClaimsNotCounted: Deployment "a" "/spec/template/spec/resourceClaims" = [{ "name": "gpu" }]
        => |facts| main_config(facts, "WVA_LIMITED_MODE", "true");
    ClaimsNotCounted => |facts| {
        class_of(facts, "example.com/accelerator");
        main_config(facts, "WVA_LIMITED_MODE", "true");
    };
    AtZeroByHand: Deployment "a" "/spec/replicas" = 0 => |facts| {
        remove(facts, LiveKind::Pod, "a-0");
        forget_running(facts, "a-0");
    };
    ParentOwnsReplicas: Deployment "a" "/metadata/ownerReferences" =
        [{ "kind": "LLMInferenceService", "name": "x", "controller": true }]
        => |facts| manager(facts, json!({ "manager": "kserve", "operation": "Update" }));
    TwoWritersOfScale => |facts| {
        manager(facts, json!({ "manager": "kubectl", "operation": "Update", "subresource": "scale" }));
    };
    TwoWritersOfScale => |facts| manager(facts, json!({ "manager": "argocd-controller", "operation": "Apply" }));
    NotApplied => obstacle;
    ThroughputWithoutRouter => |facts| {
        let alone = "analyzers:\n- name: throughput\n  type: throughput\n  enabled: true";
        entry(facts, "default", alone);
        facts.series.insert(PrometheusProbe::RouterPicks, Reading::Known(Vec::new()));
    };
    TierWithoutEffect => |facts| entry(facts, "llama", "kvSpareTrigger: 0.2");
};

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
    edit(facts, LiveKind::Deployment, "a", "/metadata/managedFields/0", entry);
}

pub(super) fn forget_running(facts: &mut Facts, pod: &str) {
    for reading in facts.series.values_mut() {
        if let Reading::Known(series) = reading {
            series.retain(|one| one.pod() != pod);
        }
    }
}

pub(super) const WAKING: &[Cause] = causes! {
    NoWakeSignal => |facts| {
        scale_to_zero(facts);
        remove(facts, LiveKind::InferencePool, "p");
    };
    RequestsExpireFirst => |facts| {
        scale_to_zero(facts);
        let text = "kind: EndpointPickerConfig\nflowControl:\n  defaultRequestTTL: 60s\n";
        map(facts, "ns", "epp", "config.yaml", text);
    };
};
