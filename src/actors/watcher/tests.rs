//! Objects are read anew on request, whatever the watch says.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{WatchSpec, Watcher};
use crate::actors::variants::tests::{run, shared};
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::fake::{FakeResponse, FakeServer, refusal};
use crate::cluster::kinds::WatchedKind;
use crate::cluster::watch::WatchOptions;
use crate::policy::key::VariantKey;
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::events::Events;
use crate::state::permission_reporter::PermissionReporter;
use wva_supervise::{Address, ExitReason};

const MINUTE: Duration = Duration::from_mins(1);
/// VariantAutoscalings alone are waited for.
const NEEDED: [bool; 3] = [true, false, false];

fn stored(replicas: u32, version: &str) -> FakeResponse {
    let object: Value = json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": {"namespace": "ns", "name": "v", "uid": "u", "resourceVersion": version},
        "spec": {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": "v"}},
        "status": {"desiredOptimizedAlloc": {"numReplicas": replicas, "accelerator": "unresolved"}},
    });
    let list = json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscalingList",
        "metadata": {"resourceVersion": version},
        "items": [object],
    });
    FakeResponse::Json(200, list)
}

/// The object, in a list or an event, with something else in place of its specification.
fn unreadable(version: &str) -> Value {
    json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "spec": 5,
        "metadata": {"namespace": "ns", "name": "v", "uid": "u", "resourceVersion": version},
    })
}

/// A watch that is open and says nothing.
fn silent() -> (mpsc::UnboundedSender<String>, FakeResponse) {
    let (lines, body) = mpsc::unbounded_channel();
    (lines, FakeResponse::Lines(body))
}

/// The watcher of VariantAutoscalings at work.
fn start(server: &FakeServer, shared: &SharedState) -> JoinHandle<ExitReason> {
    let permissions = PermissionReporter::for_test(shared.clock.clone(), Events::for_test());
    let spec = Arc::new(WatchSpec::<VariantAutoscaling> {
        kind: WatchedKind::VariantAutoscaling,
        api: Arc::new(Api::all(server.client())),
        older: Arc::default(),
        discovery: None,
        options: WatchOptions::default(),
        wanted: Arc::new(|_| true),
        malformed: |_, before, _| before.cloned(),
        mirror: Arc::clone(&shared.writers.mirrors.variants),
        notify: Arc::new(|_| {}),
        relists: Some(Arc::clone(&shared.writers.relists.variants)),
    });
    let of_watcher = shared.readers.clone();
    let role = Role::Watcher(WatchedKind::VariantAutoscaling);
    let watcher = wva_supervise::child(role, &Address::vacant(), move |_epoch| {
        Watcher::new(Arc::clone(&spec), of_watcher.clone(), permissions.clone())
    });
    run(shared, watcher)
}

#[tokio::test(start_paused = true)]
async fn a_fresh_list_is_made_for_who_asks_though_the_watch_says_nothing() {
    let shared = shared();
    let key = VariantKey::new("ns", "v");
    let (_first, watch) = silent();
    let (_second, rewatch) = silent();
    let server = FakeServer::new([stored(3, "7"), watch]);
    let watcher = start(&server, &shared);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(shared.mirrors.stored(&key), Some(Replicas(3)));

    // Stored by another writer, and the watch is behind.
    server.then(refusal(500, "InternalError", "try again"));
    server.then(stored(8, "9"));
    server.then(rewatch);
    sleep(MINUTE).await;
    assert_eq!(shared.mirrors.stored(&key), Some(Replicas(3)), "no relist was requested");
    let relists = &shared.writers.leadership.relists;
    let early = relists.ask(1, Duration::from_millis(1), NEEDED).await;
    assert!(!early[0], "the first list failed");
    assert!(relists.ask(1, MINUTE, NEEDED).await[0]);
    assert_eq!(shared.mirrors.stored(&key), Some(Replicas(8)));

    assert!(relists.ask(1, MINUTE, NEEDED).await[0], "it is done already");
    let late = relists.ask(2, MINUTE, NEEDED).await;
    assert!(!late[0], "the server answers no more");
    watcher.abort();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_stays_as_it_was_where_that_is_wanted() {
    let shared = shared();
    let key = VariantKey::new("ns", "v");
    let (lines, watch) = silent();
    let (second, rewatch) = silent();
    let server = FakeServer::new([stored(3, "7"), watch]);
    let watcher = start(&server, &shared);
    server.is_asked(2).await;
    let event = json!({"type": "MODIFIED", "object": unreadable("8")});
    lines.send(event.to_string()).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(shared.mirrors.stored(&key), Some(Replicas(3)));

    let list = json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscalingList",
        "metadata": {"resourceVersion": "9"}, "items": [unreadable("8")],
    });
    server.then(FakeResponse::Json(200, list));
    server.then(rewatch);
    let relists = &shared.writers.leadership.relists;
    assert!(relists.ask(1, MINUTE, NEEDED).await[0]);
    assert_eq!(shared.mirrors.stored(&key), Some(Replicas(3)));
    let event = json!({"type": "DELETED", "object": unreadable("10")});
    second.send(event.to_string()).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(shared.mirrors.stored(&key), None);
    watcher.abort();
}
