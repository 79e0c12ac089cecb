//! The objects that a scenario begins with.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::autoscaled;
use super::hidden::HiddenSignal;
use super::routers::{LABEL, PORT};
use super::scenario::{Replica, Scenario, ScenarioModel, ScenarioVariant};
use crate::apiserver::Insider;
use crate::engine::Dialect;
use crate::workloads::object::path;
use crate::workloads::{IMAGE_PULL, MOST_ASLEEP, START_UP, START_UP_P95, WAKE, leader_worker_sets};
use wva::policy::pod_template::ROLE_LABEL;
use wva_base::moment::WallTime;

/// The label of a pod that names the variant it serves.
pub(super) const VARIANT: &str = "llm-d.ai/variant";
/// The label of a pod that names the model it serves.
const MODEL: &str = "llm-d.ai/model";
const POOLS: &str = "inferencepools";
pub(crate) const SYSTEM: &str = "wva-system";
/// Written by the one that applies manifests.
const DEFINITION: &str =
    include_str!("../../../../config/crd/bases/llmd.ai_variantautoscalings.yaml");

pub(super) async fn create(
    server: &Insider,
    scenario: &Scenario,
    now: WallTime,
) -> Result<(), String> {
    let definition: Value = serde_yaml::from_str(DEFINITION).unwrap_or_default();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.create(definitions, &definition).await?;
    for name in [SYSTEM, scenario.namespace] {
        let namespace = json!({"metadata": {"name": name}});
        server.create("/api/v1/namespaces", &namespace).await?;
    }
    for map in &scenario.config {
        let data: BTreeMap<&str, &str> =
            map.data.iter().map(|(key, text)| (*key, &**text)).collect();
        let object = json!({"metadata": {"name": map.name}, "data": data});
        let collection = path("v1", SYSTEM, "configmaps", "");
        server.create(&collection, &object).await?;
    }
    for group in &scenario.nodes {
        for node in group.objects(now) {
            server.create("/api/v1/nodes", &node).await?;
        }
    }
    server.create(definitions, &pool_definition()).await?;
    if scenario.has_groups() {
        server.create(definitions, &group_definition()).await?;
    }
    for model in &scenario.models {
        let mut shown = Vec::from(router(model));
        shown.retain(|(_, plural, _)| {
            *plural != POOLS || !scenario.missing.contains(&HiddenSignal::Pool)
        });
        create_all(server, scenario, shown).await?;
        for variant in &model.variants {
            let all = vec![
                workload(model, variant),
                ("llmd.ai/v1alpha1", "variantautoscalings", autoscaling(model, variant)),
                (
                    "autoscaling/v2",
                    "horizontalpodautoscalers",
                    autoscaler(scenario.namespace, variant),
                ),
            ];
            create_all(server, scenario, all).await?;
        }
    }
    autoscaled::create(server, scenario).await
}

/// An object with its group, version and plural.
type Placed = (&'static str, &'static str, Value);

pub(super) async fn create_all(
    server: &Insider,
    scenario: &Scenario,
    all: Vec<Placed>,
) -> Result<(), String> {
    for (group_version, plural, object) in all {
        let collection = path(group_version, scenario.namespace, plural, "");
        server.create(&collection, &object).await?;
    }
    Ok(())
}

/// The pools of the gateway API, as far as the world needs them.
fn pool_definition() -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "metadata": {"name": "inferencepools.inference.networking.k8s.io"},
        "spec": {
            "group": "inference.networking.k8s.io", "scope": "Namespaced",
            "names": {"plural": "inferencepools", "singular": "inferencepool", "kind": "InferencePool"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    })
}

/// LeaderWorkerSets, as far as the world needs them.
pub(crate) fn group_definition() -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let replicas = json!({"type": "integer", "format": "int32", "minimum": 0, "default": 1});
    json!({
        "metadata": {"name": leader_worker_sets::RESOURCE},
        "spec": {
            "group": "leaderworkerset.x-k8s.io", "scope": "Namespaced",
            "names": {
                "plural": leader_worker_sets::PLURAL, "singular": "leaderworkerset",
                "kind": "LeaderWorkerSet", "shortNames": ["lws"],
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.hpaPodSelector",
                }},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "replicas": replicas, "leaderWorkerTemplate": anything,
                    }},
                    "status": anything,
                }}},
            }],
        },
    })
}

/// The router of a model: its pod, the way to it, and the pool that names it.
fn router(model: &ScenarioModel) -> [Placed; 3] {
    let name = format!("{}-epp", model.name);
    let labels = json!({LABEL: model.name});
    let set = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1, "serviceName": name, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {IMAGE_PULL: "1", START_UP: "1"}},
                "spec": {"containers": [{
                    "name": "epp", "image": "ghcr.io/llm-d/llm-d-inference-scheduler:v0.6.0",
                    "ports": [{"name": "metrics", "containerPort": PORT}],
                }]},
            },
        },
    });
    let ports = json!([{"name": "metrics", "port": PORT, "targetPort": PORT, "protocol": "TCP"}]);
    let service = json!({
        "metadata": {"name": name},
        "spec": {"selector": labels, "ports": ports},
    });
    let pool = json!({
        "metadata": {"name": model.name},
        "spec": {
            "selector": {"matchLabels": {MODEL: model.name}},
            "targetPorts": [{"number": 8000}],
            "endpointPickerRef": {"name": name, "port": {"number": 9002}},
        },
    });
    [
        ("apps/v1", "statefulsets", set),
        ("v1", "services", service),
        ("inference.networking.k8s.io/v1", POOLS, pool),
    ]
}

