//! What scalers read is what is stored, or what could not be stored in time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{Emitter, EmitterMessage, STORAGE_PATIENCE, StatusWriteResult};
use crate::actors::mailboxes::Mailboxes;
use crate::actors::variants::tests::{publish_claim, run_until, shared};
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::metrics::Visibility;
use crate::policy;
use crate::policy::key::{ModelKey, TargetKey, TargetKind, VariantKey};
use crate::policy::metrics_gap::MetricsGap;
use crate::policy::scaler::Scalers;
use crate::policy::snapshot::{
    CycleId, DeclaredBounds, GenerationState, ResolvedTarget, TargetView, VariantView,
};
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::state::claim::ClaimDuration;
use crate::state::mirrors::tests::{count_writer, list};
use crate::state::{PlanProposal, SharedState};
use wva_supervise::{ActorRegistry, Epoch, ExitReason, Mishap};

pub(in crate::actors) fn key() -> VariantKey {
    VariantKey::new("ns", "v")
}

/// A variant with three replicas, three of them wanted and stored, whose minimum is `min`.
pub(in crate::actors) fn view(min: u32) -> VariantView {
    let target = TargetView::Resolved(ResolvedTarget {
        key: TargetKey::new("ns", TargetKind::Deployment, "v"),
        current: Replicas(3),
        surge: Replicas::ZERO,
        ready: Replicas(3),
        generation: GenerationState::Observed,
    });
    VariantView {
        uid: Arc::from("u"),
        bounds: DeclaredBounds { min: Some(Replicas(min)), max: None },
        desired: Some(Replicas(3)),
        ..VariantView::new(key(), ModelKey::new("ns", "m"), target)
    }
}

/// Puts the variant on the board.
fn show(shared: &SharedState, view: VariantView) {
    let epoch = Epoch::for_test(Role::Variant(key()), 1);
    let board = &shared.writers.variants.board;
    board.put(&epoch, Arc::new(view)).unwrap();
}

/// Puts the variant on the board and plans it: without metrics its minimum decides.
pub(in crate::actors) fn plan(shared: &SharedState, min: u32, cycle: u64) -> PlanProposal {
    show(shared, view(min));
    let generation = &shared.settings.load().generation;
    let plan = policy::plan(
        &shared.snapshot(CycleId(cycle)),
        &shared.learned.load(),
        &generation.dynamic,
        generation.number,
        shared.clock.now(),
    );
    PlanProposal { term: shared.claim.term(), plan: Arc::new(plan), gaps: Arc::default() }
}

/// The gauge after everybody has done what there is to do.
async fn gauge(shared: &SharedState) -> String {
    sleep(Duration::from_millis(1)).await;
    let text = shared.series.exposition(Visibility::Shown).unwrap();
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with("wva_desired_replicas{"));
    line.unwrap().rsplit(' ').next().unwrap().to_owned()
}

/// An emitter at work, and its inputs.
struct Running {
    mailboxes: Arc<Mailboxes>,
    actors: ActorRegistry<Role>,
    task: JoinHandle<ExitReason>,
}

impl Running {
    fn start(shared: &SharedState) -> Self {
        Self::with(shared, None)
    }

