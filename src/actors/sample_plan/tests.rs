//! Records of PodAutoscalers for tests, and which samples they need.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::*;
use crate::actors::variants::tests::{publish_claim, shared};
use crate::policy::key::ObjectKey;
use crate::policy::pod_autoscaler::demand::AutoscaledPod;
use crate::policy::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict};
use crate::policy::pod_autoscaler::storm_service::ReplicaField;
use crate::policy::pod_autoscaler::{AutoscalerState, PodAutoscalerObject};
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::board::AutoscalerBoardWriter;
use crate::state::claim::ClaimDuration;
use crate::state::mirrors::tests::at;
use wva_supervise::Epoch;

/// Puts these records up, and no others.
pub(in crate::actors) fn put_up(
    board: &AutoscalerBoardWriter,
    records: impl IntoIterator<Item = AutoscalerRecord>,
) {
    for key in board.reader().snapshot().keys() {
        board.remove(key);
    }
    for record in records {
        let epoch = Epoch::for_test(Role::PodAutoscaler(record.key.clone()), 1);
        board.put(&epoch, Arc::new(record)).unwrap();
    }
}

/// A source of metrics of pods on a page.
pub(in crate::actors) fn of_pod(metric: &str) -> Value {
    json!({
        "metricSourceType": "pod", "protocolType": "http", "port": "8000", "path": "/metrics",
        "targetMetric": metric, "targetValue": "10",
    })
}

/// The record of an object that scales pods with these addresses.
pub(in crate::actors) fn record(
    name: &str,
    strategy: &str,
    sources: &[Value],
    pods: &[(&str, Option<&str>)],
) -> AutoscalerRecord {
    let object: PodAutoscalerObject = serde_json::from_value(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": "u"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 10, "scalingStrategy": strategy, "metricsSources": sources,
        },
    }))
    .unwrap();
    let pod = |address: Option<&str>| MeasuredPod {
        pod: AutoscaledPod::Ready { ready_for: Duration::from_hours(1) },
        address: address.map(|address| address.parse::<IpAddr>().unwrap()),
        engine: None,
    };
    let pods = pods.iter();
    let policy = object.check().unwrap();
    AutoscalerRecord {
        base: policy.base,
        notes: Vec::new(),
        yielding: Vec::new(),
        unread_since: None,
        starting_since: None,
        key: ObjectKey::new("ns", name),
        uid: "u".into(),
        generation: 1,
        term: 1,
        decided: at(0),
        policy: Some(Arc::new(policy)),
        target: None,
        model: None,
        field: ReplicaField::Scale,
        pods: Arc::new(pods.map(|(name, address)| (Arc::from(*name), pod(*address))).collect()),
        state: AutoscalerState::default(),
        verdict: AutoscalerVerdict::Unseen { why: "".into() },
    }
}

/// State of a process that leads, or does not.
pub(in crate::actors) fn claim(shared: &SharedState, leads: bool) {
    let hold = if leads { ClaimDuration::Unlimited } else { ClaimDuration::NotOurs };
    publish_claim(shared, 1, hold);
}

pub(in crate::actors) fn leading() -> SharedState {
    let shared = shared();
    claim(&shared, true);
    shared
}

#[test]
fn a_sample_is_wanted_once_and_of_the_newest_pods() {
    let custom = json!({"metricSourceType": "custom", "targetMetric": "q", "targetValue": "1"});
    let external = json!({"metricSourceType": "external", "targetMetric": "q", "targetValue": "1"});
    let sources = [of_pod("x"), custom, external];
    let old = record("a", "KPA", &sources, &[("p", Some("10.0.0.1")), ("q", None)]);
    let new = AutoscalerRecord {
        decided: at(5),
        ..record("b", "APA", &sources, &[("p", Some("10.0.0.2"))])
    };
    let hpa = record("c", "HPA", &sources, &[("r", Some("10.0.0.3"))]);
    let broken = AutoscalerRecord { policy: None, ..old.clone() };
    let broken = AutoscalerRecord { key: ObjectKey::new("ns", "d"), ..broken };
    let board = AutoscalerBoardWriter::default();
    put_up(&board, [new, old, hpa, broken]);
    let wanted = wanted_samples(&board.reader(), |_| true);
    let found: Vec<String> = wanted
        .iter()
        .map(|(key, pod)| {
            let address = pod.as_ref().and_then(|pod| pod.address);
            format!("{:?} {} {address:?}", key.pod, key.source.metric)
        })
        .collect();
    let expected = [
        "None q None",
        "Some(\"p\") x Some(10.0.0.2)",
        "Some(\"p\") q Some(10.0.0.2)",
        "Some(\"q\") x None",
        "Some(\"q\") q None",
    ];
    assert_eq!(found, expected);
}