/// What runs the pods of a variant, with its group, version and plural.
pub(crate) fn workload(model: &ScenarioModel, variant: &ScenarioVariant) -> Placed {
    match variant.replica {
        Replica::Pod => ("apps/v1", "deployments", deployment(model, variant)),
        Replica::Single => ("apps/v1", "replicasets", deployment(model, variant)),
        Replica::Group { workers, gpus } => {
            let set = json!({
                "metadata": {"name": variant.name, "labels": labels(model, variant)},
                "spec": {
                    "replicas": variant.replicas,
                    "leaderWorkerTemplate": {
                        "size": workers.saturating_add(1),
                        "leaderTemplate": template(model, variant, variant.gpus),
                        "workerTemplate": template(model, variant, gpus),
                    },
                },
            });
            (leader_worker_sets::API_VERSION, leader_worker_sets::PLURAL, set)
        }
    }
}

/// As a ReplicaSet it has the same fields.
fn deployment(model: &ScenarioModel, variant: &ScenarioVariant) -> Value {
    json!({
        "metadata": {"name": variant.name, "labels": labels(model, variant)},
        "spec": {
            "replicas": variant.replicas,
            "selector": {"matchLabels": {"app": variant.name}},
            "template": template(model, variant, variant.gpus),
        },
    })
}

fn labels(model: &ScenarioModel, variant: &ScenarioVariant) -> Value {
    json!({
        "app": variant.name, VARIANT: variant.name, MODEL: model.name,
        ROLE_LABEL: variant.role.to_string(),
    })
}

fn template(model: &ScenarioModel, variant: &ScenarioVariant, gpus: u32) -> Value {
    let start_up = &variant.start_up;
    let seconds = |duration: std::time::Duration| duration.as_secs_f64().to_string();
    let mut annotations = BTreeMap::from([
        (IMAGE_PULL, seconds(start_up.image_pull)),
        (START_UP, seconds(start_up.median)),
        (START_UP_P95, seconds(start_up.p95)),
    ]);
    if let Some(asleep) = start_up.asleep {
        annotations.extend([(MOST_ASLEEP, asleep.most.to_string()), (WAKE, seconds(asleep.wake))]);
    }
    let (image, arguments) = server(model, variant);
    json!({
        "metadata": {"labels": labels(model, variant), "annotations": annotations},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": variant.product},
            "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "server", "image": image, "args": arguments,
                "ports": [{"containerPort": 8000}],
                "resources": {"limits": {"nvidia.com/gpu": gpus.to_string()}},
            }],
        },
    })
}

/// The image of a model server, and its arguments.
fn server(model: &ScenarioModel, variant: &ScenarioVariant) -> (&'static str, [String; 4]) {
    let (image, [id, parallel, sequences, length]) = match model.dialect {
        Dialect::Vllm => (
            "vllm/vllm-openai:v0.20.0",
            ["--model", "--tensor-parallel-size", "--max-num-seqs", "--max-model-len"],
        ),
        Dialect::Sglang => (
            "lmsysorg/sglang:v0.5.9",
            ["--model-path", "--tp-size", "--max-running-requests", "--context-length"],
        ),
    };
    let arguments = [
        format!("{id}={}", model.id),
        format!("{parallel}={}", variant.replica_gpus()),
        format!("{sequences}={}", variant.limits.max_num_seqs),
        format!("{length}={}", variant.limits.max_model_len),
    ];
    (image, arguments)
}

/// How scalers name what runs the pods of a variant.
pub(super) fn target(variant: &ScenarioVariant) -> Value {
    let (api_version, kind) = match variant.replica {
        Replica::Pod => ("apps/v1", "Deployment"),
        Replica::Single => ("apps/v1", "ReplicaSet"),
        Replica::Group { .. } => (leader_worker_sets::API_VERSION, "LeaderWorkerSet"),
    };
    json!({"apiVersion": api_version, "kind": kind, "name": variant.name})
}

pub(crate) fn autoscaling(model: &ScenarioModel, variant: &ScenarioVariant) -> Value {
    json!({
        "metadata": {"name": variant.name, "labels": {
            "inference.optimization/acceleratorName": variant.accelerator,
        }},
        "spec": {
            "scaleTargetRef": target(variant),
            "modelID": model.id, "variantCost": variant.cost.to_string(),
            "minReplicas": variant.bounds.0, "maxReplicas": variant.bounds.1,
        },
    })
}

pub(crate) fn autoscaler(namespace: &str, variant: &ScenarioVariant) -> Value {
    let rules = |window: u32| json!({"stabilizationWindowSeconds": window, "tolerance": "0"});
    json!({
        "metadata": {"name": variant.name},
        "spec": {
            "scaleTargetRef": target(variant),
            "minReplicas": variant.bounds.0, "maxReplicas": variant.bounds.1,
            "metrics": [{"type": "External", "external": {
                "metric": {"name": "wva_desired_replicas", "selector": {"matchLabels": {
                    "variant_name": variant.name, "exported_namespace": namespace,
                }}},
                "target": {"type": "AverageValue", "averageValue": "1"},
            }}],
            "behavior": {"scaleUp": rules(0), "scaleDown": rules(120)},
        },
    })
}
