use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::PartialObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Interner, Projected};
use crate::api::pod::SlimPod;
use crate::api::service_monitor::ServiceMonitor;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::watch::Guarded;
use crate::policy::accelerator;
use crate::policy::accelerator::Accelerator;
use crate::policy::filter::{Management, OptIn};
use crate::policy::object::{Lifecycle, SpecReading};
use crate::policy::snapshot::Readiness;
use crate::policy::units::Replicas;
use wva_base::moment::WallTime;
use wva_base::yaml::MAX_TEXT;

fn project<K: Projected>(object: &Value) -> K::View {
    let object: K = serde_json::from_value(object.clone()).unwrap();
    object.project(&mut Interner::default())
}

macro_rules! vectors {
    ($name:literal) => {
        serde_yaml::from_str(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/vectors/",
            $name
        )))
        .unwrap()
    };
}

mod claims;
mod declared;
mod devices;
mod gpus;
mod keda;
mod pools;
mod scalers;
mod services;
mod templates;

#[test]
fn a_variant_keeps_what_decides_and_what_is_compared() {
    let object = json!({
        "metadata": {
            "namespace": "a", "name": "v", "uid": "u", "resourceVersion": "9", "generation": 4,
            "labels": {
                "inference.optimization/acceleratorName": "H100",
                "wva.llmd.ai/controller-instance": "blue",
            },
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "scaleTargetRef": {"name": "d"}, "modelID": "m", "maxReplicas": 4, "unknown": {"x": 1},
        },
        "status": {
            "desiredOptimizedAlloc": {"numReplicas": 3, "accelerator": "", "unknown": 1},
            "conditions": [],
            "currentAlloc": {"numReplicas": 1},
        },
    });
    let record = project::<VariantAutoscaling>(&object);
    assert_eq!(record.object.key.to_string(), "a/v");
    assert_eq!(&*record.object.uid, "u");
    assert_eq!(record.object.generation, 4);
    assert_eq!(record.object.lifecycle, Lifecycle::Live);
    assert_eq!(record.object.accelerator_label.as_deref(), Some("H100"));
    assert_eq!(record.instance.as_deref(), Some("blue"));
    assert_eq!(&*record.resource_version, "9");
    assert_eq!(record.object.stored.desired, Some(Replicas(3)));
    assert_eq!(record.object.stored.accelerator, None, "an empty text is no accelerator");
    let SpecReading::Read(spec) = record.object.spec else {
        panic!("{:?}", record.object.spec);
    };
    assert_eq!((&*spec.model_id, &*spec.target.name, &*spec.target.kind), ("m", "d", "Deployment"));
    assert_eq!(spec.target.api_version, None);
    assert_eq!((spec.cost.as_deref(), spec.min, spec.max), (Some("10.0"), None, Some(4)));
}

#[test]
fn a_pod_behind_a_scheduling_gate_is_not_on_its_way() {
    let gate = json!([{ "name": "kueue.x-k8s.io/admission" }]);
    for (gates, ready, expected) in [
        (json!([]), "False", Readiness::NotReady),
        (gate.clone(), "False", Readiness::Gated),
        (json!([]), "True", Readiness::Ready),
    ] {
        let pod = project::<SlimPod>(&json!({
            "metadata": { "namespace": "a", "name": "p" },
            "spec": { "schedulingGates": gates },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }));
        assert_eq!(pod.readiness, expected);
    }
}

