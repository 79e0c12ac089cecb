//! From the reading of a role to the patch of it.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};

use super::*;
use crate::actors::mailboxes::Mailboxes;
use crate::actors::pod_autoscaler::tests::{
    autoscalers, decide, publish_service, service, storm_pods,
};
use crate::api::pod_autoscaler::PodAutoscaler;
use crate::cluster::fake::{FakeResponse, FakeServer, refusal, scale, served, throttled};
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict};
use crate::policy::pod_autoscaler::status::ScaleOutcome;
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::mirrors::tests::list;
use crate::state::permission_reporter::PermissionReporter;
use wva_supervise::{Epoch, SeedTree};

const VERSION: &str = "orchestration.aibrix.ai/v1alpha1";

fn writer(shared: &SharedState, server: &FakeServer) -> AutoscalerWriter {
    let mailboxes = Mailboxes::new(&shared.series);
    let permissions = PermissionReporter::for_test(shared.clock.clone(), mailboxes.events.clone());
    let api = server.writes("wva", 1);
    let context = WriterContext {
        shared: shared.readers.clone(),
        requests: Arc::clone(&shared.writers.autoscaler_writer),
        mailboxes: Arc::new(mailboxes),
        permissions,
        api,
    };
    AutoscalerWriter::new(context, SeedTree::new(1).child("writer"))
}

/// Decides on `decode`, which has two replicas and a minimum of four, and carries that out against a server that holds
/// this object; the outcome, and the requests.
async fn carried_out(answers: [FakeResponse; 2]) -> (ScaleOutcome, FakeServer, AutoscalerWriter) {
    let (attempt, server, writer) = attempted(answers).await;
    (attempt.written.unwrap().outcome, server, writer)
}

async fn attempted(answers: [FakeResponse; 2]) -> (Attempt, FakeServer, AutoscalerWriter) {
    let shared = storm_pods();
    autoscalers(&shared, &[("a", "StormService", "pd", Some("decode"), None)]);
    publish_service(&shared, &service(&json!({})));
    let record = Arc::new(decide(&shared, "a"));
    assert_eq!(record.decision().unwrap().desired, Replicas(4));
    let epoch = Epoch::for_test(Role::PodAutoscaler(record.key.clone()), 1);
    let board = &shared.writers.pod_autoscalers;
    board.put(&epoch, Arc::clone(&record)).unwrap();
    let server = FakeServer::new([served(VERSION, &[("stormservices", "StormService")])]);
    for answer in answers {
        server.then(answer);
    }
    let writer = writer(&shared, &server);
    let attempt = writer.carrier.attempt(shared.clock.now(), &record.key, None).await;
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
    assert_eq!(writer.carrier.mailboxes.named.drain(), [target].into());
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
    assert_eq!(writer.carrier.mailboxes.named.drain().len(), 1);
}

#[tokio::test]
async fn a_decision_that_was_not_carried_out_is_not_taken_for_done() {
    for (code, is_done) in [(409, false), (403, true)] {
        let failed = || refusal(code, "Refused", "the server rejected our request");
        let (attempt, _server, mut writer) = attempted([failed(), failed()]).await;
        let key = attempt.written.as_ref().unwrap().record.key.clone();
        assert_eq!(attempt.is_open, !is_done, "{code}: {attempt:?}");
        assert!(writer.done.is_empty());
        let entry = RetryEntry { failures: 0, not_before: None };
        let now = writer.carrier.shared.clock.now();
        writer.settle(now, attempt, key, entry);
        assert_eq!(writer.done.len(), usize::from(is_done), "{code}");
        assert_eq!(writer.carrier.mailboxes.autoscaler_writes.waiting().len(), 1, "{code}");
    }
}

