//! A controller with a planted defect.

use std::any::Any;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocations::Owner;
use futures::FutureExt as _;
use futures::future::{BoxFuture, pending};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::mutation::Mutation;
use crate::threads::locked;
use wva::cluster::kinds::WatchedKind;
use wva::cluster::permit::WritePermit;
use wva::cluster::project::variant::VariantRecord;
use wva::cluster::scale::ScaleReading;
use wva::cluster::status::StatusPatch;
use wva::hooks::ControllerHooks;
use wva::policy::condition::ConditionStatus;
use wva::policy::learned::Learned;
use wva::policy::lease::LeaseRecord;
use wva::policy::params::{DynamicSettings, TransitionLimits};
use wva::policy::plan::{Decision, DecisionOutcome, Plan, PlanStage, Step};
use wva::policy::pod_autoscaler::decide::AutoscalerAlgorithm;
use wva::policy::pod_autoscaler::state::DemandWindow;
use wva::policy::pod_autoscaler::{AutoscalerDecision, AutoscalerState};
use wva::policy::signal::FreshnessBands;
use wva::policy::snapshot::{ClusterSnapshot, MetricsSnapshot, Readiness};
use wva::policy::units::Replicas;
use wva::policy::zero::ActivityLog;
use wva::settings::generation::Generation;
use wva::settings::{Sources, start};
use wva::state::PlanProposal;
use wva::state::claim::{Claim, ClaimDuration, ClaimReader};
use wva_base::moment::{Moment, WallTime};
use wva_supervise::{SupervisionHooks, Writer};