    /// One that finds this in the slot.
    fn with(shared: &SharedState, waiting: Option<PlanProposal>) -> Self {
        let mailboxes = Arc::new(Mailboxes::new(&shared.series));
        if let Some(waiting) = waiting {
            mailboxes.plans.put(waiting);
        }
        let of_emitter = Arc::clone(&mailboxes);
        let (readers, writers) = (shared.readers.clone(), Arc::clone(&shared.writers.emitter));
        let emitter =
            wva_supervise::machine(Role::Emitter, &mailboxes.addresses.emitter, move |epoch| {
                let (shared, writers) = (readers.clone(), Arc::clone(&writers));
                Emitter::new(shared, writers, epoch, Arc::clone(&of_emitter))
            });
        let actors = ActorRegistry::new();
        let end = std::future::pending();
        let task = run_until(end, shared, actors.clone(), emitter);
        Self { mailboxes, actors, task }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Facts about the variant, with so many replicas in its status, and the right to write.
pub(in crate::actors) fn leading(stored: u32) -> SharedState {
    let shared = shared();
    store(&shared, stored);
    claim(&shared, 1);
    shared
}

/// The three that are stored are decided and shown.
async fn planned() -> (SharedState, Running) {
    let shared = leading(3);
    let running = Running::start(&shared);
    running.mailboxes.plans.put(plan(&shared, 1, 1));
    assert_eq!(gauge(&shared).await, "3");
    (shared, running)
}

/// Another term begins, and the emitter learns of it.
fn enter(shared: &SharedState, running: &Running) {
    claim(shared, 3);
    running.mailboxes.addresses.emitter.hint(EmitterMessage::ClaimChanged);
}

fn store(shared: &SharedState, replicas: u32) {
    let allocation = json!({"numReplicas": replicas, "accelerator": "unresolved"});
    put(shared, "u", &json!({"desiredOptimizedAlloc": allocation}));
}

fn put(shared: &SharedState, uid: &str, status: &Value) {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "v", "uid": uid},
        "spec": {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": "v"}},
        "status": status,
    });
    list::<VariantAutoscaling>(&shared.writers.mirrors.variants, [object]);
}

pub(in crate::actors) fn claim(shared: &SharedState, term: u64) {
    publish_claim(shared, term, ClaimDuration::Unlimited);
}

