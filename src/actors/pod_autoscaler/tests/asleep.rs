//! Targets at zero behind a router, objects that share a target, and pods that answer 503.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;

use super::*;
use crate::actors::sample_plan::tests::put_up;
use crate::api::inference_pool::InferencePool;
use crate::policy::document::SnapshotDocument;
use crate::policy::key::ModelKey;
use crate::policy::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use crate::policy::pod_autoscaler::samples::{
    ReadFailure, SampleKey, SampleReading, SampleSource, SampleTable, source_readings,
};
use crate::policy::router_queue::{CountedQueue, DirectQueue};
use crate::policy::signal::{Failure, FreshnessBands, Signal};
use crate::settings::statics::RecordSettings;
use crate::state::mirrors::tests::other_pools;
use crate::state::recorder::DecisionRecorder;
use wva_base::moment::Moment;
use wva_recording::{RecordedEntry, RecordingReader, replay_autoscaler};

/// A Deployment without replicas whose pods serve model `m`, behind a pool with a router, and an object that may put it
/// to sleep.
pub(in crate::actors) fn sleeping() -> SharedState {
    let shared = cluster(&[("epp-0", json!({"app": "epp"}))]);
    let mirrors = &shared.writers.mirrors;
    let named = |name: &str, rest: Value| {
        let mut object = rest;
        object["metadata"] = json!({"namespace": "ns", "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"});
        object
    };
    let labels = json!({"app": "a", "model.aibrix.ai/name": "m"});
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": labels}}});
    let deployment = named("a", json!({ "spec": spec }));
    list::<Deployment>(&mirrors.deployments, [deployment]);
    let ports = json!([{"name": "metrics", "port": 9090}]);
    let service = named("epp", json!({"spec": {"selector": {"app": "epp"}, "ports": ports}}));
    list::<Service>(&mirrors.services, [service]);
    for mirror in other_pools(mirrors) {
        list::<InferencePool>(mirror, []);
    }
    let autoscaler = json!({"spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        "minReplicas": 0, "maxReplicas": 3, "scalingStrategy": "APA", "metricsSources": [of_pod("x")],
    }});
    let mut autoscaler = named("a", autoscaler);
    autoscaler["metadata"]["annotations"] = json!({"autoscaling.aibrix.ai/scale-to-zero": "true"});
    list::<PodAutoscaler>(&mirrors.pod_autoscalers, [autoscaler]);
    shared
}

pub(in crate::actors) fn with_pool(shared: &SharedState) {
    let pool = json!({
        "metadata": {"namespace": "ns", "name": "pool", "uid": "pool"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}}, "targetPorts": [{"number": 8000}],
            "endpointPickerRef": {"name": "epp", "port": {"number": 9002}},
        },
    });
    let pools = &shared.writers.mirrors.pools_v1;
    list::<InferencePool>(pools, [pool]);
}

fn hold(shared: &SharedState, requests: f64, at: Moment) {
    let counted = Some(CountedQueue { requests, at });
    let queue = DirectQueue { counted, failure: None };
    let queues = [(ModelKey::new("ns", "m"), queue)].into();
    let epoch = Epoch::for_test(Role::RouterScraper, 1);
    let writer = &shared.writers.router_scraper;
    writer.publish(&epoch, Arc::new(queues)).unwrap();
}

#[tokio::test]
async fn requests_in_the_router_of_its_model_wake_a_target() {
    let shared = sleeping();
    let now = shared.clock.now();
    hold(&shared, 2.0, now);
    let counts = |shared: &SharedState| {
        let record = decide(shared, "a");
        assert_eq!(record.model, Some(ModelKey::new("ns", "m")));
        let decision = record.decision().unwrap();
        (decision.current.0, decision.desired.0)
    };
    list::<InferencePool>(&shared.writers.mirrors.pools_v1, []);
    assert_eq!(counts(&shared), (0, 0), "no router is in front of it");
    with_pool(&shared);
    assert_eq!(counts(&shared), (0, 1));
    hold(&shared, 0.0, now);
    assert_eq!(counts(&shared), (0, 0));
}