#[test]
fn a_variant_that_was_never_decided_has_nothing_stored() {
    let object = json!({
        "metadata": {
            "namespace": "a", "name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"scaleTargetRef": {"name": "d"}, "modelID": "m", "minReplicas": null},
    });
    let record = project::<VariantAutoscaling>(&object);
    assert_eq!(record.object.lifecycle, Lifecycle::Deleting);
    assert_eq!(record.object.stored.desired, None);
    assert_eq!(record.instance, None);
}

#[test]
fn a_variant_that_cannot_be_read_keeps_its_name_and_the_reason() {
    let object = json!({
        "metadata": {"namespace": "a", "name": "v", "uid": "u", "resourceVersion": "9"},
        "spec": {"scaleTargetRef": {"name": "d"}, "modelID": 7},
    });
    let guarded: Guarded<VariantAutoscaling> = serde_json::from_value(object).unwrap();
    let malformed = guarded.into_object().unwrap_err();
    let record = super::variant::malformed(&malformed, &mut Interner::default());
    assert_eq!(record.object.key.to_string(), "a/v");
    assert_eq!((&*record.object.uid, &*record.resource_version), ("u", "9"));
    let SpecReading::Malformed { why } = record.object.spec else {
        panic!("{:?}", record.object.spec);
    };
    assert!(why.starts_with("spec.modelID: invalid type"), "{why}");
}

#[derive(Deserialize)]
struct TargetVectors {
    accelerators: Vec<AcceleratorVector>,
    replicas: Vec<ReplicasVector>,
}

#[derive(Deserialize)]
struct AcceleratorVector {
    id: String,
    #[serde(default)]
    selector: BTreeMap<String, String>,
    #[serde(default)]
    required: Vec<Value>,
    #[serde(default)]
    preferred: Vec<Value>,
    label: Option<Arc<str>>,
    expect: Option<String>,
}

#[derive(Deserialize)]
struct ReplicasVector {
    id: String,
    replicas: Option<i32>,
    status: Option<Value>,
    wanted: Option<u32>,
    present: u32,
    ready: u32,
}

fn deployment(pod: &Value, replicas: Option<i32>, status: Option<&Value>) -> Value {
    json!({
        "metadata": {"namespace": "a", "name": "d", "uid": "u", "generation": 3},
        "spec": {
            "replicas": replicas,
            "selector": {},
            "template": {"spec": pod},
        },
        "status": status,
    })
}

#[test]
fn accelerators_are_found_as_the_vectors_say() {
    let vectors: TargetVectors = vectors!("target.yaml");
    assert!(vectors.accelerators.len() > 10);
    for vector in vectors.accelerators {
        let pod = json!({
            "containers": [],
            "nodeSelector": vector.selector,
            "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": vector.required}],
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": vector.preferred}},
                ],
            }},
        });
        let target = project::<Deployment>(&deployment(&pod, None, None));
        let expected = vector
            .expect
            .map_or(Accelerator::Unresolved, |name| Accelerator::Named(Arc::from(name)));
        let found = accelerator::resolve(&target.placement, vector.label.as_ref());
        assert_eq!(found, expected, "{}", vector.id);
    }
}

#[test]
fn replicas_are_read_as_the_vectors_say() {
    let vectors: TargetVectors = vectors!("target.yaml");
    assert!(vectors.replicas.len() > 3);
    for vector in vectors.replicas {
        let object =
            deployment(&json!({"containers": []}), vector.replicas, vector.status.as_ref());
        let target = project::<Deployment>(&object);
        assert_eq!(target.spec_replicas, vector.wanted.map(Replicas), "{}", vector.id);
        assert_eq!(target.status_replicas, Replicas(vector.present), "{}", vector.id);
        assert_eq!(target.ready_replicas, Replicas(vector.ready), "{}", vector.id);
    }
}

#[test]
fn a_target_is_unobserved_until_its_controller_says_otherwise() {
    let pod = json!({"containers": []});
    let target = project::<Deployment>(&deployment(&pod, None, None));
    assert_eq!((target.generation, target.observed_generation), (3, 0));
    assert_eq!(target.key.to_string(), "Deployment a/d");
    let seen = json!({"observedGeneration": 3});
    let target = project::<Deployment>(&deployment(&pod, None, Some(&seen)));
    assert_eq!(target.observed_generation, 3);
}

#[test]
fn a_pod_says_since_when_it_is_ready_and_where() {
    let object = |status: &str, node: Option<&str>| {
        json!({
            "metadata": { "namespace": "a", "name": "p" },
            "spec": { "nodeName": node },
            "status": { "conditions": [{
                "type": "Ready", "status": status, "lastTransitionTime": "1970-01-01T00:00:02Z",
            }]},
        })
    };
    let pod = project::<SlimPod>(&object("True", Some("n")));
    assert_eq!(pod.ready_since, Some(WallTime(2_000)));
    assert_eq!(pod.node.as_deref(), Some("n"));
    let pod = project::<SlimPod>(&object("False", None));
    assert_eq!((pod.ready_since, pod.node), (None, None));
}

