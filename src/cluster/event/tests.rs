use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    EventApi, EventError, EventNotice, EventReason, EventType, Occurrence, Posted, Regarding,
    publish,
};
use crate::cluster::fake::{FakeResponse, FakeServer, refusal};
use crate::cluster::permit::WritePermit;
use wva_base::moment::WallTime;

const NOW: WallTime = WallTime(1_700_000_000_250);

fn api(server: &FakeServer) -> EventApi {
    EventApi {
        client: server.client(),
        controller: Arc::from("llmd.ai/workload-variant-autoscaler"),
        instance: Arc::from("wva-0"),
        timeout: Duration::from_secs(5),
    }
}

fn permit() -> WritePermit {
    WritePermit::new(1, Instant::now() + Duration::from_mins(1))
}

fn notice(namespace: &str, note: &str) -> EventNotice {
    EventNotice {
        regarding: Regarding {
            api_version: Arc::from("v1"),
            kind: Arc::from("ConfigMap"),
            namespace: Arc::from(namespace),
            name: Arc::from("settings"),
            uid: Arc::from("u-1"),
        },
        severity: EventType::Warning,
        reason: EventReason::ImmutableConfigChangeRejected,
        action: "Reload",
        note: note.to_owned(),
        cycle: None,
    }
}

fn stored() -> FakeResponse {
    FakeResponse::Json(201, json!({"metadata": {"name": "x", "namespace": "a"}, "eventTime": null}))
}

/// Publishes a notice once, over an event that was stored earlier.
async fn send(
    server: &FakeServer,
    notice: &EventNotice,
    earlier: Option<&Posted>,
) -> Result<Posted, EventError> {
    let occurrence = Occurrence::once(notice.clone(), NOW);
    publish(permit(), &api(server), &occurrence, earlier).await
}

async fn post(server: &FakeServer, notice: &EventNotice) -> Posted {
    send(server, notice, None).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_event_says_who_what_when_and_why() {
    let server = FakeServer::new([stored()]);
    let posted = post(&server, &notice("a", "no")).await;
    assert_eq!(posted.count, 1);
    let asked = &server.asked()[0];
    assert_eq!(asked.method, "POST");
    assert_eq!(asked.path, "/apis/events.k8s.io/v1/namespaces/a/events");
    let body = &asked.body;
    for (field, value) in [
        ("/type", "Warning"),
        ("/reason", "ImmutableConfigChangeRejected"),
        ("/action", "Reload"),
        ("/note", "no"),
        ("/eventTime", "2023-11-14T22:13:20.250000Z"),
        ("/reportingController", "llmd.ai/workload-variant-autoscaler"),
        ("/reportingInstance", "wva-0"),
        ("/regarding/kind", "ConfigMap"),
        ("/regarding/namespace", "a"),
        ("/regarding/name", "settings"),
        ("/regarding/uid", "u-1"),
    ] {
        assert_eq!(body.pointer(field).and_then(Value::as_str), Some(value), "{field}");
    }
    assert!(body.pointer("/series").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_repetition_counts_up_and_one_that_was_forgotten_is_stored_anew() {
    let server = FakeServer::new([stored(), stored(), stored()]);
    let notice = notice("a", "no");
    let mut posted = post(&server, &notice).await;
    for count in [2, 3] {
        posted = send(&server, &notice, Some(&posted)).await.unwrap();
        assert_eq!(posted.count, count);
        let asked = server.asked().pop().unwrap();
        assert_eq!(asked.method, "PATCH");
        assert_eq!(asked.content_type, "application/merge-patch+json");
        let series = json!({"count": count, "lastObservedTime": "2023-11-14T22:13:20.250000Z"});
        assert_eq!(asked.body, json!({ "series": series }));
    }
    server.then(refusal(404, "NotFound", "expired"));
    server.then(stored());
    let posted = send(&server, &notice, Some(&posted)).await.unwrap();
    assert_eq!(posted.count, 1);
    assert_eq!(server.asked().last().unwrap().method, "POST");
}

#[tokio::test(start_paused = true)]
async fn the_same_notice_at_the_same_time_has_the_same_name() {
    let server = FakeServer::new([stored(), refusal(409, "AlreadyExists", "again"), stored()]);
    let (first, again, other) = (
        post(&server, &notice("a", "no")).await,
        post(&server, &notice("a", "no")).await,
        post(&server, &notice("a", "yes")).await,
    );
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[tokio::test(start_paused = true)]
async fn an_event_about_the_cluster_lives_in_the_default_namespace() {
    let server = FakeServer::new([stored()]);
    post(&server, &notice("", "no")).await;
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/apis/events.k8s.io/v1/namespaces/default/events");
    assert!(asked.body.pointer("/regarding/namespace").is_none());
}

#[tokio::test(start_paused = true)]
async fn texts_keep_to_the_limits_of_the_api() {
    let server = FakeServer::new([stored()]);
    let mut long = notice("a", &"ü".repeat(5_000));
    long.regarding.name = Arc::from(format!("{}-x", "n".repeat(199)));
    let api = EventApi { instance: Arc::from("p".repeat(500)), ..api(&server) };
    publish(permit(), &api, &Occurrence::once(long.clone(), NOW), None).await.unwrap();
    let body = &server.asked()[0].body;
    let length = |field: &str| body.pointer(field).and_then(Value::as_str).unwrap().len();
    assert!(length("/note") <= 1024);
    assert_eq!(length("/reportingInstance"), 128);
    assert_eq!(length("/metadata/name"), 199 + 1 + 16);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_without_a_permit_that_outlives_the_request() {
    let server = FakeServer::default();
    let permit = WritePermit::new(1, Instant::now() + Duration::from_secs(4));
    let occurrence = Occurrence::once(notice("a", "no"), NOW);
    let error = publish(permit, &api(&server), &occurrence, None).await;
    assert!(matches!(error, Err(EventError::Expired)), "{error:?}");
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn refusals_differ_from_passing_troubles() {
    for (answer, passing) in [
        (refusal(403, "Forbidden", "namespace is being terminated"), false),
        (refusal(422, "Invalid", "no"), false),
        (refusal(429, "TooManyRequests", "later"), true),
        (refusal(500, "InternalError", "no"), true),
        (FakeResponse::Break, true),
        (FakeResponse::Hang, true),
    ] {
        let server = FakeServer::new([answer]);
        let error = send(&server, &notice("a", "no"), None).await;
        match error.unwrap_err() {
            EventError::Retry(error) => assert!(passing, "{error}"),
            error => assert!(!passing && matches!(error, EventError::Refused(_)), "{error}"),
        }
    }
}