/// The findings that are shown, after everybody has done what there is to do.
async fn findings(shared: &SharedState) -> Vec<String> {
    sleep(Duration::from_millis(1)).await;
    let text = shared.series.exposition(Visibility::Shown).unwrap();
    let lines = text.lines();
    let lines = lines.filter(|line| line.starts_with("wva_findings{"));
    lines.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_found_is_shown_while_it_lasts() {
    let shared = leading(3);
    let running = Running::start(&shared);
    running.mailboxes.plans.put(plan(&shared, 1, 1));
    assert_eq!(findings(&shared).await, Vec::<String>::new());

    let mut proposal = plan(&shared, 1, 2);
    let models = Arc::from([Arc::from("M")]);
    proposal.gaps = Arc::new([(key(), MetricsGap::OtherModel { models })].into());
    let unscaled = VariantView { scalers: Scalers::Known(Arc::from([])), ..view(1) };
    show(&shared, unscaled);
    running.mailboxes.plans.put(proposal);
    let line = |code| format!(r#"wva_findings{{code="{code}",name="v",namespace="ns"}} 1"#);
    assert_eq!(findings(&shared).await, [line("WVA064"), line("WVA120")]);

    running.mailboxes.plans.put(plan(&shared, 1, 3));
    assert_eq!(findings(&shared).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_raise_is_shown_once_it_is_stored_or_waited_for_in_vain() {
    let shared = leading(3);
    let running = Running::start(&shared);
    let (plans, settled) = (&running.mailboxes.plans, &running.mailboxes.settled);

    plans.put(plan(&shared, 1, 1));
    assert_eq!(gauge(&shared).await, "3");

    plans.put(plan(&shared, 4, 2));
    assert_eq!(gauge(&shared).await, "3");
    assert_eq!(shared.records.desired(&key()), Some(Replicas(4)));
    let stored = |count| StatusWriteResult { key: key(), stored: Some(Replicas(count)) };
    settled.insert(stored(3));
    assert_eq!(gauge(&shared).await, "3", "an older count was stored");
    settled.insert(stored(4));
    assert_eq!(gauge(&shared).await, "4");

    plans.put(plan(&shared, 5, 3));
    assert_eq!(gauge(&shared).await, "4");
    sleep(STORAGE_PATIENCE).await;
    assert_eq!(gauge(&shared).await, "5", "nothing was stored in time");

    plans.put(plan(&shared, 6, 4));
    assert_eq!(gauge(&shared).await, "5");
    settled.insert(StatusWriteResult { key: key(), stored: None });
    assert_eq!(gauge(&shared).await, "6", "the write has failed");
}

/// A scaler with this count in place of the VariantAutoscaling.
fn declare(shared: &SharedState, uid: &str, count: &str) {
    let mirrors = &shared.writers.mirrors;
    list::<VariantAutoscaling>(&mirrors.variants, []);
    let object = json!({
        "metadata": {"namespace": "ns", "name": "v", "uid": uid, "managedFields": count_writer(), "annotations": {
            "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m", "llm-d.ai/desired-replicas": count,
        }},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "v"}, "maxReplicas": 9},
    });
    list::<HorizontalPodAutoscaler>(&mirrors.horizontal_pod_autoscalers, [object]);
}

#[tokio::test(start_paused = true)]
async fn a_scaler_keeps_its_count_when_a_variant_of_its_name_is_deleted() {
    let mut shared = leading(3);
    shared.readers.manager = "wva-me".into();
    let running = Running::start(&shared);
    running.mailboxes.plans.put(plan(&shared, 5, 1));
    sleep(STORAGE_PATIENCE).await;
    assert_eq!(gauge(&shared).await, "5");

    declare(&shared, "other", "20");
    let scaler = VariantView { uid: Arc::from("other"), desired: Some(Replicas(20)), ..view(1) };
    show(&shared, scaler);
    running.mailboxes.addresses.emitter.hint(EmitterMessage::ClaimChanged);
    assert_eq!(gauge(&shared).await, "20");
    assert_eq!(shared.records.decided(&key(), "other"), None);
    let snapshot = shared.snapshot(CycleId(2));
    assert_eq!(snapshot.variants[&key()].desired, Some(Replicas(20)));
}

/// Where another one stands for the variant and is in good order.
#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_scaler_of_the_name_of_a_variant_is_reported_once() {
    let shared = leading(3);
    let running = Running::start(&shared);
    let object = json!({
        "metadata": {"namespace": "ns", "name": "v", "annotations": {"llm-d.ai/managed": "true"}},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "v"}, "maxReplicas": 9},
    });
    let mirror = &shared.writers.mirrors.horizontal_pod_autoscalers;
    list::<HorizontalPodAutoscaler>(mirror, [object]);
    for (cycle, times) in [(1, 1), (2, 0)] {
        running.mailboxes.plans.put(plan(&shared, 1, cycle));
        assert_eq!(gauge(&shared).await, "3");
        let events = std::iter::from_fn(|| running.mailboxes.events.last());
        let wrong = events.filter(|one| one.notice.note.contains("llm-d.ai/model-id"));
        assert_eq!(wrong.count(), times, "cycle {cycle}");
    }
}

/// A variant without an object of its own, whose count stands in an annotation of its scaler.
#[tokio::test(start_paused = true)]
async fn a_raise_of_a_declared_variant_is_shown_once_it_is_stored_and_outlives_its_leader() {
    let mut shared = leading(3);
    shared.readers.manager = "wva-me".into();
    declare(&shared, "u", "3");
    let running = Running::start(&shared);
    running.mailboxes.plans.put(plan(&shared, 1, 1));
    assert_eq!(gauge(&shared).await, "3");
    running.mailboxes.plans.put(plan(&shared, 4, 2));
    assert_eq!(gauge(&shared).await, "3", "four are not stored");
    declare(&shared, "u", "4");
    running.mailboxes.settled.insert(StatusWriteResult { key: key(), stored: Some(Replicas(4)) });
    assert_eq!(gauge(&shared).await, "4");

    enter(&shared, &running);
    assert_eq!(gauge(&shared).await, "4", "a new leader begins with it");
}

/// The claim was lost and won again before the emitter came to look: in between another process led,
/// and stored more.
#[tokio::test(start_paused = true)]
async fn a_new_term_begins_with_what_is_stored_and_not_with_a_plan_of_an_earlier_one() {
    let (shared, running) = planned().await;

    store(&shared, 8);
    let now = VariantView { desired: Some(Replicas(8)), ..view(1) };
    show(&shared, now);
    running.mailboxes.addresses.emitter.hint(EmitterMessage::ClaimChanged);
    assert_eq!(gauge(&shared).await, "3", "in the same term the plan stands");
    enter(&shared, &running);
    assert_eq!(gauge(&shared).await, "8");
}