/// The delay between two attempts of a controller that does not back off.
const UNPACED: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(super) struct Planted {
    mutation: Option<Mutation>,
    /// What is never let go, or kept until the next one comes.
    hoard: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Planted {
    pub(super) fn new(mutation: Option<Mutation>) -> Self {
        Self { mutation, hoard: Mutex::default() }
    }

    fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn either<T>(&self, mutation: Mutation, planted: T, usual: T) -> T {
        if self.has(mutation) { planted } else { usual }
    }

    fn swap(&self, what: Arc<dyn Any + Send + Sync>) -> Option<Arc<dyn Any + Send + Sync>> {
        let mut hoard = locked(&self.hoard);
        let before = hoard.pop();
        hoard.push(what);
        before
    }

    fn behind(&self, mutation: Mutation, proposal: PlanProposal) -> PlanProposal {
        if !self.has(mutation) {
            return proposal;
        }
        let before = self.swap(Arc::new(proposal.clone()));
        let before = before.and_then(|before| before.downcast_ref::<PlanProposal>().cloned());
        before.unwrap_or(proposal)
    }
}

/// Methods that each hold where one defect is planted.
macro_rules! planted {
    ($($method:ident: $mutation:ident,)+) => {
        $(fn $method(&self) -> bool {
            self.mutation == Some(Mutation::$mutation)
        })+
    };
}

impl ControllerHooks for Planted {
    planted! {
        leads_without_reading: TakeoverUnread,
        keeps_lease: LeaseNotReleased,
        shows_without_claim: FollowerShows,
        keeps_series: SeriesKept,
        keeps_autoscaler_series: AutoscalerSeriesKept,
        keeps_labels: LabelsKept,
        drops_failed_status: IntentDropped,
        hides_relisted_deletion: DeletionsUntold,
        forgets_clocks: ClocksForgotten,
        forgets_learned: LearnedLost,
        skips_collector_timer: CollectorIdle,
        accepts_old_timers: DeadlineUnchecked,
    }

    fn process_end(&self, claim: &ClaimReader) -> BoxFuture<'static, ()> {
        if !self.has(Mutation::ExitsWithoutLease) {
            return pending().boxed();
        }
        let mut claim = claim.follow();
        async move {
            let is_ours = |claim: &Claim| claim.hold != ClaimDuration::NotOurs;
            drop(claim.wait_for(is_ours).await);
            drop(claim.wait_for(|claim| !is_ours(claim)).await);
        }
        .boxed()
    }

    fn ungranted_permit(&self, term: u64) -> Option<WritePermit> {
        let hold = ClaimDuration::Unlimited;
        let claim = || ClaimReader::of(&Writer::new(Claim { term, hold }));
        self.has(Mutation::PermitUnasked).then(|| claim().permit_about_itself())
    }

    fn takes_lease(&self, record: &LeaseRecord, now: WallTime) -> bool {
        let is_over = |renewed| now.since(renewed) > record.duration;
        self.has(Mutation::LeaseTaken)
            || self.has(Mutation::LeaseDated) && record.renewed.is_some_and(is_over)
    }

    fn claim_end(&self, end: Duration, lease_duration: Duration) -> Duration {
        self.either(Mutation::ClaimOverlong, end + lease_duration * 2, end)
    }

    fn current_replicas(&self, current: Replicas) -> f64 {
        current.to_f64() + f64::from(u8::from(self.has(Mutation::CurrentInflated)))
    }

    fn ratio(&self, ratio: f64, desired: Replicas, current: Replicas) -> f64 {
        let unchecked = desired.to_f64() / current.to_f64();
        self.either(Mutation::RatioUnchecked, unchecked, ratio)
    }

    fn shown_plan(&self, proposal: PlanProposal) -> PlanProposal {
        self.behind(Mutation::ShownBehind, proposal)
    }

    fn status(&self, object: &VariantRecord, patch: &mut StatusPatch) {
        if self.has(Mutation::StatusUnversioned) {
            patch.resource_version = Arc::from("");
        }
        if self.has(Mutation::ConditionsStick) {
            stick(object, patch);
        }
    }

    fn retry_delay(&self, delay: Duration) -> Duration {
        self.either(Mutation::RetriesUnpaced, UNPACED, delay)
    }

    fn retry_after(&self, retry_after: Option<Duration>) -> Option<Duration> {
        retry_after.filter(|_| !self.has(Mutation::RetryAfterIgnored))
    }

    fn misses_change(&self, kind: WatchedKind, metadata: &ObjectMeta) -> bool {
        if !self.has(Mutation::PodsMissed) || kind != WatchedKind::Pod {
            return false;
        }
        let version = metadata.resource_version.as_deref();
        let version: Option<u64> = version.and_then(|version| version.parse().ok());
        version.is_some_and(|version| version.is_multiple_of(3))
    }

    fn keeps_deleted(&self, kind: WatchedKind) -> bool {
        let is_scaler = kind == WatchedKind::HorizontalPodAutoscaler;
        self.has(Mutation::DeletionsIgnored) || (self.has(Mutation::ScalersKept) && is_scaler)
    }

    fn keeps_scale(&self, known: Option<&ScaleReading>) -> bool {
        self.has(Mutation::ScalesKept) && matches!(known, Some(ScaleReading::Found(_)))
    }

    fn ignores_sources(&self, epoch: u64) -> bool {
        self.has(Mutation::ConfigDeaf) && epoch > 1
    }

    fn next_generation(
        &self,
        current: &Generation,
        next: Option<Generation>,
        sources: &Sources,
    ) -> Option<Generation> {
        let again = self.has(Mutation::GenerationRepeated).then(|| {
            let mut again = current.clone();
            again.number += 1;
            again
        });
        let mut next = next.or(again)?;
        if self.has(Mutation::StaticsFollow) {
            next.statics = start(sources).map_or(next.statics, |new| new.generation.statics);
        }
        Some(next)
    }

    fn learning_settings<'a>(&self, settings: &'a DynamicSettings) -> Cow<'a, DynamicSettings> {
        let mut seen = Cow::Borrowed(settings);
        if self.has(Mutation::ZeroPolicyIgnored) {
            let policy = &mut seen.to_mut().scale_to_zero;
            policy.otherwise = true;
            for entry in policy.entries.global.all_mut() {
                entry.enabled = None;
            }
        }
        seen
    }

    fn collected(&self, snapshot: &Arc<MetricsSnapshot>) {
        if self.has(Mutation::SnapshotsKept) {
            locked(&self.hoard).push(Arc::<MetricsSnapshot>::clone(snapshot));
        }
    }

    fn learned_at(&self, known: &Learned, now: Moment) -> Moment {
        if !self.has(Mutation::IdleSinceEver) || known.activity != ActivityLog::default() {
            return now;
        }
        Moment { monotonic: Duration::ZERO, ..now }
    }

    fn cycle(&self, counted: u64, of_life: u64) -> u64 {
        self.either(Mutation::CyclesFromOne, of_life, counted)
    }

    fn snapshot(&self, mut snapshot: ClusterSnapshot) -> ClusterSnapshot {
        if self.has(Mutation::RoutersUnheard) {
            snapshot.direct = Arc::default();
        }
        if self.has(Mutation::RecordsForgotten) && snapshot.cycle.0.is_multiple_of(10) {
            for view in snapshot.variants.values_mut() {
                Arc::make_mut(view).desired = None;
            }
        }
        if self.has(Mutation::SilenceOfSomeIgnored) {
            speak_for_the_silent(&mut snapshot);
        }
        snapshot
    }

    fn planning_settings<'a>(&self, settings: &'a DynamicSettings) -> Cow<'a, DynamicSettings> {
        let mut seen = self.learning_settings(settings);
        if self.has(Mutation::PendingIgnored) {
            seen.to_mut().transition_limits = TransitionLimits {
                pending: Duration::ZERO,
                unapplied: Duration::ZERO,
                silent: Duration::ZERO,
            };
        }
        if self.has(Mutation::AgeUnjudged) {
            seen.to_mut().freshness = FreshnessBands {
                fresh: Duration::MAX,
                stale: Duration::MAX,
                unavailable: Duration::MAX,
            };
        }
        if self.has(Mutation::BudgetForgotten)
            && let Some(entry) = &mut seen.to_mut().saturation.entries.global.default
        {
            entry.enable_limiter = None;
        }
        seen
    }

    fn plan(&self, mut plan: Plan) -> Plan {
        for decision in plan.decisions.values_mut() {
            if self.has(Mutation::BoundsUndone) {
                undo_bounds(decision);
            }
            let is_late = plan.at.monotonic.as_secs() % 600 > 45;
            if self.has(Mutation::NeverGrows) && is_moved(decision, Ordering::Greater)
                || self.has(Mutation::SlowShrink) && is_late && is_moved(decision, Ordering::Less)
            {
                undo(decision);
            }
            let is_silent = decision.outcome == DecisionOutcome::SafetyNet;
            if self.has(Mutation::SilenceLowers)
                && is_silent
                && decision.target > Some(Replicas::ONE)
            {
                lower(decision, PlanStage::SafetyNet);
            }
            if self.has(Mutation::ZeroUnasked) && decision.target == Some(Replicas::ONE) {
                lower(decision, PlanStage::Zero);
            }
        }
        plan
    }

    fn autoscaler_state(&self, mut state: AutoscalerState, now: Moment) -> AutoscalerState {
        if self.has(Mutation::PanicEndless)
            && let Some(panic) = &mut state.panic
        {
            panic.exceeded = now;
        }
        if self.has(Mutation::WindowTakenFull) {
            let windows = state.windows.into_iter();
            state.windows = windows.map(|window| filled(window, now)).collect();
        }
        state
    }

    fn autoscaler_decision(&self, mut decision: AutoscalerDecision) -> AutoscalerDecision {
        let is_by_load = decision.algorithm != AutoscalerAlgorithm::BoundaryCheck;
        if self.has(Mutation::AutoscalerNeverGrows) && is_by_load {
            decision.desired = decision.desired.min(decision.current);
        }
        decision
    }

    fn proposal(&self, proposal: PlanProposal) -> PlanProposal {
        self.behind(Mutation::PlanBehind, proposal)
    }
}

