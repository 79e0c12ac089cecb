//! An installation that lacks nothing: one controller, two variants of one model, a scaler of each kind.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::doctor::checks::count_queries;
use crate::doctor::facts::{Facts, LiveKind, QueryAnswers, Reading, RightFact, SeriesFact};
use crate::doctor::look::controller_of;
use crate::doctor::object::{LiveObject, ObjectName};
use crate::doctor::probe::PrometheusProbe;

/// 2026-01-01T00:00:00Z.
pub(super) const NOW: f64 = 1_767_225_600.0;

/// The query of the sample ScaledObject.
pub(super) const QUERY: &str = r#"max by (variant_name, exported_namespace) (wva_desired_replicas{variant_name="b",exported_namespace="ns"})"#;

pub(super) fn controller(name: &str) -> Value {
    json!({
        "kind": "Deployment", "metadata": { "namespace": "system", "name": name,
            "labels": { "app.kubernetes.io/name": "workload-variant-autoscaler" } },
        "spec": { "replicas": 2, "template": { "spec": {
            "serviceAccountName": "wva",
            "containers": [{ "name": "manager", "args": ["--leader-elect=true"], "env": [
                { "name": "POD_NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } },
                { "name": "CONFIG_MAP_NAME", "value": "main" },
                { "name": "SATURATION_CONFIG_MAP_NAME", "value": "wva-saturation-scaling-config" },
            ]}],
        }}},
        "status": { "readyReplicas": 2 },
    })
}

fn variant(name: &str, cost: &str) -> Value {
    json!({
        "kind": "VariantAutoscaling", "metadata": { "namespace": "ns", "name": name },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
            "modelID": "meta/llama", "variantCost": cost, "minReplicas": 1, "maxReplicas": 8,
        },
        "status": {
            "desiredOptimizedAlloc": { "numReplicas": 2 },
            "conditions": [
                { "type": "OptimizationReady", "status": "True", "reason": "SaturationOnlyMode", "message": "", "lastTransitionTime": "2025-12-31T23:00:00Z" },
                { "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2025-12-31T23:00:00Z" },
            ],
        },
    })
}

fn target(name: &str) -> Value {
    json!({
        "kind": "Deployment", "metadata": { "namespace": "ns", "name": name, "managedFields": [
            { "manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": { "f:spec": { "f:template": {} } } },
            { "manager": "kube-controller-manager", "operation": "Update", "subresource": "scale",
              "fieldsV1": { "f:spec": { "f:replicas": {} } } },
        ]},
        "spec": { "replicas": 2, "selector": { "matchLabels": { "app": name } }, "template": {
            "metadata": { "labels": { "app": name, "pool": "p" } },
            "spec": { "containers": [{ "name": "vllm", "args": ["--model=meta/llama-3", "--served-model-name=meta/llama"] }] },
        }},
    })
}

