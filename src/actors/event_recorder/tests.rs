//! A server that sent Retry-After receives nothing meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{EventRecorder, EventRecorderMessage};
use crate::actors::emitter::tests::leading;
use crate::actors::pump;
use crate::actors::variants::tests::run_until;
use crate::cluster::event::{EventApi, EventNotice, EventReason, EventType, Regarding};
use crate::cluster::fake::{FakeResponse, FakeServer, refusal, throttled};
use crate::roles::Role;
use crate::state::events::Events;
use crate::state::permission_reporter::PermissionReporter;
use wva_supervise::{ActorRegistry, Address};

fn notice(name: &str) -> EventNotice {
    EventNotice {
        regarding: Regarding {
            api_version: Arc::from("v1"),
            kind: Arc::from("ConfigMap"),
            namespace: Arc::from("ns"),
            name: Arc::from(name),
            uid: Arc::from(name),
        },
        severity: EventType::Warning,
        reason: EventReason::InvalidConfigEntry,
        action: "Action",
        note: "note".to_owned(),
        cycle: None,
    }
}

fn stored() -> FakeResponse {
    let metadata = json!({"name": "x", "namespace": "ns"});
    FakeResponse::Json(201, json!({"metadata": metadata, "eventTime": null}))
}

/// A recorder at work whose first event is answered like this, and another one thrown at the same time; how many
/// requests there were after each of these times in milliseconds, and after an orderly end, if it comes then.
async fn requests(answer: FakeResponse, times: &[u64], ends: bool) -> Vec<usize> {
    let shared = leading(1);
    let server = FakeServer::new([answer, stored()]);
    let address = Address::vacant();
    let bell = address.clone();
    let dropped = shared.series.process.events_dropped.clone();
    let events = Events::new(dropped, move || bell.hint(EventRecorderMessage::Publish));
    let permissions = PermissionReporter::for_test(shared.clock.clone(), events.clone());
    let api = EventApi {
        client: server.client(),
        controller: Arc::from("wva"),
        instance: Arc::from("wva-0"),
        timeout: Duration::from_secs(1),
    };
    let recorder = EventRecorder::new(
        shared.readers.clone(),
        Arc::clone(&shared.writers.event_recorder),
        events.clone(),
        permissions,
        api,
    );
    let (end, ended) = oneshot::channel::<()>();
    let stop = async move { drop(ended.await) };
    let recorder = pump(Role::EventRecorder, &address, recorder);
    let task = run_until(stop, &shared, ActorRegistry::new(), recorder);
    for name in ["a", "b"] {
        events.throw(shared.clock.now(), notice(name));
    }
    let mut counts = Vec::new();
    let mut at = 0;
    for time in times {
        sleep(Duration::from_millis(time - at)).await;
        counts.push(server.asked().len());
        at = *time;
    }
    if ends {
        drop(end);
        task.await.unwrap();
        counts.push(server.asked().len());
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn events_wait_for_as_long_as_the_server_has_asked_for() {
    let failed = || refusal(500, "InternalError", "no");
    assert_eq!(requests(failed(), &[5], false).await, [2]);
    assert_eq!(requests(throttled(10), &[5, 9_990, 10_010], false).await, [1, 1, 2]);
    assert_eq!(requests(throttled(10), &[5, 10_010], true).await, [1, 2, 2]);
    // At an end they are lost.
    assert_eq!(requests(failed(), &[5], true).await, [2, 2]);
    assert_eq!(requests(throttled(10), &[5], true).await, [1, 1]);
}