/// The supervision of one process: whose its allocations are, and its defect.
#[derive(Debug)]
pub(super) struct PlantedSupervision {
    pub(super) owner: Owner,
    pub(super) mutation: Option<Mutation>,
}

impl SupervisionHooks for PlantedSupervision {
    fn poll(&self, poll: &mut dyn FnMut()) {
        let _scope = self.owner.enter();
        poll();
    }

    planted! {
        ignores_budget: BudgetIgnored,
        forgets_restart: RestartForgotten,
        forgets_sweep: SweepForgotten,
        counts_pause_as_stall: PauseTakenForHang,
    }
}

fn filled((source, window): (String, DemandWindow), now: Moment) -> (String, DemandWindow) {
    let mut value = serde_json::to_value(&window).unwrap_or_default();
    if let Some(since) = value.pointer_mut("/since") {
        *since =
            serde_json::to_value(Moment { monotonic: Duration::ZERO, ..now }).unwrap_or_default();
    }
    (source, serde_json::from_value(value).unwrap_or(window))
}

fn stick(object: &VariantRecord, patch: &mut StatusPatch) {
    let known = object.status.conditions.iter();
    let stuck: Vec<_> =
        known.filter(|known| known.status == ConditionStatus::False.as_str()).collect();
    for condition in &mut patch.status.conditions {
        if let Some(known) = stuck.iter().find(|known| known.type_ == condition.type_) {
            condition.clone_from(known);
        }
    }
}

