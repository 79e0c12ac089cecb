//! The registry refuses what it has no room for, and makes room again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Invalidation, Variants};
use crate::actors::mailboxes::Mailboxes;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::event::EventReason;
use crate::metrics::Metrics;
use crate::policy::key::VariantKey;
use crate::policy::variant::VariantState;
use crate::roles::Role;
use crate::settings::problem::Diagnostics;
use crate::settings::{Sources, start};
use crate::state::SharedState;
use crate::state::claim::{Claim, ClaimDuration};
use crate::state::mirrors::tests::{list, scope};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use tokio::task::JoinHandle;
use wva_supervise::{
    ActorRegistry, ChildSpec, Clock, Epoch, ExitReason, Kit, Order, Registry, SeedTree,
    TreeRole as _,
};

pub(crate) fn shared() -> SharedState {
    with_annotated_scalers("true")
}

pub(crate) fn with_annotated_scalers(enabled: &str) -> SharedState {
    with_environment(&[("ANNOTATED_SCALERS_ENABLED", enabled)])
}

pub(crate) fn with_environment(variables: &[(&str, &str)]) -> SharedState {
    let mut sources = Sources::default();
    let needed = [("PROMETHEUS_BASE_URL", "http://prometheus"), ("PROMETHEUS_ALLOW_HTTP", "true")];
    for (name, text) in needed.iter().chain(variables) {
        sources.environment.insert((*name).to_owned(), (*text).to_owned());
    }
    let generation = start(&sources).unwrap().generation;
    let series = Metrics::new(None).unwrap();
    let shared = SharedState::new(
        Clock::real(),
        scope(),
        generation,
        series.into(),
        "".into(),
        &Diagnostics::default(),
    );
    let namespaces = &shared.writers.mirrors.namespaces;
    list::<PartialObjectMeta<Namespace>>(namespaces, []);
    shared
}

/// A tree around one role, until the task is aborted or the test ends.
pub(in crate::actors) fn run(
    shared: &SharedState,
    role: ChildSpec<Role>,
) -> JoinHandle<ExitReason> {
    run_until(std::future::pending(), shared, ActorRegistry::new(), role)
}

pub(in crate::actors) fn run_until(
    end: impl Future<Output = ()> + Send + 'static,
    shared: &SharedState,
    actors: ActorRegistry<Role>,
    role: ChildSpec<Role>,
) -> JoinHandle<ExitReason> {
    let kit = Kit { clock: shared.clock.clone(), seed: SeedTree::new(1), actors };
    let tree = match role.role().parent() {
        Some(Role::Root) | None => vec![role],
        Some(parent) => vec![wva_supervise::supervisor(parent, vec![role])],
    };
    tokio::spawn(wva_supervise::run(kit, tree, end))
}

pub(in crate::actors) fn publish_claim(shared: &SharedState, term: u64, hold: ClaimDuration) {
    let epoch = Epoch::for_test(Role::Leadership, 1);
    let claim = &shared.writers.leadership.claim;
    claim.publish(&epoch, Arc::new(Claim { term, hold })).unwrap();
}

pub(in crate::actors) fn store(shared: &SharedState, names: &[&str]) {
    let variants = names.iter().map(|name| {
        json!({
            "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-of-{name}")},
            "spec": {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": name}},
        })
    });
    list::<VariantAutoscaling>(&shared.writers.mirrors.variants, variants);
}

fn registry(shared: &SharedState, mailboxes: &Arc<Mailboxes>) -> Variants {
    Variants::new(
        shared.readers.clone(),
        Arc::clone(&shared.writers.variants),
        &Epoch::for_test(Role::Variants, 1),
        Arc::clone(mailboxes),
    )
}

