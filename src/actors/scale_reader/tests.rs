//! A server that sent Retry-After receives no scale requests meanwhile.

use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::*;
use crate::actors::pump;
use crate::actors::variants::tests::{run, shared};
use crate::api::pod_autoscaler::PodAutoscaler;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::fake::{self, FakeResponse, FakeServer, refusal, served, throttled};
use crate::policy::key::ObjectKey;
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::mirrors::tests::list;
use wva_supervise::ExitReason;

fn kinds() -> FakeResponse {
    let sets = ("replicasets", "ReplicaSet");
    served("apps/v1", &[sets, ("replicasets/scale", "Scale")])
}

fn scale() -> FakeResponse {
    fake::scale("v", [3; 2])
}

/// The reader at work, until the task is aborted.
fn reader(
    shared: &SharedState,
    server: &FakeServer,
    mailboxes: &Arc<Mailboxes>,
) -> JoinHandle<ExitReason> {
    let permissions = PermissionReporter::for_test(shared.clock.clone(), mailboxes.events.clone());
    let api = ScaleApi { client: server.client(), timeout: Duration::from_secs(1) };
    let writers = Arc::clone(&shared.writers.scale_reader);
    let of_reader = Arc::clone(mailboxes);
    let reader = ScaleReader::new(shared.readers.clone(), writers, api, of_reader, permissions);
    let address = &mailboxes.addresses.scale_reader;
    run(shared, pump(Role::ScaleReader, address, reader))
}

/// The reader at work, where a server gives these answers; how many requests there were just before and just after
/// each of these seconds, and whether the scale is known in the end.
async fn requests<const N: usize>(
    answers: [FakeResponse; N],
    seconds: [u64; 2],
) -> ([(usize, usize); 2], bool) {
    let shared = shared();
    let variant = json!({
        "metadata": {"namespace": "ns", "name": "v", "uid": "u"},
        "spec": {
            "modelID": "m",
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "v"},
        },
    });
    list::<VariantAutoscaling>(&shared.writers.mirrors.variants, [variant]);
    let server = FakeServer::new(answers);
    let mailboxes = Arc::new(Mailboxes::new(&shared.series));
    let task = reader(&shared, &server, &mailboxes);
    let began = Instant::now();
    let at = |milliseconds| sleep_until(began + Duration::from_millis(milliseconds));
    let mut counts = [(0, 0); 2];
    for (count, second) in counts.iter_mut().zip(seconds) {
        at(second * 1_000 - 5).await;
        count.0 = server.asked().len();
        at(second * 1_000 + 5).await;
        count.1 = server.asked().len();
    }
    task.abort();
    let known = shared.mirrors.scales.load();
    let is_found = known.values().any(|one| matches!(one, ScaleReading::Found(_)));
    (counts, is_found)
}

#[tokio::test(start_paused = true)]
async fn scales_are_read_on_at_the_time_that_the_server_has_asked_for() {
    // What fails without that is read in the next round.
    let failed = refusal(503, "ServiceUnavailable", "later");
    let round = [kinds(), failed, kinds(), scale()];
    assert_eq!(requests(round, [4, 5]).await, ([(2, 2), (2, 4)], true));
    let asked = [kinds(), throttled(12), kinds(), scale()];
    assert_eq!(requests(asked, [5, 12]).await, ([(2, 2), (2, 4)], true));
    let discovery = [throttled(12), kinds(), scale()];
    assert_eq!(requests(discovery, [5, 12]).await, ([(1, 1), (1, 3)], true));
}

fn autoscaler(name: &str, spec: &serde_json::Value) -> serde_json::Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": name}, "spec": spec})
}

fn autoscalers(shared: &SharedState, objects: impl IntoIterator<Item = serde_json::Value>) {
    let mirror = &shared.writers.mirrors.pod_autoscalers;
    list::<PodAutoscaler>(mirror, objects);
}

/// The targets that are found, with whether their roles are known.
fn found(shared: &SharedState) -> Vec<(String, Option<Replicas>, bool)> {
    let known = shared.mirrors.scales.load();
    let found = known.iter().filter_map(|(target, reading)| match reading {
        ScaleReading::Found(read) => {
            let has_roles = read.service.is_some();
            Some((target.to_string(), read.object.spec_replicas, has_roles))
        }
        _ => None,
    });
    found.collect()
}

#[tokio::test(start_paused = true)]
async fn what_an_autoscaler_names_is_read_at_once_and_forgotten_with_it() {
    let shared = shared();
    let server = FakeServer::new([]);
    let mailboxes = Arc::new(Mailboxes::new(&shared.series));
    let task = reader(&shared, &server, &mailboxes);
    sleep_until(Instant::now() + Duration::from_secs(7)).await;
    assert_eq!((server.asked().len(), found(&shared)), (0, vec![]));

    let version = "orchestration.aibrix.ai/v1alpha1";
    let storm = json!({"apiVersion": version, "kind": "StormService", "name": "pd"});
    let role = json!({"scaleTargetRef": storm, "subTargetSelector": {"roleName": "decode"}});
    let deployment =
        json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}});
    let objects = [autoscaler("a", &role), autoscaler("b", &deployment)];
    autoscalers(&shared, objects);
    server.then(served(version, &[("stormservices", "StormService")]));
    let object = json!({
        "apiVersion": version, "kind": "StormService",
        "metadata": {"name": "pd", "namespace": "ns", "uid": "u"},
        "spec": {"replicas": 2, "template": {"spec": {"roles": [{"name": "decode", "replicas": 5}]}}},
    });
    server.then(FakeResponse::Json(200, object));
    let mut cell = shared.mirrors.scales.follow();
    let mirror = &shared.mirrors.pod_autoscalers;
    let targets = mirror.all().into_iter();
    let before = Instant::now();
    let named = targets.filter_map(|(_, stored)| Some(autoscaler_target(&stored)?.0));
    mailboxes.named.insert_all(named);
    cell.changed().await;
    assert_eq!(Instant::now(), before);
    let expected = ("StormService ns/pd".to_owned(), Some(Replicas(2)), true);
    assert_eq!((server.asked().len(), found(&shared)), (2, vec![expected]));
    // It need not wait for its tick; later readings do.
    let first = AutoscalerInvalidation::Object(ObjectKey::new("ns", "a"));
    assert_eq!(mailboxes.autoscalers.drain(), [first].into());

    // Without it the next round reads nothing.
    autoscalers(&shared, []);
    cell.changed().await;
    assert_eq!((server.asked().len(), found(&shared)), (2, vec![]));
    task.abort();
}