#[test]
fn a_pod_that_has_come_to_its_end_is_live_no_more() {
    for (phase, expected) in [
        ("Pending", Lifecycle::Live),
        ("Running", Lifecycle::Live),
        ("Unknown", Lifecycle::Live),
        ("Failed", Lifecycle::Ended),
        ("Succeeded", Lifecycle::Ended),
    ] {
        let object = json!({
            "metadata": {"namespace": "a", "name": "p"},
            "status": {"phase": phase, "reason": "Evicted"},
        });
        assert_eq!(project::<SlimPod>(&object).lifecycle, expected, "{phase}");
    }
}

#[test]
fn a_pod_is_ready_by_its_condition_alone() {
    for (conditions, expected) in wva_base::cases! {
        (json!([]), Readiness::NotReady),
        (json!([{"type": "Ready", "status": "True"}]), Readiness::Ready),
        (json!([{"type": "Ready", "status": "False"}]), Readiness::NotReady),
        (json!([{"type": "Ready", "status": "Unknown"}]), Readiness::NotReady),
        (json!([{"type": "ContainersReady", "status": "True"}]), Readiness::NotReady),
    } {
        let object = json!({
            "metadata": {
                "namespace": "a", "name": "p", "creationTimestamp": "1970-01-01T00:00:02Z",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Thing", "name": "x", "uid": "1"},
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "2",
                     "controller": true},
                ],
            },
            "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": "Running", "conditions": conditions},
        });
        let pod = project::<SlimPod>(&object);
        assert_eq!(pod.readiness, expected, "{conditions}");
        assert_eq!(pod.created, WallTime(2_000));
        let controller = pod.controller.unwrap();
        assert_eq!(
            (&*controller.kind, &*controller.name, &*controller.uid),
            ("ReplicaSet", "rs", "2")
        );
    }
    let bare = project::<SlimPod>(&json!({"metadata": {"namespace": "a", "name": "p"}}));
    assert_eq!((bare.controller, bare.readiness), (None, Readiness::NotReady));
}

#[test]
fn a_replica_set_names_its_deployment() {
    let object = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {
            "namespace": "a", "name": "rs", "uid": "2",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "3",
                 "controller": true},
            ],
        },
    });
    let set = project::<PartialObjectMeta<ReplicaSet>>(&object);
    assert_eq!((&*set.namespace, &*set.uid), ("a", "2"));
    assert_eq!(&*set.controller.unwrap().name, "d");
}

#[test]
fn a_namespace_says_true_or_nothing() {
    for (value, management, opt_in) in [
        (Some("true"), Management::Excluded, OptIn::Given),
        (Some("false"), Management::Managed, OptIn::Absent),
        (Some("True"), Management::Managed, OptIn::Absent),
        (None, Management::Managed, OptIn::Absent),
    ] {
        let mut object = json!({"metadata": {"name": "n"}});
        if let Some(value) = value {
            object["metadata"]["annotations"] = json!({"wva.llmd.ai/exclude": value});
            object["metadata"]["labels"] = json!({"wva.llmd.ai/config-enabled": value});
        }
        let namespace = project::<PartialObjectMeta<Namespace>>(&object);
        assert_eq!((namespace.management, namespace.opt_in), (management, opt_in), "{value:?}");
    }
}

#[test]
fn of_an_entry_that_is_too_large_only_as_much_is_kept_as_shows_that() {
    let largest = "x".repeat(MAX_TEXT);
    let object = json!({
        "metadata": {"namespace": "a", "name": "c", "uid": "u", "resourceVersion": "5"},
        "data": {"small": "1", "largest": largest, "larger": "\u{e4}".repeat(MAX_TEXT)},
        "binaryData": {"b": "AA=="},
    });
    let config_map = project::<ConfigMap>(&object);
    let sizes: Vec<_> =
        (config_map.data.iter()).map(|(key, text)| (key.as_str(), text.len())).collect();
    let expected = [("larger", MAX_TEXT + 2), ("largest", MAX_TEXT), ("small", 1)];
    assert_eq!(sizes, expected);
    assert_eq!(&*config_map.resource_version, "5");
    let empty = project::<ConfigMap>(&json!({"metadata": {"namespace": "a", "name": "c"}}));
    assert!(empty.data.is_empty());
}

#[test]
fn a_service_monitor_has_its_uid() {
    let object = json!({"metadata": {"namespace": "a", "name": "s", "uid": "u"}});
    let view = project::<PartialObjectMeta<ServiceMonitor>>(&object);
    assert_eq!(&*view.uid, "u");
}
