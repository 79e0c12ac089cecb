//! What a decision sees of targets that have roles, or state which pods are theirs.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

use super::*;
use crate::actors::sample_plan::tests::{leading, of_pod};
use crate::api::pod::SlimPod;
use crate::api::pod_autoscaler::PodAutoscaler;
use crate::api::scaled_object::ScaledObject;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::project::storm_service::{storm_service, target};
use crate::cluster::scale::{ReadTarget, ScaleReading, autoscaler_target};
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::params::LabelSelector;
use crate::policy::pod_autoscaler::record::{AutoscalerVerdict, TargetOwner};
use crate::policy::pod_autoscaler::storm_service::ReplicaField;
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::mirrors::tests::list;

pub(in crate::actors) mod asleep;
mod first_reads;
mod ticks;

const VERSION: &str = "orchestration.aibrix.ai/v1alpha1";

/// A process that leads, with no workloads and these pods: names with labels.
fn cluster(pods: &[(&str, Value)]) -> SharedState {
    let shared = leading();
    let mirrors = &shared.writers.mirrors;
    list::<Deployment>(&mirrors.deployments, []);
    list::<StatefulSet>(&mirrors.stateful_sets, []);
    list::<PartialObjectMeta<ReplicaSet>>(&mirrors.replica_sets, []);
    list::<HorizontalPodAutoscaler>(&mirrors.horizontal_pod_autoscalers, []);
    list::<ScaledObject>(&mirrors.scaled_objects, []);
    list::<VariantAutoscaling>(&mirrors.variants, []);
    list_pods(&shared, pods);
    shared
}

/// The pods whose names begin with `cold` are not ready, those with `new` have just become so.
fn list_pods(shared: &SharedState, pods: &[(&str, Value)]) {
    let pods = pods.iter().map(|(name, labels)| {
        let (namespace, name) = name.split_once('/').unwrap_or(("ns", name));
        let year = if name.starts_with("new") { 2100 } else { 2026 };
        json!({
            "metadata": {
                "namespace": namespace, "name": name, "uid": name, "labels": labels,
                "deletionTimestamp": name.starts_with("going").then_some("2026-01-01T00:00:00Z"),
            },
            "status": {"podIP": "10.0.0.1", "conditions": [{
                "type": "Ready", "status": if name.starts_with("cold") { "False" } else { "True" },
                "lastTransitionTime": format!("{year}-01-01T00:00:00Z"),
            }]},
        })
    });
    list::<SlimPod>(&shared.writers.mirrors.pods, pods);
}

