//! Who begins to lead has read what its predecessor stored last.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{Election, LISTING, Leadership};
use crate::actors::mailboxes::Mailboxes;
use crate::actors::pump;
use crate::actors::variants::tests::{run, shared};
use crate::api::scaled_object::ScaledObject;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::fake::{FakeResponse, FakeServer, refusal};
use crate::cluster::kinds::WatchedKind;
use crate::cluster::lease::LeaseApi;
use crate::hooks::NoHooks;
use crate::policy::lease::LeaseRules;
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::mirrors::tests::list;
use crate::state::permission_reporter::PermissionReporter;
use wva_supervise::{Address, Epoch, ExitReason, SeedTree};

const ME: &str = "wva-me";

fn held_by(holder: &str, version: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "system", "name": "lease", "resourceVersion": version},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 20, "leaseTransitions": 1},
    })
}

/// Leadership at work.
struct Running {
    shared: SharedState,
    task: JoinHandle<ExitReason>,
}

impl Running {
    fn start(server: &FakeServer) -> Self {
        let rules = LeaseRules {
            identity: Arc::from(ME),
            duration: Duration::from_secs(20),
            renew_deadline: Duration::from_secs(15),
            retry_period: Duration::from_secs(4),
        };
        let second = Duration::from_secs(1);
        let lease = LeaseApi::new(server.client(), "system", "lease", second);
        let election = Election::On { rules, api: Box::new(lease) };
        Self::by(election, shared())
    }

    fn by(election: Election, shared: SharedState) -> Self {
        let mailboxes = Mailboxes::new(&shared.series);
        let leadership = Leadership::new(
            Arc::clone(&shared.writers.leadership),
            shared.mirrors.clone(),
            PermissionReporter::for_test(shared.clock.clone(), mailboxes.events.clone()),
            election,
            Arc::new(mailboxes),
            SeedTree::new(1).child("leadership"),
            Arc::new(NoHooks),
        );
        let role = pump(Role::Leadership, &Address::vacant(), leadership);
        let task = run(&shared, role);
        Self { shared, task }
    }

    /// Every kind was read for this number.
    fn done(&self, number: u64) {
        let relists = &self.shared.writers.relists;
        relists.variants.done(number);
        relists.horizontal_pod_autoscalers.done(number);
        relists.scaled_objects.done(number);
    }

    fn leads(&self) -> bool {
        self.shared.claim.may_write(self.shared.clock.now())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits for what has to come within a few looks at the lease.
async fn soon<T>(event: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(10), event).await.unwrap()
}

/// The lease was lost, or might have been, while a list of objects was on its way that began before: the
/// leader since then has stored something that is not in it.
#[tokio::test(start_paused = true)]
async fn what_was_read_for_a_lease_that_was_lost_counts_for_no_other() {
    let between = [
        FakeResponse::Json(200, held_by("wva-other", "2")),
        refusal(500, "InternalError", "etcd has no leader"),
    ];
    for answer in between {
        let server = FakeServer::new([
            refusal(404, "NotFound", "no lease"),
            FakeResponse::Json(201, held_by(ME, "1")),
            answer,
            FakeResponse::Json(200, held_by("", "3")),
            FakeResponse::Json(200, held_by(ME, "4")),
        ]);
        let running = Running::start(&server);
        let mut claims = running.shared.claim.follow();
        soon(running.shared.writers.relists.variants.is_asked_beyond(0)).await;
        assert_eq!(running.shared.writers.relists.variants.asked(), 1);
        assert!(!running.leads(), "nothing is read yet");

        soon(server.is_asked(3)).await;
        running.done(1);
        soon(running.shared.writers.relists.variants.is_asked_beyond(1)).await;
        assert_eq!(server.asked().len(), 5);
        assert_eq!(running.shared.writers.relists.variants.asked(), 2);
        assert!(!running.leads(), "only another reading counts");

        running.done(2);
        soon(claims.changed()).await;
        assert!(running.leads());
        assert_eq!(server.asked().len(), 5);
    }
}

/// While the right to list scalers is missing none is a variant. One that is known may have another count by now.
#[tokio::test(start_paused = true)]
async fn scalers_are_waited_for_unless_they_may_not_be_listed() {
    for is_forbidden in [true, false] {
        let server = FakeServer::new([
            refusal(404, "NotFound", "no lease"),
            FakeResponse::Json(201, held_by(ME, "1")),
        ]);
        for _ in 0..20 {
            server.then(FakeResponse::Json(200, held_by(ME, "1")));
        }
        let running = Running::start(&server);
        let mirror = &running.shared.writers.mirrors.horizontal_pod_autoscalers;
        let kind = WatchedKind::HorizontalPodAutoscaler;
        let scaler = json!({
            "metadata": {"namespace": "ns", "name": "v", "annotations": {
                "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m",
            }},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "v"}, "maxReplicas": 9},
        });
        list::<HorizontalPodAutoscaler>(mirror, [scaler]);
        let epoch = Epoch::for_test(Role::Watcher(kind), 1);
        mirror.fail(&epoch, "in vain").unwrap();
        if is_forbidden {
            assert!(mirror.forbid(&epoch).unwrap());
        }
        let variants = running.shared.mirrors.all_records();
        assert_eq!(variants.is_empty(), is_forbidden);
        let mut claims = running.shared.claim.follow();
        let relists = &running.shared.writers.relists;
        soon(relists.variants.is_asked_beyond(0)).await;
        relists.variants.done(1);
        relists.scaled_objects.done(1);
        if !is_forbidden {
            soon(server.is_asked(5)).await;
            assert!(!running.leads(), "its count may have grown");
            relists.horizontal_pod_autoscalers.done(1);
        }
        soon(claims.changed()).await;
        assert!(running.leads());
    }
}

/// What is not listed yet may have the name or the target of what is.
#[tokio::test(start_paused = true)]
async fn without_a_lease_nothing_is_decided_until_variants_were_listed_or_may_not_be() {
    for is_forbidden in [true, false] {
        let running = Running::by(Election::Off, shared());
        let mirrors = &running.shared.writers.mirrors;
        list::<VariantAutoscaling>(&mirrors.variants, []);
        list::<ScaledObject>(&mirrors.scaled_objects, []);
        sleep(LISTING * 2).await;
        assert!(!running.leads());

        let kind = WatchedKind::HorizontalPodAutoscaler;
        let hpas = &mirrors.horizontal_pod_autoscalers;
        let mut claims = running.shared.claim.follow();
        if is_forbidden {
            let epoch = Epoch::for_test(Role::Watcher(kind), 1);
            assert!(hpas.forbid(&epoch).unwrap());
        } else {
            list::<HorizontalPodAutoscaler>(hpas, []);
        }
        soon(claims.changed()).await;
        assert!(running.leads());
    }
}