#[test]
fn a_variant_without_room_is_reported_and_gets_the_room_of_one_that_goes() {
    let shared = shared();
    let mailboxes = Arc::new(Mailboxes::new(&shared.series));
    let (events, dirty) = (&mailboxes.events, &mailboxes.dirty);
    let mut registry = registry(&shared, &mailboxes);
    registry.actors.room = 2;
    let key = |name: &str| VariantKey::new("ns", name);
    let runs = |order: Option<Order<VariantKey>>| match order {
        Some(Order::Run(key)) => Some(key.name.to_string()),
        Some(Order::End(_)) | None => None,
    };

    store(&shared, &["a", "b", "c"]);
    assert_eq!(runs(registry.order(key("a"))).as_deref(), Some("a"));
    assert_eq!(runs(registry.order(key("b"))).as_deref(), Some("b"));
    assert!(events.last().is_none());

    assert_eq!(runs(registry.order(key("c"))), None);
    let refusal = events.last().unwrap().notice;
    assert_eq!((refusal.reason, &*refusal.regarding.name), (EventReason::VariantRefused, "c"));
    assert!(refusal.note.contains("runs 2 variants"), "{}", refusal.note);
    assert_eq!(runs(registry.order(key("c"))), None, "still no room");
    assert!(events.last().is_none(), "it is reported once");

    store(&shared, &["b", "c"]);
    assert!(matches!(registry.order(key("a")), Some(Order::End(_))));
    assert!(dirty.drain().is_empty());
    registry.ended(&key("a"));
    assert_eq!(dirty.drain(), [Invalidation::Variant(key("c"))].into());
    assert_eq!(runs(registry.order(key("c"))).as_deref(), Some("c"));
}

/// One that was quarantined when its object went left its quarantine behind, for whatever came under its name.
#[test]
fn a_variant_that_is_gone_is_not_in_quarantine() {
    let shared = shared();
    store(&shared, &["a"]);
    let mut registry = registry(&shared, &Arc::new(Mailboxes::new(&shared.series)));
    let key = VariantKey::new("ns", "a");
    registry.quarantined(&key, 3, "killed", Duration::from_secs(30));
    assert_eq!(shared.quarantine_of(&key).as_deref(), Some("killed"));
    registry.ended(&key);
    assert_eq!(shared.quarantine_of(&key), None);
}

/// The view of one stays whose object was removed while the registry itself was down.
#[test]
fn a_variant_that_went_between_two_lives_leaves_nothing() {
    let shared = shared();
    store(&shared, &["a", "b"]);
    let mailboxes = Arc::new(Mailboxes::new(&shared.series));
    let life = || registry(&shared, &mailboxes);
    let keys = ["a", "b"].map(|name| VariantKey::new("ns", name));
    let mut first = life();
    for key in &keys {
        assert!(matches!(first.order(key.clone()), Some(Order::Run(_))));
        let epoch = Epoch::for_test(Role::Variant(key.clone()), 1);
        let mut state = VariantState::new(key.clone(), None);
        let refreshed = shared.refresh(key, &mut state, shared.clock.now()).unwrap();
        shared.writers.variants.board.put(&epoch, refreshed.view).unwrap();
    }
    drop(first);
    assert!(mailboxes.changed.drain().is_empty());

    store(&shared, &["b"]);
    let mut second = life();
    let [gone, stays] = &keys;
    assert!(matches!(second.order(gone.clone()), Some(Order::End(_))));
    assert!(matches!(second.order(stays.clone()), Some(Order::Run(_))));
    assert_eq!(mailboxes.changed.drain(), [gone.clone()].into());
    let left: Vec<VariantKey> = shared.board.snapshot().into_keys().collect();
    assert_eq!(left, std::slice::from_ref(stays));
}

/// Each refresh that found nothing new passed for the first one, and had an early cycle made.
#[test]
fn a_view_that_stays_replaces_itself() {
    let shared = shared();
    store(&shared, &["a"]);
    let key = VariantKey::new("ns", "a");
    let epoch = Epoch::for_test(Role::Variant(key.clone()), 1);
    let mut state = VariantState::new(key.clone(), None);
    let mut show = || {
        let view = shared.refresh(&key, &mut state, shared.clock.now()).unwrap().view;
        let replaced = shared.writers.variants.board.put(&epoch, Arc::clone(&view)).unwrap();
        (view, replaced)
    };
    let (first, replaced) = show();
    assert_eq!(replaced, None);
    let (second, replaced) = show();
    assert!(Arc::ptr_eq(&first, &second), "nothing is new");
    assert_eq!(replaced, Some(first));
}