/// A `PodAutoscaler`: its name, kind and name of its target, role, and annotated mode.
pub(in crate::actors) type Stored<'a> =
    (&'a str, &'a str, &'a str, Option<&'a str>, Option<&'a str>);

pub(in crate::actors) fn autoscalers(shared: &SharedState, objects: &[Stored<'_>]) {
    let objects = objects.iter().map(|(name, kind, target, role, mode)| {
        let annotations =
            mode.map(|mode| json!({"autoscaling.aibrix.ai/storm-service-mode": mode}));
        json!({
            "metadata": {
                "namespace": "ns", "name": name, "uid": name, "annotations": annotations,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "scaleTargetRef": {"apiVersion": VERSION, "kind": kind, "name": target},
                "subTargetSelector": role.map(|role| json!({"roleName": role})),
                "minReplicas": 4, "maxReplicas": 10, "scalingStrategy": "KPA",
                "metricsSources": [of_pod("x")],
            },
        })
    });
    let mirror = &shared.writers.mirrors.pod_autoscalers;
    list::<PodAutoscaler>(mirror, objects);
}

pub(in crate::actors) fn decide(shared: &SharedState, name: &str) -> AutoscalerRecord {
    let now = shared.clock.now();
    let record = shared.readers.decide_autoscaler(&ObjectKey::new("ns", name), now);
    record.unwrap()
}

fn of_kind(kind: &str, name: &str) -> TargetKey {
    let kind = TargetKind::of(&"orchestration.aibrix.ai".into(), &kind.into());
    TargetKey::new("ns", kind, name)
}

fn publish(shared: &SharedState, key: TargetKey, read: ReadTarget) {
    let mut scales = (*shared.mirrors.scales.load()).clone();
    scales.insert(key, ScaleReading::Found(Arc::new(read)));
    let epoch = Epoch::for_test(Role::ScaleReader, 1);
    let writers = &shared.writers.scale_reader;
    writers.scales.publish(&epoch, Arc::new(scales)).unwrap();
}

/// A StormService whose status counts the pods of both RoleSets.
pub(in crate::actors) fn service(spec: &Value) -> Value {
    let roles = json!([
        {"name": "prefill", "replicas": 3, "podGroupSize": 2}, {"name": "decode", "replicas": 2},
    ]);
    let mut object = json!({
        "apiVersion": VERSION, "kind": "StormService",
        "metadata": {"name": "pd", "namespace": "ns", "uid": "u"},
        "spec": {"replicas": 7, "template": {"spec": {"roles": roles}}},
        "status": {"replicas": 7, "roleStatuses": [{"name": "decode", "replicas": 14}]},
    });
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

pub(in crate::actors) fn publish_service(shared: &SharedState, object: &Value) {
    let key = of_kind("StormService", "pd");
    let read: kube::api::DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let read = ReadTarget {
        object: target(&key, &read),
        selector: None,
        service: Some(storm_service(&read)),
    };
    publish(shared, key, read);
}

fn names(record: &AutoscalerRecord) -> Vec<&str> {
    record.pods.keys().map(|name| &**name).collect()
}

pub(in crate::actors) fn storm_pods() -> SharedState {
    let index = "stormservice.orchestration.aibrix.ai/pod-group-index";
    let of = |role: &str| json!({"storm-service-name": "pd", "role-name": role});
    let group =
        |place: &str| json!({"storm-service-name": "pd", "role-name": "prefill", index: place});
    cluster(&[
        ("decode-0", of("decode")),
        ("decode-1", of("decode")),
        ("going-decode", of("decode")),
        ("prefill-0", group("0")),
        ("prefill-1", group("1")),
        ("other/decode-2", of("decode")),
        ("foreign", json!({"storm-service-name": "another", "role-name": "decode"})),
    ])
}

#[tokio::test]
async fn the_count_of_a_role_is_that_of_the_template() {
    let shared = storm_pods();
    let storm = "StormService";
    let role = |index, name: &str| ReplicaField::Role { index, name: name.into() };
    let decode = (role(1, "decode"), 2, vec!["decode-0", "decode-1"]);
    let whole = |pods: &[&'static str]| (ReplicaField::Service, 7, pods.to_vec());
    for (spec, role_name, mode, expected) in wva_base::cases! {
        (json!({}), Some("decode"), None, decode.clone()),
        (json!({}), Some("decode"), Some("replica"), whole(&["decode-0", "decode-1"])),
        (json!({"mode": "Pooled"}), Some("decode"), Some("replica"), decode),
        (json!({"mode": "Replica"}), Some("decode"), None, whole(&["decode-0", "decode-1"])),
        (json!({}), Some("prefill"), None, (role(0, "prefill"), 3, vec!["prefill-0"])),
        (json!({}), None, None, whole(&["prefill-0"])),
    } {
        autoscalers(&shared, &[("a", storm, "pd", role_name, mode)]);
        publish_service(&shared, &service(&spec));
        let record = decide(&shared, "a");
        let decision = record.decision().unwrap();
        let found = (record.field.clone(), decision.current.0, names(&record));
        assert_eq!(found, expected, "{spec} {role_name:?} {mode:?}");
        let faults = record.policy.as_ref().unwrap().faults.len();
        let is_overridden = spec["mode"] == "Pooled" && mode == Some("replica");
        assert_eq!(faults, usize::from(is_overridden), "{spec} {mode:?}");
        // The field that is read is the field that is written.
        let pointer = record.field.pointer().unwrap();
        let stored = service(&spec).pointer(&pointer).and_then(Value::as_u64);
        assert_eq!(stored, Some(decision.current.0.into()));
    }
}

/// Scaled as a whole, a replica has the pods of the role; a replica of the role has one in each of seven RoleSets.
#[tokio::test]
async fn the_target_of_a_replica_is_that_of_its_pods() {
    let shared = storm_pods();
    let roles = |decode: Value| json!({"template": {"spec": {"roles": [{"name": "prefill", "replicas": 3}, decode]}}});
    let two = roles(json!({"name": "decode", "replicas": 2}));
    let unset = roles(json!({"name": "decode"}));
    for (spec, mode, expected) in
        [(&two, "replica", 2), (&unset, "replica", 0), (&two, "pooled", 7)]
    {
        autoscalers(&shared, &[("a", "StormService", "pd", Some("decode"), Some(mode))]);
        publish_service(&shared, &service(spec));
        let record = Arc::new(decide(&shared, "a"));
        let epoch = Epoch::for_test(Role::PodAutoscaler(record.key.clone()), 1);
        let board = &shared.writers.pod_autoscalers;
        board.put(&epoch, record).unwrap();
        let now = shared.clock.now();
        let documents = shared.readers.autoscaler_documents(now, Duration::ZERO);
        let found = documents[0].pods_per_replica.unwrap();
        assert_eq!(found.0, expected, "{spec} {mode}");
    }
}

#[tokio::test]
async fn a_role_is_decided_on_from_its_first_reading() {
    let shared = storm_pods();
    autoscalers(&shared, &[("a", "StormService", "pd", Some("decode"), None)]);
    let why = "StormService ns/pd has not been read yet";
    let unread = AutoscalerVerdict::Unread { why: why.into() };
    let first = decide(&shared, "a");
    assert_eq!(first.verdict, unread);
    assert_eq!(first.unread_since, Some(first.decided));
    // A VariantAutoscaling needs its scale alone.
    let key = of_kind("StormService", "pd");
    let object: kube::api::DynamicObject = serde_json::from_value(service(&json!({}))).unwrap();
    let read = ReadTarget { object: target(&key, &object), selector: None, service: None };
    publish(&shared, key, read);
    assert_eq!(decide(&shared, "a").verdict, unread);
    publish_service(&shared, &service(&json!({})));
    let record = decide(&shared, "a");
    let decision = record.decision().unwrap();
    assert_eq!((decision.current, decision.desired), (Replicas(2), Replicas(4)));
    assert_eq!(record.unread_since, None);
}

#[tokio::test]
async fn a_role_without_a_count_is_uncounted() {
    let shared = storm_pods();
    autoscalers(&shared, &[("a", "StormService", "pd", Some("encode"), None)]);
    publish_service(&shared, &service(&json!({})));
    let why = "StormService pd: spec.template.spec.roles has no role \"encode\"; add it, or correct spec.subTargetSelector.roleName";
    let uncounted = AutoscalerVerdict::Uncounted { why: why.into() };
    assert_eq!(decide(&shared, "a").verdict, uncounted);
    let roles = json!({"template": {"spec": {"roles": [{"name": "encode"}]}}});
    publish_service(&shared, &service(&roles));
    let why = "StormService pd: spec.template.spec.roles[0].replicas (encode) is not set; write a count there";
    let uncounted = AutoscalerVerdict::Uncounted { why: why.into() };
    assert_eq!(decide(&shared, "a").verdict, uncounted);
}

#[tokio::test]
async fn two_roles_are_scaled_by_two_objects_unless_the_service_is_scaled_as_a_whole() {
    let shared = storm_pods();
    let storm = "StormService";
    autoscalers(
        &shared,
        &[("a", storm, "pd", Some("prefill"), None), ("b", storm, "pd", Some("decode"), None)],
    );
    publish_service(&shared, &service(&json!({})));
    for name in ["a", "b"] {
        assert!(decide(&shared, name).decision().is_some(), "{name}");
    }
    publish_service(&shared, &service(&json!({"mode": "Replica"})));
    assert!(decide(&shared, "a").decision().is_some());
    let owner = TargetOwner { kind: "PodAutoscaler".into(), key: ObjectKey::new("ns", "a") };
    assert_eq!(decide(&shared, "b").verdict, AutoscalerVerdict::Conflict(owner));
}

/// A target of a kind with a scale subresource that states this selector.
fn scaled(shared: &SharedState, kind: &str, selector: Option<&str>) {
    let key = of_kind(kind, "f");
    let object = service(&json!({"replicas": 2}));
    let object: kube::api::DynamicObject = serde_json::from_value(object).unwrap();
    let read = ReadTarget {
        object: target(&key, &object),
        selector: selector.map(LabelSelector::parse),
        service: None,
    };
    publish(shared, key, read);
}

#[tokio::test]
async fn pods_of_a_kind_without_watcher_are_those_that_its_scale_selects() {
    let shared = cluster(&[
        ("head", json!({"app": "foo", "ray.io/node-type": "head"})),
        ("worker", json!({"app": "foo", "ray.io/node-type": "worker"})),
        ("going", json!({"app": "foo", "ray.io/node-type": "head"})),
        ("other", json!({"app": "bar", "ray.io/node-type": "head"})),
    ]);
    for (kind, selector, expected) in [
        ("RayClusterFleet", Some("app=foo"), vec!["head"]),
        ("RayClusterFleet", Some("app"), vec!["head", "other"]),
        ("Fleet", Some("app=foo"), vec!["head", "worker"]),
        ("Fleet", Some("app notin (foo)"), vec!["other"]),
        // What it controls, which is nothing.
        ("Fleet", None, vec![]),
    ] {
        autoscalers(&shared, &[("a", kind, "f", None, None)]);
        scaled(&shared, kind, selector);
        let record = decide(&shared, "a");
        let current = record.decision().unwrap().current;
        assert_eq!((&record.field, current), (&ReplicaField::Scale, Replicas(2)));
        assert_eq!(names(&record), expected, "{kind} {selector:?}");
    }
    scaled(&shared, "Fleet", Some("app=foo,=x"));
    let AutoscalerVerdict::Unseen { why } = decide(&shared, "a").verdict else {
        panic!("its pods are not known")
    };
    let expected =
        "Fleet ns/f has a status.selector that is not read: \"=x\" is not a label requirement";
    assert!(why.starts_with(expected), "{why}");
}

#[tokio::test]
async fn a_reference_that_names_no_object_is_refused_with_the_remedy() {
    let shared = cluster(&[]);
    autoscalers(&shared, &[("a", "Fle/et", "f", None, None)]);
    let stored = shared.mirrors.pod_autoscalers.get(&ObjectKey::new("ns", "a"));
    assert_eq!(autoscaler_target(&stored.unwrap()), None);
    let why = "Fle/et ns/f cannot be looked up; write apiVersion, kind and name of an object in spec.scaleTargetRef";
    let verdict = AutoscalerVerdict::Unseen { why: why.into() };
    assert_eq!(decide(&shared, "a").verdict, verdict);
}

/// Properties of many selectors are those of the parser; here each pod is found by all of its labels.
#[tokio::test]
async fn every_pod_is_found_by_its_labels() {
    let pods: BTreeMap<String, Value> = (0..20)
        .map(|index| (format!("p-{index:02}"), json!({"app": "foo", "index": index.to_string()})))
        .collect();
    let listed: Vec<(&str, Value)> =
        pods.iter().map(|(name, labels)| (&**name, labels.clone())).collect();
    let shared = cluster(&listed);
    autoscalers(&shared, &[("a", "Fleet", "f", None, None)]);
    for (index, name) in pods.keys().enumerate() {
        scaled(&shared, "Fleet", Some(&format!("index={index}")));
        assert_eq!(names(&decide(&shared, "a")), [&**name]);
    }
    scaled(&shared, "Fleet", Some("app=foo"));
    assert_eq!(names(&decide(&shared, "a")).len(), 20);
}
