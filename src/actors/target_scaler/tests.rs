//! What a round writes: the published count where nothing else scales, once it may, and not again at once.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use tokio::time::advance;

use super::*;
use crate::actors::emitter::tests::{key, leading, view};
use crate::actors::rounds::Rounds;
use crate::actors::rounds::tests::decided;
use crate::cluster::fake::{self, FakeResponse, FakeServer, refusal, served};
use crate::policy::params::ActuationMode;
use crate::policy::plan::DecisionOutcome;
use crate::policy::scaler::Scalers;
use crate::policy::snapshot::VariantView;
use crate::state::SharedState;
use crate::state::events::Events;
use crate::state::mirrors::tests::list;
use crate::state::permission_reporter::PermissionReporter;
use wva_base::moment::WallTime;
use wva_supervise::Clock;

const SCALE: &str = "/apis/apps/v1/namespaces/ns/deployments/v/scale";

/// Three replicas are stated and stored, and this many are published.
fn published(count: u32) -> SharedState {
    let mut shared = leading(3);
    shared.readers.clock = Clock::at(WallTime(1_800_000_000_000));
    let stated = json!({
        "metadata": {"namespace": "ns", "name": "v", "uid": "d"},
        "spec": {"replicas": 3, "selector": {}, "template": {}},
    });
    let deployments = &shared.writers.mirrors.deployments;
    list::<Deployment>(deployments, [stated]);
    let view = VariantView { scalers: Scalers::Known(Arc::from([])), ..view(1) };
    decided(&shared, &view, |decision| {
        decision.target = Some(Replicas(count));
        decision.actuation = ActuationMode::Direct;
        decision.outcome = DecisionOutcome::Analyzed;
    });
    shared
}

fn scaler(shared: &SharedState, server: &FakeServer) -> Rounds<DirectScales> {
    let permissions = PermissionReporter::for_test(shared.clock.clone(), Events::for_test());
    let api = server.writes("wva-me", 1);
    let scales = DirectScales::new(shared.readers.clone(), api, DirtySet::new(|| {}));
    let requests = Arc::clone(&shared.writers.target_scaler);
    Rounds::new(scales, shared.readers.clone(), requests, permissions)
}

fn kinds() -> FakeResponse {
    let deployments = ("deployments", "Deployment");
    served("apps/v1", &[deployments, ("deployments/scale", "Scale")])
}

fn scale(replicas: u32) -> FakeResponse {
    fake::scale("v", [replicas; 2])
}

fn written(server: &FakeServer) -> Vec<(String, Value)> {
    let asked = server.asked().into_iter();
    let written = asked.filter(|asked| asked.method != "GET");
    written.map(|asked| (asked.path, asked.body["spec"]["replicas"].clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_published_count_is_written_once_it_may_be() {
    let shared = published(5);
    let server = FakeServer::new([kinds(), scale(3), scale(5)]);
    let mut scaler = scaler(&shared, &server);
    scaler.round(shared.clock.now()).await;
    assert_eq!(written(&server), [], "its status is not stored yet");
    advance(Duration::from_secs(2)).await;
    scaler.round(shared.clock.now()).await;
    assert_eq!(written(&server), [(SCALE.to_owned(), json!(5))]);
    // The mirror is behind, and the count is not written at each round.
    advance(Duration::from_secs(4)).await;
    scaler.round(shared.clock.now()).await;
    assert_eq!(written(&server).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_written_again() {
    let shared = published(2);
    let server = FakeServer::new([
        kinds(),
        scale(3),
        refusal(409, "Conflict", "the object has been modified"),
        kinds(),
        scale(3),
        scale(2),
    ]);
    let mut scaler = scaler(&shared, &server);
    advance(Duration::from_secs(5)).await;
    scaler.round(shared.clock.now()).await;
    assert_eq!(written(&server).len(), 1, "a conflict");
    advance(AGAIN).await;
    scaler.round(shared.clock.now()).await;
    let again = (SCALE.to_owned(), json!(2));
    assert_eq!(written(&server), [again.clone(), again]);
}

/// The target has another count by now: the watch brings it, and the next round goes by that.
#[tokio::test(start_paused = true)]
async fn a_count_that_was_not_seen_is_left_as_it_is() {
    let shared = published(2);
    let server = FakeServer::new([kinds(), scale(7)]);
    advance(Duration::from_secs(5)).await;
    scaler(&shared, &server).round(shared.clock.now()).await;
    assert_eq!(server.asked().len(), 2);
    assert_eq!(written(&server), []);
}

/// Something else was published since the round began.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_not_due_any_more_is_not_written() {
    let shared = published(2);
    advance(Duration::from_secs(5)).await;
    let server = FakeServer::default();
    let api = server.writes("wva-me", 1);
    let scales = DirectScales::new(shared.readers.clone(), api, DirtySet::new(|| {}));
    let scale = DirectScale {
        target: TargetKey::new("ns", TargetKind::Deployment, "v"),
        step: DirectStep { from: Replicas(3), to: Replicas(1) },
    };
    let refused = scales.write(&key(), scale).await;
    assert!(matches!(refused, Err(AutoscalerWriteError::Outdated)));
    assert!(server.asked().is_empty());
}