/// Lets ready replicas that do not say how loaded they are say what another one of their variant says.
fn speak_for_the_silent(snapshot: &mut ClusterSnapshot) {
    let metrics = Arc::make_mut(&mut snapshot.metrics);
    for view in snapshot.variants.values() {
        let Some(samples) = metrics.models.get_mut(&view.model) else {
            continue;
        };
        let ready = view.pods.iter();
        let ready = ready.filter(|pod| pod.readiness == Readiness::Ready);
        let (speaking, silent): (Vec<_>, Vec<_>) = ready.partition(|pod| {
            let own = samples.get(&pod.name);
            own.is_some_and(|own| own.kv_usage.is_some() && own.queue_length.is_some())
        });
        let one = speaking.first().and_then(|pod| samples.get(&pod.name).cloned());
        let Some(one) = one else {
            continue;
        };
        for pod in silent {
            samples.insert(Arc::clone(&pod.name), one.clone());
        }
    }
}

/// Whether the count moved this way for the sake of load.
fn is_moved(decision: &Decision, way: Ordering) -> bool {
    let by_rule = |step: &Step| {
        matches!(step.stage, PlanStage::Bounds | PlanStage::Zero) && step.from != step.to
    };
    let base = decision.steps.first().map(|step| step.from);
    base > Some(Replicas::ZERO)
        && decision.target.cmp(&base) == way
        && !decision.steps.iter().any(by_rule)
}

fn undo(decision: &mut Decision) {
    decision.steps.truncate(1);
    if let Some(first) = decision.steps.first_mut() {
        first.to = first.from;
        decision.target = Some(first.from);
    }
}

fn undo_bounds(decision: &mut Decision) {
    let last = decision.steps.last_mut();
    if let Some(step) = last.filter(|step| step.stage == PlanStage::Bounds) {
        step.to = step.from;
        decision.target = Some(step.from);
    }
}

fn lower(decision: &mut Decision, stage: PlanStage) {
    let (Some(from), Some(last)) = (decision.target, decision.steps.last()) else {
        return;
    };
    let to = from.minus_one();
    let why = last.why.clone();
    decision.target = Some(to);
    decision.steps.push(Step { stage, from, to, why });
}
