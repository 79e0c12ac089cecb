use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::{Guarded, ServedVersion, Watch, WatchEvent, WatchOptions};
use crate::cluster::fake::{FakeResponse, FakeServer, refusal, throttled};

fn watch(server: &FakeServer) -> Watch<ConfigMap> {
    let api: Api<Guarded<ConfigMap>> = Api::all(server.client());
    Watch::new(api, WatchOptions::default(), |delay| delay)
}

fn item(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "a", "name": name, "resourceVersion": version},
        "data": {},
    })
}

fn page(items: &[Value], version: &str, token: &str) -> FakeResponse {
    FakeResponse::Json(
        200,
        json!({
            "apiVersion": "v1", "kind": "ConfigMapList",
            "metadata": {"resourceVersion": version, "continue": token},
            "items": items,
        }),
    )
}

fn line(kind: &str, object: &Value) -> String {
    json!({"type": kind, "object": object}).to_string()
}

fn bookmark(version: &str) -> String {
    let metadata = json!({"resourceVersion": version});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    line("BOOKMARK", &object)
}

/// A watch whose lines the test sends.
fn stream() -> (mpsc::UnboundedSender<String>, FakeResponse) {
    let (lines, body) = mpsc::unbounded_channel();
    (lines, FakeResponse::Lines(body))
}

/// The event in one line, with what the tests look at.
fn text(event: &WatchEvent<ConfigMap>) -> String {
    let name = |object: &ConfigMap| object.metadata.name.clone().unwrap_or_default();
    match event {
        WatchEvent::Restarted => "restarted".to_owned(),
        WatchEvent::Listed(object) => format!("listed {}", name(object)),
        WatchEvent::ListDone => "list done".to_owned(),
        WatchEvent::Applied(object) => format!("applied {}", name(object)),
        WatchEvent::Deleted(key) => format!("deleted {key}"),
        WatchEvent::Malformed(malformed) => format!("malformed {}", malformed.key()),
        WatchEvent::Alive => "alive".to_owned(),
        WatchEvent::Absent { retry_in } => format!("absent, {retry_in:?}"),
        WatchEvent::Failed { error, retry_in } => {
            let text = error.to_string();
            let brief = text.split([',', '(']).next().unwrap_or_default();
            format!("failed, {retry_in:?}: {brief}")
        }
    }
}

/// The next events, with a deadline in virtual time.
async fn next(watch: &mut Watch<ConfigMap>, count: usize) -> Vec<String> {
    let mut events = Vec::new();
    for _ in 0..count {
        let event = timeout(Duration::from_hours(1), watch.next()).await;
        events.push(text(&event.expect("no event within an hour")));
    }
    events
}

/// Lists `one` at version 7 and opens a watch.
async fn opened(server: &FakeServer, notices: FakeResponse) -> Watch<ConfigMap> {
    server.then(page(&[item("one", "5")], "7", ""));
    server.then(notices);
    let mut watch = watch(server);
    assert_eq!(next(&mut watch, 4).await, ["restarted", "listed one", "list done", "alive"]);
    watch
}

