//! Objects as the API server sends them, which anybody with the right to write them has made.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use wva::api::variant_autoscaling::VariantAutoscaling;
use wva::api::{ScaledObject, SlimPod};
use wva::cluster::project::variant::malformed;
use wva::cluster::project::{Interner, Projected};
use wva::cluster::watch::Guarded;

use crate::campaign::{Campaign, Memory, Outcome};
use crate::mutate::Grammar;
use crate::seeds::{json as text, owned, vectors};

const SAMPLES: [&str; 4] = [
    include_str!("../../config/samples/basic.yaml"),
    include_str!("../../config/samples/bounds.yaml"),
    include_str!("../../config/samples/costs.yaml"),
    include_str!("../../config/samples/instance.yaml"),
];

/// Reads an object and takes out what is kept.
fn project<K: Projected>(input: &[u8]) -> Outcome {
    let Ok(guarded) = serde_json::from_slice::<Guarded<K>>(input) else {
        return Outcome::Refused;
    };
    match guarded.into_object() {
        Ok(object) => {
            let _view = object.project(&mut Interner::default());
            Outcome::Accepted
        }
        Err(error) => {
            assert!(error.text.len() <= 1_000, "{error:.400}");
            Outcome::Refused
        }
    }
}

#[test]
fn variant_object() {
    let samples = SAMPLES.iter().flat_map(|sample| sample.split("---\n"));
    let mut seeds: Vec<String> = samples.map(|sample| text(&vectors(sample))).collect();
    seeds.push(
        json!({
            "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
            "metadata": {
                "namespace": "ns", "name": "v", "uid": "u", "generation": 3, "resourceVersion": "12",
                "deletionTimestamp": "2026-03-01T12:00:00Z",
                "labels": {"inference.optimization/acceleratorName": "H100", "wva.llmd.ai/controller-instance": "a"},
                "managedFields": [{"manager": "wva-0123456789abcdef", "operation": "Apply", "subresource": "status",
                    "time": "2026-03-01T12:00:00Z", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"TargetResolved\"}": {".": {}, "f:status": {}}}}}}],
            },
            "spec": {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": "v"}, "variantCost": "10.5", "minReplicas": 0, "maxReplicas": 4},
            "status": {"desiredOptimizedAlloc": {"numReplicas": 2, "accelerator": "H100", "lastRunTime": "2026-03-01T12:00:00Z"},
                "conditions": [{"type": "TargetResolved", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-03-01T12:00:00Z"}]},
        })
        .to_string(),
    );
    let words = owned([
        "\"spec\":",
        "\"status\":",
        "\"metadata\":",
        "\"managedFields\":",
        "2026-13-01T25:00:00Z",
        "-1",
    ]);
    let check = |input: &[u8]| {
        let guarded = serde_json::from_slice::<Guarded<VariantAutoscaling>>(input);
        if let Ok(Err(error)) = guarded.map(Guarded::into_object) {
            let record = malformed(&error, &mut Interner::default());
            assert!(record.object.key.name.len() <= input.len());
        }
        project::<VariantAutoscaling>(input)
    };
    Campaign::run(
        "cluster::variant_object",
        Grammar::new(seeds, words, 4 * 1024),
        Memory::kib(64, 600),
        &check,
    );
}

#[test]
fn other_objects() {
    let metadata = json!({"namespace": "ns", "name": "x", "uid": "u", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}]});
    let container = json!({"name": "vllm", "image": "vllm", "command": ["vllm"], "args": ["--max-num-seqs=4"],
        "env": [{"name": "VLLM_USE_V1", "value": "1"}], "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": 2}}});
    let seeds = [
        json!({"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"nvidia.com/gpu.product": "H100"}, "containers": [container]}}},
            "status": {"replicas": 2, "readyReplicas": 1, "observedGeneration": 3}}),
        json!({"kind": "Pod", "metadata": metadata, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        json!({"kind": "ConfigMap", "metadata": metadata, "data": {"default": "a: 1"}}),
        json!({"kind": "ScaledObject", "metadata": metadata, "spec": {"scaleTargetRef": {"name": "v"}, "minReplicaCount": 0, "maxReplicaCount": 4,
            "triggers": [{"type": "prometheus", "metadata": {"query": "wva_desired_replicas{variant_name=\"v\"}", "threshold": "1"}}]}}),
    ];
    let check = |input: &[u8]| {
        let outcomes = [
            project::<Deployment>(input),
            project::<SlimPod>(input),
            project::<ConfigMap>(input),
            project::<ScaledObject>(input),
        ];
        Outcome::from(outcomes.contains(&Outcome::Accepted))
    };
    Campaign::run(
        "cluster::other_objects",
        Grammar::new(seeds.map(|seed| seed.to_string()), [], 4 * 1024),
        Memory::kib(64, 600),
        &check,
    );
}
