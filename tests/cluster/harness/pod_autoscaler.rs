//! PodAutoscalers as cases create them, and controllers of kinds that they scale.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::background::Background;
use super::fault::Result;
use super::namespace::Namespace;
use super::servers::kwok;

/// Requests that one replica is to run.
pub(crate) const TARGET: f64 = 8.0;

/// A PodAutoscaler of this strategy that reads running requests off the pods' pages.
pub(crate) fn autoscaler(name: &str, strategy: &str, target: &Value, port: u16) -> Value {
    json!({
        "apiVersion": "autoscaling.aibrix.ai/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": { "name": name, "annotations": {
            "autoscaling.aibrix.ai/scale-down-cooldown-window": "10s",
            "autoscaling.aibrix.ai/max-scale-down-rate": "10",
        }},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 6,
            "observeWindowSeconds": 20,
            "panicWindowSeconds": 10,
            "scalingStrategy": strategy,
            "metricsSources": [{
                "metricSourceType": "pod",
                "protocolType": "http",
                "port": port.to_string(),
                "path": "/metrics",
                "targetMetric": "num_requests_running",
                "targetValue": TARGET.to_string(),
            }],
        },
    })
}

/// What a kind's own controller makes of an object.
pub(crate) struct PlayedObject {
    /// Deployments and StatefulSets in place of pods.
    pub(crate) workloads: Vec<Value>,
    pub(crate) status: Value,
}

/// A kind's own controller, for one object.
pub(crate) struct KindController {
    _task: Background,
}

impl KindController {
    pub(crate) fn start(
        namespace: &Namespace,
        objects: Api<DynamicObject>,
        name: &'static str,
        play: fn(&DynamicObject) -> PlayedObject,
    ) -> Self {
        let workloads =
            [ApiResource::erase::<Deployment>(&()), ApiResource::erase::<StatefulSet>(&())];
        let workloads = workloads.map(|kind| (kind.kind.clone(), namespace.erased(&kind)));
        let task = Background::start(async move {
            loop {
                // What fails is tried again at the next turn.
                reconcile(&workloads, &objects, name, play).await.ok();
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
        });
        Self { _task: task }
    }
}

async fn reconcile(
    workloads: &[(String, Api<DynamicObject>)],
    objects: &Api<DynamicObject>,
    name: &str,
    play: fn(&DynamicObject) -> PlayedObject,
) -> Result {
    let played = play(&objects.get(name).await?);
    for workload in played.workloads {
        let name = workload["metadata"]["name"].as_str().unwrap_or_default();
        let parameters = PatchParams::apply("kind-controller").force();
        let of_kind = workloads.iter().filter(|(kind, _)| workload["kind"] == *kind);
        for (_, objects) in of_kind {
            objects.patch(name, &parameters, &Patch::Apply(&workload)).await?;
        }
    }
    let status = Patch::Merge(json!({ "status": played.status }));
    let parameters = PatchParams::default();
    objects.patch_status(name, &parameters, &status).await?;
    Ok(())
}

/// A Deployment, a ReplicaSet or a StatefulSet of pods with these labels.
pub(crate) fn workload(kind: &str, name: &str, labels: &Value, replicas: i64) -> Value {
    let mut workload = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels, "annotations": { kwok::LOADING_TIME: "500ms" } },
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "vllm", "image": "vllm/vllm-openai:fake" }],
                },
            },
        },
    });
    if kind == "StatefulSet" {
        workload["spec"]["serviceName"] = json!(name);
        workload["spec"]["podManagementPolicy"] = json!("Parallel");
    }
    workload
}
