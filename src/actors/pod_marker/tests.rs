//! What a round writes: nothing before a plan of the term, then the idlest pod, and back to what was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

use super::PodMarks;
use crate::actors::emitter::tests::{claim, leading, view};
use crate::actors::rounds::tests::decided;
use crate::actors::rounds::{DENIED_PAUSE, Rounds};
use crate::api::pod::SlimPod;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::fake::{FakeResponse, FakeServer, RecordedRequest, refusal};
use crate::policy::key::ModelKey;
use crate::policy::samples::{PodSamples, Sample};
use crate::policy::snapshot::{MetricsSnapshot, PodView, Readiness, VariantView};
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::events::Events;
use crate::state::mirrors::tests::list;
use crate::state::permission_reporter::PermissionReporter;
use wva_base::moment::WallTime;
use wva_supervise::Epoch;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const BY: &str = "llm-d.ai/pod-deletion-cost-by";

/// Three pods, of which some have these annotations.
fn hold(shared: &SharedState, annotations: &[(&str, Value)]) {
    let pods = ["a", "b", "c"].map(|name| {
        let found = annotations.iter().find(|(pod, _)| *pod == name);
        let annotations = found.map_or_else(|| json!({}), |(_, found)| found.clone());
        let uid = format!("uid-{name}");
        json!({"metadata": {"namespace": "ns", "name": name, "uid": uid, "annotations": annotations}})
    });
    list::<SlimPod>(&shared.writers.mirrors.pods, pods);
}

fn ours() -> Value {
    json!({ COST: "-1", BY: "wva-me" })
}

/// The variant has three pods, on which 7, 0 and 3 requests run.
fn measured(shared: &SharedState) -> VariantView {
    let pods = ["a", "b", "c"].map(|name| PodView {
        name: name.into(),
        readiness: Readiness::Ready,
        created: WallTime(0),
        ready_since: None,
        node: None,
    });
    let sample = |value: f64| Some(Sample::collected(value, Duration::ZERO));
    let loads = [("a", 7.0), ("b", 0.0), ("c", 3.0)].map(|(name, running)| {
        let samples = PodSamples {
            running: sample(running),
            queue_length: sample(0.0),
            ..PodSamples::default()
        };
        (Arc::from(name), samples)
    });
    let metrics = MetricsSnapshot {
        models: BTreeMap::from([(ModelKey::new("ns", "m"), loads.into())]),
        ..MetricsSnapshot::empty(Some(shared.clock.now()))
    };
    let epoch = Epoch::for_test(Role::Collector, 1);
    let cell = &shared.writers.collector.metrics;
    cell.publish(&epoch, Arc::new(metrics)).unwrap();
    VariantView { pods: pods.into(), ..view(1) }
}

fn decide(shared: &SharedState, view: &VariantView, count: u32) {
    decided(shared, view, |decision| {
        decision.target = Some(Replicas(count));
    });
}

fn marker(shared: &SharedState, server: &FakeServer) -> Rounds<PodMarks> {
    let permissions = PermissionReporter::for_test(shared.clock.clone(), Events::for_test());
    let api = server.writes("wva-me", 1);
    let requests = Arc::clone(&shared.writers.pod_marker);
    let marks = PodMarks::new(shared.readers.clone(), api);
    Rounds::new(marks, shared.readers.clone(), requests, permissions)
}

/// What a round asks the API server for, where each request is accepted.
async fn round(shared: &SharedState) -> Vec<RecordedRequest> {
    let server = FakeServer::default();
    for _ in 0..3 {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        server.then(FakeResponse::Json(200, pod));
    }
    marker(shared, &server).round(shared.clock.now()).await;
    server.asked()
}

fn written(asked: &[RecordedRequest]) -> Vec<(&str, &Value)> {
    let each = asked.iter().map(|one| {
        assert_eq!(&*one.method, "PATCH");
        let path = one.path.strip_prefix("/api/v1/namespaces/ns/pods/");
        let metadata = &one.body["metadata"];
        let (pod, uid) = (&metadata["name"], metadata["uid"].as_str());
        assert_eq!(path, pod.as_str());
        assert_eq!(uid.unwrap(), format!("uid-{}", path.unwrap()));
        (path.unwrap(), &metadata["annotations"])
    });
    each.collect()
}

#[tokio::test(start_paused = true)]
async fn the_idlest_pod_is_chosen_while_fewer_are_published() {
    let shared = leading(3);
    let view = measured(&shared);
    hold(&shared, &[]);
    assert!(round(&shared).await.is_empty(), "nothing is planned");
    decide(&shared, &view, 3);
    assert!(round(&shared).await.is_empty(), "as many as there are");

    decide(&shared, &view, 2);
    let asked = round(&shared).await;
    assert_eq!(written(&asked), [("b", &ours())]);
    hold(&shared, &[("b", ours())]);
    assert!(round(&shared).await.is_empty(), "it is done");

    decide(&shared, &view, 3);
    let asked = round(&shared).await;
    assert_eq!(written(&asked), [("b", &json!({}))], "the scale-down is off");
}

