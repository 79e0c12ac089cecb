//! What was decided under an earlier claim is not stored under this one.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::{StatusWriter, WriteOutcome};
use crate::actors::WriterContext;
use crate::actors::emitter::tests::{claim, key, leading, plan, view};
use crate::actors::mailboxes::Mailboxes;
use crate::actors::pump;
use crate::actors::variants::tests::run;
use crate::api::scaled_object::ScaledObject;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::fake::{FakeResponse, FakeServer, refusal, throttled};
use crate::cluster::status::StatusError;
use crate::policy::condition::Hints;
use crate::policy::ownership::Ownership;
use crate::policy::plan::Plan;
use crate::policy::record::{PublishedRecord, Troubles};
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::events::Events;
use crate::state::mirrors::tests::{count_writer, list};
use crate::state::permission_reporter::PermissionReporter;
use crate::state::records::RecordTable;
use wva_supervise::{Epoch, SeedTree};

/// Lets the writer store what is decided, and expects an outcome.
macro_rules! outcome {
    ($writer:ident, $now:ident, $expected:pat) => {{
        let outcome = $writer.write($now, &key()).await;
        assert!(matches!(outcome, $expected), "{outcome:?}");
    }};
}

fn writer(shared: &SharedState, server: &FakeServer) -> StatusWriter {
    with(shared, server, &Arc::new(Mailboxes::new(&shared.series)))
}

fn with(shared: &SharedState, server: &FakeServer, mailboxes: &Arc<Mailboxes>) -> StatusWriter {
    let context = WriterContext {
        shared: shared.readers.clone(),
        requests: Arc::clone(&shared.writers.status_writer),
        mailboxes: Arc::clone(mailboxes),
        permissions: PermissionReporter::for_test(shared.clock.clone(), Events::for_test()),
        api: server.writes("wva-me", 1),
    };
    StatusWriter::new(context, SeedTree::new(1).child("status-writer"))
}

fn enter(shared: &SharedState, term: u64) {
    let emitter = Epoch::for_test(Role::Emitter, 1);
    let records = &shared.writers.emitter.records;
    records.update(&emitter, |table| table.term = term).unwrap();
}

/// The variant is published in this term.
fn publish(shared: &SharedState, term: u64) {
    publish_plan(shared, term, None);
}

fn publish_plan(shared: &SharedState, term: u64, plan: Option<&Plan>) {
    let emitter = Epoch::for_test(Role::Emitter, 1);
    let troubles =
        Troubles { quarantine: None, hints: Hints::default(), standing: Ownership::Alone };
    let record = PublishedRecord::of(&view(1), plan, None, troubles, shared.clock.now());
    enter(shared, term);
    let records = &shared.writers.emitter.records;
    let put = |records: &mut RecordTable| records.put(Arc::new(record));
    records.update(&emitter, put).unwrap();
}

fn accepted() -> FakeResponse {
    let metadata = json!({"namespace": "ns", "name": "v", "uid": "u", "resourceVersion": "2"});
    FakeResponse::Json(
        200,
        json!({
            "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "metadata": metadata,
        }),
    )
}

/// The claim was lost and won again: in between another process led, and stored eight. The emitter has yet
/// to see that its record is of the term before.
#[tokio::test(start_paused = true)]
async fn a_record_of_an_earlier_term_is_not_stored() {
    let shared = leading(8);
    let now = shared.clock.now();
    publish(&shared, 1);
    let records = &shared.records;
    assert_eq!(records.desired(&key()), Some(Replicas(3)));

    let server = FakeServer::default();
    let writer = writer(&shared, &server);
    claim(&shared, 3);
    outcome!(writer, now, WriteOutcome::NoClaim);
    assert!(server.asked().is_empty());

    enter(&shared, 3);
    server.then(accepted());
    outcome!(writer, now, WriteOutcome::Written(_, Some(Replicas(3))));
    assert_eq!(server.asked().len(), 1);
}

/// An annotated HPA with a count, in a version.
fn stored(count: &str, version: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "ns", "name": "v", "uid": "u", "resourceVersion": version,
            "managedFields": count_writer(),
            "annotations": {
                "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m", "llm-d.ai/desired-replicas": count,
            },
        },
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "v"}, "maxReplicas": 9},
    })
}

/// It is in the mirror, alone.
fn hold(shared: &SharedState, scaler: Value) {
    let mirrors = &shared.writers.mirrors;
    list::<VariantAutoscaling>(&mirrors.variants, []);
    list::<HorizontalPodAutoscaler>(&mirrors.horizontal_pod_autoscalers, [scaler]);
}