/// The new leader's mirror has been read anew, and the actor of the variant has yet to look.
#[tokio::test(start_paused = true)]
async fn a_new_term_begins_with_what_is_stored_though_the_board_is_behind() {
    let (shared, running) = planned().await;

    store(&shared, 8);
    enter(&shared, &running);
    assert_eq!(gauge(&shared).await, "8");
    let early = plan(&shared, 1, 2);
    assert_eq!(early.plan.decisions[&key()].target, Some(Replicas(8)));
    running.mailboxes.plans.put(early);
    assert_eq!(gauge(&shared).await, "8");
}

/// The object was created again under its name while no instance led, and the actor of the variant has yet to look.
#[tokio::test(start_paused = true)]
async fn a_new_term_takes_nothing_over_from_an_object_that_is_gone() {
    let shared = leading(1);
    let running = Running::start(&shared);
    running.mailboxes.plans.put(plan(&shared, 1, 1));
    let of_old_object = VariantView { desired: Some(Replicas(1)), ..view(1) };
    show(&shared, of_old_object);
    assert_eq!(gauge(&shared).await, "1", "one is wanted of three that exist");

    put(&shared, "v", &json!({}));
    enter(&shared, &running);
    assert_eq!(gauge(&shared).await, "3");
    let snapshot = shared.snapshot(CycleId(2));
    assert_eq!(snapshot.variants[&key()].desired, None);
}

/// It received no message about the new term, and what it finds in slot and records is of the old one.
#[tokio::test(start_paused = true)]
async fn an_emitter_that_was_dead_when_the_claim_came_back_keeps_nothing_of_the_term_before() {
    let (shared, running) = planned().await;
    let of_old_term = plan(&shared, 1, 2);
    drop(running);

    store(&shared, 8);
    let running = Running::with(&shared, Some(of_old_term.clone()));
    assert_eq!(gauge(&shared).await, "3", "in the same term the record stands");
    drop(running);
    claim(&shared, 3);
    let _running = Running::with(&shared, Some(of_old_term));
    assert_eq!(gauge(&shared).await, "8");
}

/// The term has begun, nothing was decided in it yet, and the last plan of the term before is at hand.
#[tokio::test(start_paused = true)]
async fn an_emitter_that_begins_anew_keeps_nothing_of_the_term_before() {
    let shared = leading(3);
    let running = Running::start(&shared);
    running.mailboxes.plans.put(plan(&shared, 5, 1));
    sleep(STORAGE_PATIENCE).await;
    assert_eq!(gauge(&shared).await, "5");

    store(&shared, 8);
    enter(&shared, &running);
    assert_eq!(gauge(&shared).await, "8", "which another one has stored");
    drop(running);
    let _running = Running::start(&shared);
    assert_eq!(gauge(&shared).await, "8");
    assert_eq!(shared.records.desired(&key()), Some(Replicas(8)));
}

/// It fails between any two of the things that a plan makes it do, and goes on with that plan.
#[tokio::test(start_paused = true)]
async fn a_plan_that_was_shown_by_halves_is_shown_whole() {
    for done in 1..=4 {
        let (shared, running) = planned().await;
        running.actors.befall(&Role::Emitter, Mishap::Torn(done));
        running.mailboxes.plans.put(plan(&shared, 5, 2));
        sleep(STORAGE_PATIENCE * 3).await;
        assert!(!running.actors.is_armed(&Role::Emitter), "after {done}");
        assert_eq!(gauge(&shared).await, "5", "after {done}");
        let last = shared.last_plan().map(|plan| plan.cycle);
        assert_eq!(last, Some(CycleId(2)), "after {done}");
        let record = shared.records.get(&key()).unwrap();
        assert_eq!(record.decided.cycle, Some(CycleId(2)), "after {done}");
    }
}
