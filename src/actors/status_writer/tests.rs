//! What was decided under an earlier claim is not stored under this one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Connections, Outcome, StatusWriter};
use crate::actors::denials::Denials;
use crate::actors::emitter::tests::{claim, key, leading, view};
use crate::actors::event_recorder::Events;
use crate::actors::facts::Facts;
use crate::actors::intents::Intents;
use crate::cluster::fake::{Answer, FakeServer};
use crate::cluster::status::StatusApi;
use crate::env::SeedTree;
use crate::kit::{Doorbell, Role, Tenure};
use crate::policy::record::{Record, Troubles};
use crate::policy::rival::Standing;
use crate::policy::units::Replicas;

fn writer(facts: &Facts, server: &FakeServer) -> StatusWriter {
    let events = Events::new(facts.series.process.events_dropped.clone(), || {});
    let connections = Connections {
        settled: Doorbell::new(|| {}),
        denials: Denials::for_test(facts.clock.clone(), events),
    };
    let api = StatusApi {
        client: server.client(),
        manager: Arc::from("wva-me"),
        timeout: Duration::from_secs(1),
    };
    let generator = SeedTree::new(1).child("status-writer");
    StatusWriter::new(
        facts.clone(),
        Intents::new(|| {}),
        connections,
        api,
        generator,
    )
}

/// The claim was lost and won again: in between another process led, and stored eight. The emitter has yet
/// to see that its record is of the term before.
#[tokio::test(start_paused = true)]
async fn a_record_of_an_earlier_term_is_not_stored() {
    let facts = leading(8);
    let emitter = Tenure::for_test(Role::Emitter, 1);
    let troubles = Troubles {
        quarantine: None,
        standing: Standing::Alone,
    };
    let now = facts.clock.now();
    let record = Record::of(&view(1), None, None, troubles, now);
    let records = &facts.records;
    records.enter(&emitter, 1).unwrap();
    records
        .put(&emitter, &key(), Some(Arc::new(record)))
        .unwrap();
    assert_eq!(records.desired(&key()), Some(Replicas(3)));

    let server = FakeServer::default();
    let writer = writer(&facts, &server);
    claim(&facts, 3);
    let outcome = writer.write(now, &key()).await;
    assert!(matches!(outcome, Outcome::NoClaim), "{outcome:?}");
    assert!(server.asked().is_empty());

    records.enter(&emitter, 3).unwrap();
    let metadata = json!({"namespace": "ns", "name": "v", "uid": "u", "resourceVersion": "2"});
    server.then(Answer::Json(
        200,
        json!({
            "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "metadata": metadata,
        }),
    ));
    let outcome = writer.write(now, &key()).await;
    assert!(
        matches!(outcome, Outcome::Written(_, Some(Replicas(3)))),
        "{outcome:?}"
    );
    assert_eq!(server.asked().len(), 1);
}
