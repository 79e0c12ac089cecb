//! From the reading of a role to the patch of it.

use serde_json::{Value, json};

use super::*;
use crate::actors::pod_autoscaler::tests::{
    autoscalers, decide, publish_service, service, storm_pods,
};
use crate::cluster::fake::{FakeResponse, FakeServer, refusal, throttled};
use crate::policy::key::TargetKind;
use crate::policy::pod_autoscaler::status::ScaleOutcome;
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::state::SharedState;
use wva_supervise::{Epoch, SeedTree};

const VERSION: &str = "orchestration.aibrix.ai/v1alpha1";

fn writer(shared: &SharedState, server: &FakeServer) -> AutoscalerWriter {
    let events = Events::new(shared.series.process.events_dropped.clone(), || {});
    let connections = AutoscalerWriterConnections {
        events: events.clone(),
        permissions: PermissionReporter::for_test(shared.clock.clone(), events),
        named: DirtySet::new(|| {}),
    };
    let api = AutoscalerApi {
        client: server.client(),
        manager: "wva".into(),
        timeout: Duration::from_secs(1),
    };
    AutoscalerWriter::new(
        shared.readers.clone(),
        Arc::clone(&shared.writers.autoscaler_writer),
        RetryQueue::new(|| {}),
        connections,
        api,
        SeedTree::new(1).child("writer"),
    )
}

/// Decides on `decode`, which has two replicas and a minimum of four, and carries that out against a server that holds
/// this object; the outcome, and the requests.
async fn carried_out(answers: [FakeResponse; 2]) -> (ScaleOutcome, FakeServer, AutoscalerWriter) {
    let (attempt, server, writer) = attempted(answers).await;
    (attempt.written.unwrap().outcome, server, writer)
}

async fn attempted(answers: [FakeResponse; 2]) -> (Attempt, FakeServer, AutoscalerWriter) {
    let shared = storm_pods();
    autoscalers(
        &shared,
        &[("a", "StormService", "pd", Some("decode"), None)],
    );
    publish_service(&shared, &service(&json!({})));
    let record = Arc::new(decide(&shared, "a"));
    assert_eq!(record.decision().unwrap().desired, Replicas(4));
    let epoch = Epoch::for_test(Role::PodAutoscaler(record.key.clone()), 1);
    let board = &shared.writers.pod_autoscalers;
    board.put(&epoch, Arc::clone(&record)).unwrap();
    let kinds = json!({"kind": "APIResourceList", "groupVersion": VERSION, "resources": [{
        "name": "stormservices", "kind": "StormService", "namespaced": true, "singularName": "", "verbs": ["get"],
    }]});
    let server = FakeServer::new([FakeResponse::Json(200, kinds)]);
    for answer in answers {
        server.then(answer);
    }
    let writer = writer(&shared, &server);
    let attempt = writer
        .carrier
        .attempt(shared.clock.now(), &record.key, None)
        .await;
    (attempt, server, writer)
}

fn bodies(server: &FakeServer) -> Vec<(String, Value)> {
    let asked = server.asked().into_iter();
    let written = asked.filter(|asked| asked.method != "GET");
    written.map(|asked| (asked.path, asked.body)).collect()
}

const OBJECT: &str = "/apis/orchestration.aibrix.ai/v1alpha1/namespaces/ns/stormservices/pd";

#[tokio::test]
async fn a_role_is_written_where_it_was_read_and_read_again() {
    let status = json!({"apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler", "metadata": {"name": "a"}});
    let answers = [service(&json!({})), status].map(|object| FakeResponse::Json(200, object));
    let (outcome, server, writer) = carried_out(answers).await;
    assert_eq!(outcome, ScaleOutcome::Written);
    let written = bodies(&server);
    let role = "/spec/template/spec/roles/1";
    let patch = json!([
        {"op": "test", "path": format!("{role}/name"), "value": "decode"},
        {"op": "test", "path": format!("{role}/replicas"), "value": 2},
        {"op": "replace", "path": format!("{role}/replicas"), "value": 4},
    ]);
    assert_eq!(written[0], (OBJECT.to_owned(), patch));
    assert!(written[1].0.ends_with("/podautoscalers/a/status"));
    assert_eq!(written[1].1["status"]["desiredScale"], 4);
    let kind = TargetKind::of(&"orchestration.aibrix.ai".into(), &"StormService".into());
    let target = TargetKey::new("ns", kind, "pd");
    assert_eq!(writer.carrier.connections.named.drain(), [target].into());
}