fn pod(app: &str) -> Value {
    json!({
        "kind": "Pod", "metadata": { "namespace": "ns", "name": format!("{app}-0"), "labels": { "app": app },
            "creationTimestamp": "2025-12-31T23:00:00Z" },
        "spec": {},
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

fn native() -> Value {
    json!({
        "kind": "HorizontalPodAutoscaler", "metadata": { "namespace": "ns", "name": "a" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" },
            "minReplicas": 1, "maxReplicas": 8,
            "metrics": [{ "type": "External", "external": {
                "metric": { "name": "wva_desired_replicas", "selector": { "matchLabels": {
                    "variant_name": "a", "exported_namespace": "ns" } } },
                "target": { "type": "AverageValue", "averageValue": "1" } } }],
            "behavior": { "scaleUp": { "stabilizationWindowSeconds": 0, "tolerance": "0" },
                          "scaleDown": { "tolerance": "0" } },
        },
    })
}

fn keda() -> Value {
    json!({
        "kind": "ScaledObject", "metadata": { "namespace": "ns", "name": "b" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "b" },
            "minReplicaCount": 1, "maxReplicaCount": 8,
            "fallback": { "failureThreshold": 3, "replicas": 2 },
            "advanced": { "horizontalPodAutoscalerConfig": { "behavior": {
                "scaleUp": { "stabilizationWindowSeconds": 0, "tolerance": "0" },
                "scaleDown": { "tolerance": "0" } } } },
            "triggers": [{ "type": "prometheus", "metricType": "AverageValue", "metadata": {
                "query": QUERY, "threshold": "1", "ignoreNullValues": "false" } }],
        },
    })
}

fn others() -> Vec<(LiveKind, Value)> {
    vec![
        (LiveKind::Namespace, json!({ "kind": "Namespace", "metadata": { "name": "ns" } })),
        (
            LiveKind::ConfigMap,
            json!({ "kind": "ConfigMap", "metadata": { "namespace": "system", "name": "main" },
                "data": { "PROMETHEUS_BASE_URL": "https://prometheus.monitoring.svc:9090" } }),
        ),
        (
            LiveKind::Lease,
            json!({ "kind": "Lease", "metadata": { "namespace": "system", "name": LEASE },
                "spec": { "holderIdentity": "one", "leaseDurationSeconds": 60, "renewTime": "2025-12-31T23:59:55.000000Z" } }),
        ),
        (
            LiveKind::APIService,
            json!({ "kind": "APIService", "metadata": { "name": "v1beta1.external.metrics.k8s.io" },
                "spec": { "service": { "namespace": "keda", "name": "keda-operator-metrics-apiserver" } },
                "status": { "conditions": [{ "type": "Available", "status": "True" }] } }),
        ),
        (
            LiveKind::ValidatingWebhookConfiguration,
            json!({ "kind": "ValidatingWebhookConfiguration", "metadata": { "name": "wva" }, "webhooks": [{
                "name": "podautoscalers.autoscaling.aibrix.ai", "rules": [{ "apiGroups": ["autoscaling.aibrix.ai"] }],
                "clientConfig": { "service": { "namespace": "system", "name": "webhooks" } } }] }),
        ),
        (
            LiveKind::EndpointSlice,
            json!({ "kind": "EndpointSlice", "metadata": { "namespace": "system", "name": "webhooks-1",
                "labels": { "kubernetes.io/service-name": "webhooks" } },
                "endpoints": [{ "conditions": { "ready": true } }] }),
        ),
        (
            LiveKind::InferencePool,
            json!({ "kind": "InferencePool", "metadata": { "namespace": "ns", "name": "p" },
                "spec": { "selector": { "matchLabels": { "pool": "p" } } } }),
        ),
    ]
}

/// The default name of the lease.
pub(super) const LEASE: &str = "72dd1cf1.llm-d.ai";

/// A series with labels, written as `name=value,name=value`.
pub(super) fn series(labels: &str, value: f64) -> SeriesFact {
    let pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
    SeriesFact {
        labels: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        value,
    }
}

fn answers() -> BTreeMap<PrometheusProbe, Vec<SeriesFact>> {
    let each = |labels: &str, value: f64| {
        ["a", "b"].map(|name| series(&labels.replace('$', name), value)).to_vec()
    };
    BTreeMap::from(wva_base::cases! {
        (PrometheusProbe::Targets, vec![series("job=x", 4.0)]),
        (PrometheusProbe::Pods, each("namespace=ns,pod=$-0", 1.0)),
        (PrometheusProbe::Counts, each("namespace=system,exported_namespace=ns,variant_name=$", 1.0)),
        (PrometheusProbe::Clock, vec![series("", NOW)]),
        (PrometheusProbe::Running, each("namespace=ns,pod=$-0,model_name=meta/llama", 3.0)),
        (PrometheusProbe::EngineSeries, each("namespace=ns,pod=$-0", 90.0)),
        (PrometheusProbe::Doubles, Vec::new()),
        (PrometheusProbe::Ages, each("namespace=ns,pod=$-0", 15.0)),
        (PrometheusProbe::RouterPicks, vec![series("namespace=ns", 2.0)]),
        (PrometheusProbe::RouterQueues, vec![series("namespace=ns", 1.0)]),
        (PrometheusProbe::Starts, each("namespace=system,exported_namespace=ns,variant_name=$", 90.0)),
    })
}

/// Resolves the controllers among the Deployments again, after an edit of their objects.
pub(super) fn resolve(facts: &mut Facts, controllers: &[Value]) {
    let read = controllers.iter().map(|one| controller_of(&LiveObject::new(one.clone()), facts));
    facts.controllers = Reading::Known(read.collect());
}

/// Answers every query of scalers with this count.
pub(super) fn answered(facts: &mut Facts, count: f64) {
    let queries = count_queries(facts).into_iter();
    let answers = queries.map(|(object, query)| {
        let (namespace, name) = (object.namespace(), object.name());
        let labels = format!("variant_name={name},exported_namespace={namespace}");
        (query, Ok(vec![series(&labels, count)]))
    });
    let answers: QueryAnswers = answers.collect();
    facts.triggers = Reading::Known(answers);
}

pub(super) fn facts() -> Facts {
    let mut facts = Facts { now: NOW, version: Reading::Known((1, 33)), ..Facts::default() };
    for kind in LiveKind::ALL {
        facts.objects.insert(kind, Reading::Known(Vec::new()));
    }
    let mut objects = others();
    for (name, cost) in [("a", "10"), ("b", "20")] {
        objects.push((LiveKind::VariantAutoscaling, variant(name, cost)));
        objects.push((LiveKind::Deployment, target(name)));
        objects.push((LiveKind::Pod, pod(name)));
    }
    objects.push((LiveKind::HorizontalPodAutoscaler, native()));
    objects.push((LiveKind::ScaledObject, keda()));
    for (kind, object) in objects {
        let Some(Reading::Known(known)) = facts.objects.get_mut(&kind) else {
            continue;
        };
        known.push(LiveObject::new(object));
    }
    resolve(&mut facts, &[controller("wva")]);
    let right = |kind: &str, name: &str, account: &str, right: &str| RightFact {
        object: ObjectName::new(kind, "ns", name),
        account: format!("system:serviceaccount:{account}"),
        right: right.to_owned(),
        is_granted: true,
    };
    facts.rights = Reading::Known(vec![right("Deployment", "wva", "system:wva", "list pods")]);
    facts.scaler_rights = Reading::Known(vec![right(
        "ScaledObject",
        "b",
        "keda:keda-operator",
        "update deployments/scale",
    )]);
    facts.prometheus = Reading::Known(Ok(()));
    let answers = answers().into_iter();
    facts.series = answers.map(|(probe, series)| (probe, Reading::Known(series))).collect();
    answered(&mut facts, 2.0);
    facts
}