/// The count of a variant that a scaler declares is an annotation of the scaler, which is written once it differs.
#[tokio::test(start_paused = true)]
async fn a_count_is_stored_on_the_scaler_that_declares_the_variant() {
    let shared = leading(8);
    let store = |object| hold(&shared, object);
    store(stored("3", "6"));
    let decided = plan(&shared, 1, 1).plan;
    store(stored("8", "7"));
    publish(&shared, 1);
    let server = FakeServer::default();
    let writer = writer(&shared, &server);
    let now = shared.clock.now();
    // Nothing is decided.
    outcome!(writer, now, WriteOutcome::Nothing(_));
    publish_plan(&shared, 1, Some(&decided));

    server.then(FakeResponse::Json(200, stored("3", "8")));
    outcome!(writer, now, WriteOutcome::Written(_, Some(Replicas(3))));
    let asked = server.asked();
    let path = "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers/v";
    assert_eq!((&*asked[0].method, &*asked[0].path), ("PATCH", path));
    assert!(asked[0].query.contains("fieldManager=wva-me"));
    assert!(!asked[0].query.contains("force"), "{}", asked[0].query);
    let metadata = &asked[0].body["metadata"];
    assert_eq!(metadata["annotations"], json!({"llm-d.ai/desired-replicas": "3"}));
    assert_eq!((&metadata["uid"], &metadata["resourceVersion"]), (&json!("u"), &json!("7")));

    store(stored("3", "8"));
    outcome!(writer, now, WriteOutcome::Nothing(_));

    // Another object of this name holds a count of its own.
    let mut other = stored("20", "9");
    other["metadata"]["uid"] = json!("other");
    store(other);
    outcome!(writer, now, WriteOutcome::Nothing(Some(Replicas(20))));

    // A person has written it, and then another controller.
    store(stored("5", "9"));
    let conflict = |manager: &str| {
        let message = format!("conflict with {manager:?} using autoscaling/v2");
        let cause = json!({"reason": "FieldManagerConflict", "message": message, "field": "."});
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 409,
            "reason": "Conflict", "message": "conflict", "details": {"causes": [cause]},
        });
        FakeResponse::Json(409, status)
    };
    server.then(conflict("kubectl-annotate"));
    server.then(FakeResponse::Json(200, stored("3", "10")));
    outcome!(writer, now, WriteOutcome::Written(..));
    assert!(server.asked()[2].query.contains("force=true"));
    server.then(conflict("wva-other"));
    outcome!(writer, now, WriteOutcome::Failed(StatusError::Conflict { .. }));
}

/// An object that declared a variant, and begins anew should it declare one again.
#[tokio::test(start_paused = true)]
async fn a_count_is_taken_from_a_scaler_that_declares_no_variant_any_more() {
    let shared = leading(3);
    enter(&shared, 1);
    let server = FakeServer::default();
    let writer = writer(&shared, &server);
    let now = shared.clock.now();
    let mut scaler = stored("3", "6");
    hold(&shared, scaler.clone());
    outcome!(writer, now, WriteOutcome::Absent);

    let annotations = scaler["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove("llm-d.ai/managed");
    let mut foreign = scaler.clone();
    foreign["metadata"]["managedFields"][0]["manager"] = json!("wva-other");
    hold(&shared, foreign);
    writer.full_pass();
    assert!(writer.mailboxes.statuses.waiting().is_empty());
    outcome!(writer, now, WriteOutcome::Absent);
    assert!(server.asked().is_empty());

    hold(&shared, scaler.clone());
    writer.full_pass();
    assert_eq!(writer.mailboxes.statuses.waiting().len(), 1, "the next leader goes on");
    server.then(refusal(403, "Forbidden", "no"));
    server.then(FakeResponse::Json(200, stored("3", "7")));
    outcome!(writer, now, WriteOutcome::Failed(StatusError::Forbidden { .. }));
    outcome!(writer, now, WriteOutcome::Absent);
    let metadata = &server.asked()[1].body["metadata"];
    let expected = json!({
        "namespace": "ns", "name": "v", "uid": "u", "resourceVersion": "6", "annotations": {},
    });
    assert_eq!(*metadata, expected);

    // A scaler of another kind with this name holds one, too.
    list::<ScaledObject>(&shared.writers.mirrors.scaled_objects, [scaler]);
    for version in ["8", "9"] {
        server.then(FakeResponse::Json(200, stored("3", version)));
    }
    outcome!(writer, now, WriteOutcome::Absent);
    let asked = server.asked();
    let paths: Vec<_> = asked[2..].iter().map(|one| &*one.path).collect();
    let of = |kind: &str| format!("/apis/{kind}/v");
    assert_eq!(
        paths,
        [
            of("autoscaling/v2/namespaces/ns/horizontalpodautoscalers"),
            of("keda.sh/v1alpha1/namespaces/ns/scaledobjects"),
        ]
    );
}

/// The writer at work on one status whose first write is answered like this; how many requests there were just before
/// and just after each of these seconds. Half a second in, there is something new to store.
async fn requests(answer: FakeResponse, seconds: &[u64]) -> Vec<(usize, usize)> {
    let shared = leading(8);
    publish(&shared, 1);
    let server = FakeServer::new([answer, accepted(), accepted()]);
    let mailboxes = Arc::new(Mailboxes::new(&shared.series));
    let writer = with(&shared, &server, &mailboxes);
    let address = &mailboxes.addresses.status_writer;
    let task = run(&shared, pump(Role::StatusWriter, address, writer));
    let began = Instant::now();
    let at = |milliseconds| sleep_until(began + Duration::from_millis(milliseconds));
    server.is_asked(1).await;
    at(500).await;
    mailboxes.statuses.add(key());
    let mut counts = Vec::new();
    for second in seconds {
        at(second * 1_000 - 5).await;
        let before = server.asked().len();
        at(second * 1_000 + 5).await;
        counts.push((before, server.asked().len()));
    }
    task.abort();
    counts
}

/// What is decided meanwhile is no reason to send more to a server that has too much.
#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_is_sent_nothing_for_so_long() {
    let failed = refusal(500, "InternalError", "no");
    assert_eq!(requests(failed, &[1, 10]).await, [(2, 2), (2, 2)]);
    assert_eq!(requests(throttled(10), &[1, 10]).await, [(1, 1), (1, 2)]);
    assert_eq!(requests(throttled(300), &[29, 30]).await, [(1, 1), (1, 2)]);
}