/// The definition of an older version drops a field of the status.
#[tokio::test]
async fn a_status_that_the_server_keeps_in_part_is_written_once() {
    let (shared, record) = delegated(false);
    let hpa = record.decision().unwrap().hpa.as_ref().unwrap().manifest();
    let mirror = &shared.writers.mirrors.horizontal_pod_autoscalers;
    list::<HorizontalPodAutoscaler>(mirror, [hpa]);
    let kept = json!({"desiredScale": 7});
    let hold = |status: Value| {
        let mut object = delegated_object();
        object["status"] = status;
        let mirror = &shared.writers.mirrors.pod_autoscalers;
        list::<PodAutoscaler>(mirror, [object]);
    };
    let answer = || {
        let object = json!({
            "apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler", "metadata": {"name": "a"},
            "status": kept,
        });
        FakeResponse::Json(200, object)
    };
    let server = FakeServer::new([answer(), answer()]);
    let writer = writer(&shared, &server);
    let attempt = async |before: Option<WrittenRecord>| {
        let now = shared.clock.now();
        let attempt = writer.carrier.attempt(now, &record.key, before).await;
        (attempt.written, server.asked().len())
    };
    let (first, sent) = attempt(None).await;
    assert_eq!(sent, 1);
    hold(kept.clone());
    // Its parts that were dropped are missing still.
    let (second, sent) = attempt(first).await;
    assert_eq!(sent, 1);
    // Another hand has changed it.
    hold(json!({"desiredScale": 8}));
    let (_, sent) = attempt(second).await;
    assert_eq!(sent, 2);
}

fn delegated_object() -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": "a", "uid": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "minReplicas": 4, "maxReplicas": 10, "scalingStrategy": "HPA",
            "metricsSources": [{"metricSourceType": "resource", "targetMetric": "cpu", "targetValue": "50"}],
        },
    })
}

/// An object of strategy HPA with a target at zero that load put to sleep, or another hand; its record.
fn delegated(asleep: bool) -> (SharedState, Arc<AutoscalerRecord>) {
    let shared = storm_pods();
    let mirror = &shared.writers.mirrors.pod_autoscalers;
    list::<PodAutoscaler>(mirror, [delegated_object()]);
    let mut record = decide(&shared, "a");
    record.state.asleep = asleep;
    let epoch = Epoch::for_test(Role::PodAutoscaler(record.key.clone()), 1);
    let board = &shared.writers.pod_autoscalers;
    board.put(&epoch, Arc::new(record)).unwrap();
    let record = Arc::new(decide(&shared, "a"));
    board.put(&epoch, Arc::clone(&record)).unwrap();
    (shared, record)
}

/// What is sent to carry a record out that has a generated object.
async fn requests(
    shared: &SharedState,
    record: &AutoscalerRecord,
    answers: Vec<FakeResponse>,
) -> Vec<String> {
    let (outcome, sent) = sent(shared, record, answers).await;
    assert!(matches!(outcome, ScaleOutcome::HpaApplied(_)), "{outcome:?}");
    sent
}

/// What becomes of a record, and what is sent to carry it out.
async fn sent(
    shared: &SharedState,
    record: &AutoscalerRecord,
    answers: Vec<FakeResponse>,
) -> (ScaleOutcome, Vec<String>) {
    let server = FakeServer::new(answers);
    let now = shared.clock.now();
    let writer = writer(shared, &server);
    let attempt = writer.carrier.attempt(now, &record.key, None).await;
    let outcome = attempt.written.unwrap().outcome;
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let asked = server.asked().into_iter();
    let asked = asked.map(|asked| {
        let is_forced = asked.query.contains("force=true");
        let forced = if is_forced { " by force" } else { "" };
        format!("{} {}{forced}", asked.method, last(&asked.path))
    });
    (outcome, asked.collect())
}