/// Pods of another controller, and of people, stay as they are; and without the claim every pod does.
#[tokio::test(start_paused = true)]
async fn costs_of_others_and_of_another_term_stay() {
    let shared = leading(3);
    let view = measured(&shared);
    decide(&shared, &view, 3);
    let another = json!({ COST: "-1", BY: "team" });
    let edited = json!({ COST: "5", BY: "wva-me" });
    let foreign = [("a", another), ("b", json!({ COST: "-1" })), ("c", edited)];
    hold(&shared, &foreign);
    assert!(round(&shared).await.is_empty());

    hold(&shared, &[("a", ours())]);
    claim(&shared, 2);
    assert!(round(&shared).await.is_empty(), "nothing is planned in it");
    claim(&shared, 1);
    let asked = round(&shared).await;
    assert_eq!(written(&asked).len(), 1);
}

/// The status of the variant has this owner.
fn owned(shared: &SharedState, manager: &str) {
    let mirrors = &shared.writers.mirrors;
    let namespace = json!({"metadata": { "name": "ns" }});
    list::<PartialObjectMeta<Namespace>>(&mirrors.namespaces, [namespace]);
    let variant = json!({
        "metadata": {"namespace": "ns", "name": "v", "uid": "u", "managedFields": [{
            "manager": manager, "operation": "Apply", "subresource": "status",
            "fieldsV1": { "f:status": { "f:actuation": {} } },
        }]},
        "spec": { "scaleTargetRef": { "name": "v" }, "modelID": "m" },
    });
    list::<VariantAutoscaling>(&mirrors.variants, [variant]);
}

/// A name depends on the lease and its namespace.
#[tokio::test(start_paused = true)]
async fn a_mark_under_a_former_name_is_removed_unless_a_controller_of_that_name_publishes() {
    let mut shared = leading(3);
    shared.readers.manager = "wva-me".into();
    let view = measured(&shared);
    hold(&shared, &[("a", json!({ COST: "-1", BY: "wva-former" }))]);
    decide(&shared, &view, 3);
    owned(&shared, "wva-former");
    assert!(round(&shared).await.is_empty(), "another one publishes it");
    owned(&shared, "wva-me");
    let asked = round(&shared).await;
    assert_eq!(written(&asked), [("a", &json!({}))]);
    assert_eq!(asked[0].query, "&fieldManager=wva-former");
}

/// What was not written is written in the next round, by whichever life.
#[tokio::test(start_paused = true)]
async fn the_next_round_writes_what_failed() {
    let shared = leading(3);
    let view = measured(&shared);
    hold(&shared, &[]);
    decide(&shared, &view, 2);
    let server = FakeServer::default();
    server.then(refusal(500, "InternalError", "no"));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}});
    server.then(FakeResponse::Json(200, pod));
    for _life in 0..2 {
        marker(&shared, &server).round(shared.clock.now()).await;
    }
    let asked = server.asked();
    let [first, second] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!((&first.path, &first.body), (&second.path, &second.body));
}

/// A cost that was written since the pod was read is no refusal: the next round sees it.
#[tokio::test(start_paused = true)]
async fn a_conflict_is_left_to_the_next_round() {
    let shared = leading(3);
    let view = measured(&shared);
    hold(&shared, &[]);
    decide(&shared, &view, 2);
    let server = FakeServer::default();
    for _ in 0..2 {
        server.then(refusal(409, "Conflict", "conflict with \"kubectl\""));
    }
    let mut marker = marker(&shared, &server);
    let begin = shared.clock.now();
    marker.round(begin).await;
    let asked = server.asked();
    assert_eq!(asked[0].query, "&fieldManager=wva-me", "not by force");
    assert_eq!(asked[0].content_type, "application/apply-patch+yaml");
    assert_eq!(marker.spared, None);
    marker.round(begin).await;
    assert_eq!(server.asked().len(), 2, "it is not seen yet");

    hold(&shared, &[("b", json!({ COST: "5" }))]);
    marker.round(begin).await;
    assert_eq!(server.asked().len(), 2);
}

/// A write that is not allowed ends the writes of a minute.
#[tokio::test(start_paused = true)]
async fn nothing_is_written_for_a_minute_after_a_refusal() {
    let shared = leading(3);
    let view = measured(&shared);
    hold(&shared, &[]);
    decide(&shared, &view, 2);
    let server = FakeServer::default();
    server.then(refusal(403, "Forbidden", "no"));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}});
    server.then(FakeResponse::Json(200, pod));
    let mut refused = marker(&shared, &server);
    let begin = shared.clock.now();
    refused.round(begin).await;
    assert_eq!(refused.spared, Some(begin.later(DENIED_PAUSE)));
    refused.round(begin).await;
    assert_eq!(server.asked().len(), 1);
    // Another life knows of no refusal.
    marker(&shared, &server).round(begin).await;
    assert_eq!(server.asked().len(), 2);
}