/// What is written down of an object is planned as it is decided on.
#[tokio::test]
async fn a_snapshot_holds_what_the_next_decision_is_made_from() {
    let shared = sleeping();
    with_pool(&shared);
    assert!(shared.readers.debug_snapshot().pod_autoscalers.is_empty(), "none is decided on");
    hold(&shared, 0.0, shared.clock.now());
    let board = &shared.writers.pod_autoscalers;
    put_up(board, [decide(&shared, "a")]);
    hold(&shared, 2.0, shared.clock.now());
    let written = shared.readers.debug_snapshot();
    let text = serde_json::to_string(&written).unwrap();
    let read = SnapshotDocument::parse(&text).unwrap();
    let read = read.situation(&FreshnessBands::default()).unwrap();
    let [one] = read.autoscalers.as_slice() else {
        panic!("{read:?}");
    };
    assert_eq!(one.view.held.and_then(Signal::value), Some(2.0));
    let (planned, _) =
        crate::policy::pod_autoscaler::decide(&one.policy, &one.view, &one.state, read.now);
    let decided = decide(&shared, "a");
    let decided = decided.decision().unwrap();
    assert_eq!((planned.desired.0, planned.reason()), (1, decided.reason()));
}

/// What is recorded of a decision is decided again as it was.
#[tokio::test]
async fn a_recording_holds_what_a_decision_was_made_from() {
    let mut shared = sleeping();
    let settings = RecordSettings { history_bytes: 1_000_000, file: None, file_bytes: 0 };
    let unrecorded = shared.series.engine.unrecorded.clone();
    shared.readers.recorder = DecisionRecorder::start(&settings, "1".to_owned(), unrecorded);
    with_pool(&shared);
    hold(&shared, 2.0, shared.clock.now());
    let decided = decide(&shared, "a");
    let recorded = loop {
        if let Some(recording) = shared.recorder.recording() {
            break RecordingReader::new(&*recording).next_entry().unwrap();
        }
        tokio::task::yield_now().await;
    };
    let Some(RecordedEntry::Autoscaler(recorded)) = recorded else {
        panic!("{recorded:?}");
    };
    assert_eq!(recorded.key(), decided.key);
    assert_eq!(recorded.view().held.and_then(Signal::value), Some(2.0));
    let replayed = replay_autoscaler(&recorded).unwrap();
    assert_eq!(replayed.difference, None);
    assert_eq!(replayed.decision.as_ref(), decided.decision());
}

#[tokio::test]
async fn the_object_that_scales_knows_those_that_give_way() {
    let shared = storm_pods();
    publish_service(&shared, &service(&json!({})));
    let storm = ("StormService", "pd");
    autoscalers(&shared, &[("a", storm.0, storm.1, None, None)]);
    assert_eq!(decide(&shared, "a").yielding, []);
    let both = [("a", storm.0, storm.1, None, None), ("b", storm.0, storm.1, None, None)];
    autoscalers(&shared, &both);
    let other = TargetOwner { kind: "PodAutoscaler".into(), key: ObjectKey::new("ns", "b") };
    let winner = decide(&shared, "a");
    assert!(winner.decision().is_some());
    assert_eq!(winner.yielding, [other]);
    assert_eq!(decide(&shared, "b").yielding, []);
}

#[tokio::test]
async fn a_pod_that_answers_503_for_too_long_has_failed() {
    let shared = storm_pods();
    publish_service(&shared, &service(&json!({})));
    let stored = ("a", "StormService", "pd", Some("decode"), None);
    autoscalers(&shared, &[stored]);
    let now = shared.clock.now();
    let policy = decide(&shared, "a").policy.unwrap();
    let source = &policy.sources[0];
    let key = SampleKey {
        namespace: "ns".into(),
        pod: Some("decode-0".into()),
        source: SampleSource::of(source),
    };
    let failure = ReadFailure {
        unavailable_since: Some(now),
        ..ReadFailure::new(Failure::QueryFailed, "HTTP 503")
    };
    let reading = SampleReading {
        // What it showed before.
        value: Some((7.0, now)),
        failure: Some(failure),
    };
    let epoch = Epoch::for_test(Role::PodScraper, 1);
    let writer = &shared.writers.pod_scraper;
    let table: SampleTable = [(key, reading)].into();
    writer.publish(&epoch, Arc::new(table)).unwrap();
    let state = |minutes: u64| {
        let now = now.later(Duration::from_mins(minutes));
        let record = shared.readers.decide_autoscaler(&ObjectKey::new("ns", "a"), now);
        record.unwrap().pods["decode-0"].pod
    };
    let readings = |minutes: u64| {
        let now = now.later(Duration::from_mins(minutes));
        let table = shared.readers.pod_samples.load();
        let pods = ["decode-0".into()];
        source_readings(&policy, pods.iter(), &[&table], now)
    };
    assert_eq!(readings(0), [SourceReading::Pods(BTreeMap::new())]);
    assert_ne!(readings(10), readings(0), "it has failed");
    assert_eq!(state(0), AutoscaledPod::Resharding);
    assert_eq!(state(9), AutoscaledPod::Resharding);
    assert!(matches!(state(10), AutoscaledPod::Ready { .. }));
}