#[tokio::test(start_paused = true)]
async fn pages_are_listed_and_changes_follow_from_their_version() {
    let (lines, notices) = stream();
    let server = FakeServer::new([
        page(&[item("one", "5")], "7", "more"),
        page(&[item("two", "6")], "7", ""),
        notices,
    ]);
    let mut watch = watch(&server);
    let listed = next(&mut watch, 5).await;
    assert_eq!(listed, ["restarted", "listed one", "listed two", "list done", "alive"]);

    for notice in [
        line("ADDED", &item("three", "8")),
        line("MODIFIED", &item("one", "9")),
        bookmark("12"),
        line("DELETED", &item("two", "13")),
    ] {
        lines.send(notice).unwrap();
    }
    let changes = next(&mut watch, 4).await;
    assert_eq!(changes, ["applied three", "applied one", "alive", "deleted a/two"]);

    let asked = server.asked();
    assert!(asked[0].query.contains("limit=500"), "{asked:?}");
    assert!(!asked[0].query.contains("resourceVersion"), "{asked:?}");
    assert!(asked[1].query.contains("continue=more"), "{asked:?}");
    for part in
        ["watch=true", "resourceVersion=7", "timeoutSeconds=290", "allowWatchBookmarks=true"]
    {
        assert!(asked[2].query.contains(part), "{part} in {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_grows_while_lists_fail_and_stays_grown_until_the_watch_speaks() {
    let server = FakeServer::new((0..7).map(|_| refusal(500, "InternalError", "no")));
    let mut watch = watch(&server);
    let started = Instant::now();
    let failures = next(&mut watch, 7).await;
    let delays: Vec<_> =
        failures.iter().map(|event| event.split([',', ':']).nth(1).unwrap().trim()).collect();
    assert_eq!(delays, ["800ms", "1.6s", "3.2s", "6.4s", "10s", "10s", "10s"]);
    assert_eq!(started.elapsed(), Duration::from_secs(32));

    // A list that succeeds and a watch that fails at once are no recovery.
    server.then(page(&[], "7", ""));
    server.then(refusal(500, "InternalError", "no"));
    let events = next(&mut watch, 3).await;
    assert_eq!(events[..2], ["restarted", "list done"]);
    assert!(events[2].starts_with("failed, 10s: watch"), "{events:?}");

    // A watch that speaks is.
    let (lines, notices) = stream();
    server.then(page(&[], "7", ""));
    server.then(notices);
    lines.send(bookmark("8")).unwrap();
    assert_eq!(next(&mut watch, 4).await, ["restarted", "list done", "alive", "alive"]);
    drop(lines);
    let event = next(&mut watch, 1).await;
    assert!(event[0].starts_with("failed, 800ms: watch: ended by the other side"), "{event:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_is_left_alone_for_as_long_as_it_asks_but_not_for_long() {
    for (asked, delay) in [(0, "800ms"), (20, "20s"), (3600, "30s")] {
        let server = FakeServer::new([throttled(asked)]);
        let events = next(&mut watch(&server), 1).await;
        let begin = format!("failed, {delay}: ");
        assert!(events[0].starts_with(&begin), "{asked}: {events:?}");
    }
}

/// Pauses are drawn from a fifth around what they are about: from one that a server has asked for no less is left.
#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_be_left_alone_is_not_asked_too_early() {
    for (share, asked, delay) in [
        (0.8, 0, "640ms"),
        (0.8, 20, "24s"),
        (1.0, 20, "20s"),
        (1.1, 20, "22s"),
        (0.9, 3600, "33s"),
    ] {
        let server = FakeServer::new([throttled(asked)]);
        let api: Api<Guarded<ConfigMap>> = Api::all(server.client());
        let jitter = move |delay: Duration| delay.mul_f64(share);
        let mut watch = Watch::new(api, WatchOptions::default(), jitter);
        let events = next(&mut watch, 1).await;
        let begin = format!("failed, {delay}: ");
        assert!(events[0].starts_with(&begin), "{share} {asked}: {events:?}");
    }
}

/// Who wants a fresh list has it at once, whatever failed before, but not against the will of the server.
#[tokio::test(start_paused = true)]
async fn a_fresh_list_waits_for_as_long_as_the_server_has_asked_for() {
    for (failure, waited) in [(refusal(500, "InternalError", "no"), 0), (throttled(7), 7)] {
        let server = FakeServer::new([failure, page(&[], "7", "")]);
        let mut watch = watch(&server);
        next(&mut watch, 1).await;
        let failed = Instant::now();
        watch.begin_anew();
        assert_eq!(next(&mut watch, 1).await, ["restarted"]);
        assert_eq!(failed.elapsed(), Duration::from_secs(waited));
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_brings_a_fresh_list_in_either_form() {
    let expired = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old resource version"});
    let (lines, notices) = stream();
    lines.send(line("ERROR", &expired)).unwrap();
    for answer in [refusal(410, "Expired", "too old resource version"), notices] {
        let server = FakeServer::new([page(&[], "7", ""), answer]);
        let mut watch = watch(&server);
        let mut events = next(&mut watch, 3).await;
        if events[2] == "alive" {
            events.remove(2);
            events.extend(next(&mut watch, 1).await);
        }
        assert_eq!(events[..2], ["restarted", "list done"]);
        assert!(events[2].starts_with("failed, 800ms: watch"), "{events:?}");
        server.then(page(&[item("one", "9")], "9", ""));
        assert_eq!(next(&mut watch, 2).await, ["restarted", "listed one"]);
        assert!(!server.asked().last().unwrap().query.contains("resourceVersion"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_half_way_begins_again() {
    let server = FakeServer::new([
        page(&[item("one", "5")], "7", "more"),
        refusal(410, "Expired", "the continue token is too old"),
        page(&[item("one", "8"), item("two", "9")], "9", ""),
    ]);
    let mut watch = watch(&server);
    let events = next(&mut watch, 7).await;
    assert_eq!(events[..2], ["restarted", "listed one"]);
    assert!(events[2].starts_with("failed, 800ms: list"), "{events:?}");
    assert_eq!(events[3..], ["restarted", "listed one", "listed two", "list done"]);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_object_spoils_neither_the_list_nor_the_watch() {
    let mut bad = item("bad", "6");
    bad["data"] = json!("text");
    let (lines, notices) = stream();
    let server = FakeServer::new([
        page(&[item("one", "5"), bad.clone(), item("two", "7")], "7", ""),
        notices,
    ]);
    let mut watch = watch(&server);
    assert_eq!(
        next(&mut watch, 6).await,
        ["restarted", "listed one", "malformed a/bad", "listed two", "list done", "alive"]
    );
    for (kind, object) in [("MODIFIED", &bad), ("DELETED", &bad), ("ADDED", &item("three", "9"))] {
        lines.send(line(kind, object)).unwrap();
    }
    let events = next(&mut watch, 3).await;
    assert_eq!(events, ["malformed a/bad", "deleted a/bad", "applied three"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_on_time_is_opened_again_from_its_last_version() {
    let (lines, notices) = stream();
    let server = FakeServer::default();
    let mut watch = opened(&server, notices).await;
    lines.send(bookmark("42")).unwrap();
    assert_eq!(next(&mut watch, 1).await, ["alive"]);
    tokio::time::advance(Duration::from_secs(290)).await;
    drop(lines);
    let (_lines, notices) = stream();
    server.then(notices);
    assert_eq!(next(&mut watch, 1).await, ["alive"]);
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[2].query.contains("resourceVersion=42"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_brings_a_fresh_list() {
    for broken in
        [FakeResponse::Break, FakeResponse::Hang, refusal(503, "ServiceUnavailable", "no")]
    {
        let server = FakeServer::new([page(&[], "7", ""), broken]);
        let mut watch = watch(&server);
        let events = next(&mut watch, 3).await;
        assert!(events[2].starts_with("failed, 800ms: watch"), "{events:?}");
        server.then(page(&[], "3", ""));
        assert_eq!(next(&mut watch, 2).await, ["restarted", "list done"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_throttled_or_forbidden_is_asked_for_again_without_a_list() {
    for code in [403, 429] {
        let (_lines, notices) = stream();
        let server = FakeServer::new([page(&[], "7", ""), refusal(code, "", "no"), notices]);
        let mut watch = watch(&server);
        let events = next(&mut watch, 4).await;
        assert!(events[2].starts_with("failed, 800ms: watch"), "{events:?}");
        assert_eq!(events[3], "alive");
        assert!(server.asked()[2].query.contains("resourceVersion=7"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_given_up_shortly_after_the_agreed_end() {
    let (_lines, notices) = stream();
    let server = FakeServer::default();
    let mut watch = opened(&server, notices).await;
    let started = Instant::now();
    let events = next(&mut watch, 1).await;
    assert!(events[0].starts_with("failed, 800ms: watch: silent"), "{events:?}");
    assert_eq!(started.elapsed(), Duration::from_secs(295));
}

#[tokio::test(start_paused = true)]
async fn a_fresh_list_is_made_after_a_while_even_if_all_is_well() {
    let (lines, notices) = stream();
    let server = FakeServer::new([page(&[], "7", ""), notices]);
    let api: Api<Guarded<ConfigMap>> = Api::all(server.client());
    let options = WatchOptions { relist_every: Duration::from_mins(1), ..WatchOptions::default() };
    let mut watch = Watch::new(api, options, |delay| delay);
    assert_eq!(next(&mut watch, 3).await, ["restarted", "list done", "alive"]);
    let started = Instant::now();
    server.then(page(&[item("one", "3")], "3", ""));
    assert_eq!(next(&mut watch, 2).await, ["restarted", "listed one"]);
    assert_eq!(started.elapsed(), Duration::from_mins(1));
    drop(lines);
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_listed_again_until_it_is_served() {
    let missing = || refusal(404, "NotFound", "the server could not find the requested resource");
    let server = FakeServer::new([
        missing(),
        missing(),
        missing(),
        FakeResponse::Break,
        missing(),
        page(&[item("one", "5")], "7", ""),
    ]);
    let mut watch = watch(&server);
    let events = next(&mut watch, 7).await;
    assert_eq!(events[..3], ["absent, 2s", "absent, 4s", "absent, 8s"]);
    assert!(events[3].starts_with("failed, 800ms: list"), "{events:?}");
    assert!(events[4].starts_with("absent, "), "{events:?}");
    assert_eq!(events[5..], ["restarted", "listed one"]);
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.path == "/api/v1/configmaps"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_watched_in_the_newest_version_that_is_served() {
    let missing = || refusal(404, "NotFound", "no such version");
    let (lines, notices) = stream();
    let server = FakeServer::new([missing(), missing(), missing(), missing()]);
    let mut watch = watch(&server).or(["v1beta2", "v1beta1"]
        .map(|version| Api::all_with(server.client(), &ServedVersion::Older(version))));
    // None is served.
    assert_eq!(next(&mut watch, 1).await, ["absent, 2s"]);
    server.then(page(&[item("one", "5")], "7", ""));
    server.then(notices);
    let events = next(&mut watch, 4).await;
    assert_eq!(events, ["restarted", "listed one", "list done", "alive"]);
    // The server is a newer one, which has the first version alone.
    drop(lines);
    for _ in 0..2 {
        server.then(missing());
    }
    server.then(page(&[item("two", "8")], "9", ""));
    let events = next(&mut watch, 3).await;
    assert!(events[0].starts_with("failed"), "{events:?}");
    assert_eq!(events[1..], ["restarted", "listed two"]);
    let asked = server.asked().into_iter();
    let versions: Vec<String> =
        asked.filter_map(|asked| Some(asked.path.split('/').nth(2)?.to_owned())).collect();
    let [own, newer, older] = ["v1", "v1beta2", "v1beta1"];
    assert_eq!(versions, [own, newer, older, own, newer, newer, newer, older, own]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_no_event() {
    let (lines, notices) = stream();
    let server = FakeServer::default();
    let mut watch = opened(&server, notices).await;
    for _ in 0..3 {
        assert!(timeout(Duration::from_secs(1), watch.next()).await.is_err());
    }
    lines.send(line("ADDED", &item("two", "8"))).unwrap();
    assert_eq!(next(&mut watch, 1).await, ["applied two"]);
    assert_eq!(server.asked().len(), 2, "and sends no further request");

    // Also while waiting out a failure.
    drop(lines);
    let event = next(&mut watch, 1).await;
    assert!(event[0].starts_with("failed, 800ms"), "{event:?}");
    let half = Duration::from_millis(400);
    assert!(timeout(half, watch.next()).await.is_err());
    server.then(page(&[], "9", ""));
    let started = Instant::now();
    assert_eq!(next(&mut watch, 1).await, ["restarted"]);
    assert_eq!(started.elapsed(), half);
}

#[tokio::test(start_paused = true)]
async fn labels_and_namespace_reach_the_server_and_metadata_stays_metadata() {
    let (_lines, notices) = stream();
    let server = FakeServer::new([page(&[], "7", ""), notices]);
    let api: Api<Guarded<PartialObjectMeta<ReplicaSet>>> = Api::namespaced(server.client(), "team");
    let options =
        WatchOptions { labels: Some("a=b".to_owned()), page_size: 50, ..WatchOptions::default() };
    let mut watch = Watch::new(api, options, |delay| delay);
    for _ in 0..3 {
        watch.next().await;
    }
    for asked in server.asked() {
        assert_eq!(asked.path, "/apis/apps/v1/namespaces/team/replicasets");
        assert!(asked.query.contains("labelSelector=a%3Db"), "{asked:?}");
        assert!(asked.accept.contains("as=PartialObjectMetadata"), "{asked:?}");
    }
    assert!(server.asked()[0].query.contains("limit=50"));
}