#[tokio::test]
async fn a_generated_object_is_read_off_the_mirror_and_a_sleeping_target_wakes_after_it() {
    let ok = |object: Value| FakeResponse::Json(200, object);
    let status = || {
        ok(
            json!({"apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler", "metadata": {"name": "a"}}),
        )
    };
    let (shared, record) = delegated(false);
    let hpa = record.decision().unwrap().hpa.as_ref().unwrap().manifest();
    let absent = || refusal(404, "NotFound", "not found");
    let sent = requests(&shared, &record, vec![absent(), ok(hpa.clone()), status()]).await;
    assert_eq!(sent, ["GET a-hpa", "PATCH a-hpa", "PUT status"]);
    let mirror = &shared.writers.mirrors.horizontal_pod_autoscalers;
    list::<HorizontalPodAutoscaler>(mirror, [hpa.clone()]);
    let sent = requests(&shared, &record, vec![status()]).await;
    assert_eq!(sent, ["PUT status"]);
    // Another hand changed it.
    let mut changed = hpa.clone();
    changed["spec"]["maxReplicas"] = json!(99);
    list::<HorizontalPodAutoscaler>(mirror, [changed.clone()]);
    let sent = requests(&shared, &record, vec![ok(changed), ok(hpa.clone()), status()]).await;
    assert_eq!(sent, ["GET a-hpa", "PATCH a-hpa by force", "PUT status"]);

    let (shared, record) = delegated(true);
    assert_eq!(record.decision().unwrap().desired, Replicas(4));
    let deployments = ("deployments", "Deployment");
    let kinds = served("apps/v1", &[deployments, ("deployments/scale", "Scale")]);
    let scale = || scale("d", [0; 2]);
    let answers = vec![absent(), ok(hpa), kinds, scale(), scale(), status()];
    let sent = requests(&shared, &record, answers).await;
    assert_eq!(
        sent,
        ["GET a-hpa", "PATCH a-hpa", "GET v1", "GET scale", "PUT scale", "PUT status"]
    );
}

#[tokio::test]
async fn a_generated_object_goes_with_its_strategy_while_the_target_is_not_seen() {
    let answer =
        |kind: &str| FakeResponse::Json(200, json!({"kind": kind, "metadata": {"name": "a"}}));
    let (shared, record) = delegated(false);
    let hpa = record.decision().unwrap().hpa.as_ref().unwrap().manifest();
    let mirrors = &shared.writers.mirrors;
    list::<HorizontalPodAutoscaler>(&mirrors.horizontal_pod_autoscalers, [hpa]);
    let kept = requests(&shared, &record, vec![answer("PodAutoscaler")]).await;
    assert_eq!(kept, ["PUT status"]);
    let epoch = Epoch::for_test(Role::PodAutoscaler(record.key.clone()), 1);
    for strategy in ["KPA", "APA"] {
        let mut object = delegated_object();
        object["spec"]["scalingStrategy"] = json!(strategy);
        list::<PodAutoscaler>(&mirrors.pod_autoscalers, [object]);
        let record = Arc::new(decide(&shared, "a"));
        assert!(
            matches!(&record.verdict, AutoscalerVerdict::Unseen { why } if why.contains("does not exist")),
            "{:?}",
            record.verdict
        );
        let board = &shared.writers.pod_autoscalers;
        board.put(&epoch, Arc::clone(&record)).unwrap();
        let answers = ["Status", "PodAutoscaler"].map(answer);
        let (outcome, sent) = sent(&shared, &record, answers.into()).await;
        assert_eq!(outcome, ScaleOutcome::NotWritten);
        assert_eq!(sent, ["DELETE a-hpa", "PUT status"], "{strategy}");
    }
}

/// The next tick adds the object again, which is no reason to try sooner.
#[tokio::test]
async fn an_object_is_left_alone_for_as_long_as_the_server_asks() {
    let (attempt, _server, mut writer) = attempted([throttled(30), throttled(30)]).await;
    let key = attempt.written.as_ref().unwrap().record.key.clone();
    assert!(attempt.is_open && attempt.failure.is_some(), "{attempt:?}");
    let entry = RetryEntry { failures: 0, not_before: None };
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
        let named = if other { ObjectKey::new("ns", "other") } else { key.clone() };
        let spared = writer.spared_entry(&named, entry, at(seconds));
        let found = spared.and_then(|entry| entry.not_before);
        assert_eq!(found, until.map(at), "{seconds}");
    }
}

#[test]
fn a_key_waits_for_its_attempt_once() {
    let entry = |failures| RetryEntry { failures, not_before: None };
    let [a, b] = ["a", "b"].map(|name| ObjectKey::new("ns", name));
    let mut due = VecDeque::from([(a.clone(), entry(2))]);
    queue_up(&mut due, vec![(b.clone(), entry(1)), (a.clone(), entry(0))]);
    assert_eq!(due, [(a, entry(0)), (b, entry(1))]);
}