#[tokio::test]
async fn a_role_that_has_changed_is_left_as_it_is() {
    let roles = json!([{"name": "prefill", "replicas": 3}, {"name": "decode", "replicas": 6}]);
    let changed = service(&json!({"template": {"spec": {"roles": roles}}}));
    let failed = refusal(422, "Invalid", "the server rejected our request");
    let answers = [failed, FakeResponse::Json(200, changed)];
    let (outcome, server, writer) = carried_out(answers).await;
    assert_eq!(outcome, ScaleOutcome::NotWritten);
    let written: Vec<String> = bodies(&server).into_iter().map(|(path, _)| path).collect();
    assert_eq!(written, [OBJECT]);
    assert_eq!(writer.carrier.connections.named.drain().len(), 1);
}

#[tokio::test]
async fn a_decision_that_was_not_carried_out_is_not_taken_for_done() {
    for (code, is_done) in [(409, false), (403, true)] {
        let failed = || refusal(code, "Refused", "the server rejected our request");
        let (attempt, _server, mut writer) = attempted([failed(), failed()]).await;
        let key = attempt.written.as_ref().unwrap().record.key.clone();
        assert_eq!(attempt.is_open, !is_done, "{code}: {attempt:?}");
        assert!(writer.done.is_empty());
        let entry = RetryEntry {
            failures: 0,
            not_before: None,
        };
        let now = writer.carrier.shared.clock.now();
        writer.settle(now, attempt, key, entry);
        assert_eq!(writer.done.len(), usize::from(is_done), "{code}");
        assert_eq!(writer.queue.len(), 1, "{code}");
    }
}

/// The next tick adds the object again, which is no reason to try sooner.
#[tokio::test]
async fn an_object_is_left_alone_for_as_long_as_the_server_asks() {
    let (attempt, _server, mut writer) = attempted([throttled(30), throttled(30)]).await;
    let key = attempt.written.as_ref().unwrap().record.key.clone();
    assert!(attempt.is_open && attempt.failure.is_some(), "{attempt:?}");
    let entry = RetryEntry {
        failures: 0,
        not_before: None,
    };
    let now = writer.carrier.shared.clock.now();
    assert_eq!(writer.spared_entry(&key, entry, now), None);
    writer.settle(now, attempt, key.clone(), entry);
    let at = |seconds| now.later(Duration::from_secs(seconds));
    for (other, seconds, until) in [
        (false, 0, Some(30)),
        (false, 29, Some(30)),
        (true, 0, None),
        (false, 30, None),
        // Once is enough.
        (false, 0, None),
    ] {
        let named = if other {
            ObjectKey::new("ns", "other")
        } else {
            key.clone()
        };
        let spared = writer.spared_entry(&named, entry, at(seconds));
        let found = spared.and_then(|entry| entry.not_before);
        assert_eq!(found, until.map(at), "{seconds}");
    }
}

#[test]
fn a_key_waits_for_its_attempt_once() {
    let entry = |failures| RetryEntry {
        failures,
        not_before: None,
    };
    let [a, b] = ["a", "b"].map(|name| ObjectKey::new("ns", name));
    let mut due = VecDeque::from([(a.clone(), entry(2))]);
    queue_up(&mut due, vec![(b.clone(), entry(1)), (a.clone(), entry(0))]);
    assert_eq!(due, [(a, entry(0)), (b, entry(1))]);
}
