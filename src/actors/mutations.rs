//! What planted defects make of settings and plans.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::project::variant::VariantRecord;
use crate::cluster::scale::ScaleReading;
use crate::cluster::status::StatusPatch;
use crate::env::{Mutation, Mutations};
use crate::policy::condition::ConditionStatus;
use crate::policy::learned::Learned;
use crate::policy::lease::LeaseRecord;
use crate::policy::params::{DynamicSettings, TransitionLimits};
use crate::policy::plan::{Decision, DecisionOutcome, Plan, PlanStage, Step};
use crate::policy::signal::FreshnessBands;
use crate::policy::snapshot::{ClusterSnapshot, MetricsSnapshot, Readiness};
use crate::policy::units::Replicas;
use crate::policy::zero::ActivityLog;
use crate::state::claim::ClaimDuration;
use crate::state::{PlanProposal, Readers};
use wva_base::moment::{Moment, WallTime};

/// How long nobody waits who does not leave the API server alone.
const UNPACED: Duration = Duration::from_millis(50);

/// Whether a flawed controller takes a lease that is somebody else's.
pub(super) fn takes(mutations: &Mutations, record: &LeaseRecord, now: WallTime) -> bool {
    let is_over = |renewed| now.since(renewed) > record.duration;
    mutations.has(Mutation::LeaseTaken)
        || mutations.has(Mutation::LeaseDated) && record.renewed.is_some_and(is_over)
}

/// The settings as a flawed controller reads them.
pub(super) fn settings<'a>(
    mutations: &Mutations,
    settings: &'a DynamicSettings,
) -> Cow<'a, DynamicSettings> {
    let mut seen = allowing(mutations, settings);
    if mutations.has(Mutation::PendingIgnored) {
        seen.to_mut().transition_limits = TransitionLimits {
            pending: Duration::ZERO,
            unapplied: Duration::ZERO,
            silent: Duration::ZERO,
        };
    }
    if mutations.has(Mutation::AgeUnjudged) {
        seen.to_mut().freshness = FreshnessBands {
            fresh: Duration::MAX,
            stale: Duration::MAX,
            unavailable: Duration::MAX,
        };
    }
    #[cfg(feature = "sim")]
    if mutations.has(Mutation::BudgetForgotten)
        && let Some(entry) = &mut seen.to_mut().saturation.entries.global.default
    {
        entry.enable_limiter = None;
    }
    seen
}

/// The settings by which a flawed controller collects and learns.
pub(super) fn allowing<'a>(
    mutations: &Mutations,
    settings: &'a DynamicSettings,
) -> Cow<'a, DynamicSettings> {
    let mut seen = Cow::Borrowed(settings);
    if mutations.has(Mutation::ZeroPolicyIgnored) {
        let policy = &mut seen.to_mut().scale_to_zero;
        policy.otherwise = true;
        for entry in policy.entries.global.all_mut() {
            entry.enabled = None;
        }
    }
    seen
}

/// The plan as a flawed controller publishes it.
pub(super) fn plan(mutations: &Mutations, mut plan: Plan) -> Plan {
    for decision in plan.decisions.values_mut() {
        if mutations.has(Mutation::BoundsUndone) {
            undo_bounds(decision);
        }
        let is_late = plan.at.monotonic.as_secs() % 600 > 45;
        if mutations.has(Mutation::NeverGrows) && is_moved(decision, Ordering::Greater)
            || mutations.has(Mutation::SlowShrink) && is_late && is_moved(decision, Ordering::Less)
        {
            undo(decision);
        }
        let is_silent = decision.outcome == DecisionOutcome::SafetyNet;
        if mutations.has(Mutation::SilenceLowers)
            && is_silent
            && decision.target > Some(Replicas::ONE)
        {
            lower(decision, PlanStage::SafetyNet);
        }
        if mutations.has(Mutation::ZeroUnasked) && decision.target == Some(Replicas::ONE) {
            lower(decision, PlanStage::Zero);
        }
    }
    plan
}

/// The time of a collection as a flawed controller takes it that knows this much.
pub(super) fn taught_at(mutations: &Mutations, known: &Learned, now: Moment) -> Moment {
    if !mutations.has(Mutation::IdleSinceEver) || known.activity != ActivityLog::default() {
        return now;
    }
    Moment {
        monotonic: Duration::ZERO,
        ..now
    }
}

/// What is known, as a flawed controller knows it.
pub(super) fn snapshot(mutations: &Mutations, mut snapshot: ClusterSnapshot) -> ClusterSnapshot {
    if mutations.has(Mutation::RoutersUnheard) {
        snapshot.direct = Arc::default();
    }
    if mutations.has(Mutation::RecordsForgotten) && snapshot.cycle.0.is_multiple_of(10) {
        for view in snapshot.variants.values_mut() {
            Arc::make_mut(view).desired = None;
        }
    }
    if mutations.has(Mutation::SilenceOfSomeIgnored) {
        speak_for_the_silent(&mut snapshot);
    }
    snapshot
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
        let (heard, silent): (Vec<_>, Vec<_>) = ready.partition(|pod| {
            let own = samples.get(&pod.name);
            own.is_some_and(|own| own.kv_usage.is_some() && own.queue_length.is_some())
        });
        let one = heard
            .first()
            .and_then(|pod| samples.get(&pod.name).cloned());
        let Some(one) = one else {
            continue;
        };
        for pod in silent {
            samples.insert(Arc::clone(&pod.name), one.clone());
        }
    }
}

/// Ready when a flawed controller has led and leads no more, so that it ends.
pub(crate) async fn has_lost_its_lease(shared: &Readers) {
    if !shared.mutations.has(Mutation::ExitsWithoutLease) {
        return std::future::pending().await;
    }
    let mut claim = shared.claim.follow();
    drop(
        claim
            .wait_for(|claim| claim.hold != ClaimDuration::NotOurs)
            .await,
    );
    drop(
        claim
            .wait_for(|claim| claim.hold == ClaimDuration::NotOurs)
            .await,
    );
}

/// What a flawed controller does with a collection.
pub(super) fn collected(mutations: &Mutations, snapshot: &Arc<MetricsSnapshot>) {
    if mutations.has(Mutation::SnapshotsKept) {
        mutations.hoard(Arc::<MetricsSnapshot>::clone(snapshot));
    }
}

/// The plan that is published instead of this one.
pub(super) fn published(mutations: &Mutations, proposal: PlanProposal) -> PlanProposal {
    behind(mutations, Mutation::PlanBehind, proposal)
}

/// The plan whose counts are shown instead of those of this one.
pub(super) fn shown(mutations: &Mutations, proposal: PlanProposal) -> PlanProposal {
    behind(mutations, Mutation::ShownBehind, proposal)
}

fn behind(mutations: &Mutations, mutation: Mutation, proposal: PlanProposal) -> PlanProposal {
    if !mutations.has(mutation) {
        return proposal;
    }
    let before = mutations.swap(Arc::new(proposal.clone()));
    let before = before.and_then(|before| before.downcast_ref::<PlanProposal>().cloned());
    before.unwrap_or(proposal)
}

/// The status of an object as a flawed controller stores it.
pub(super) fn status(mutations: &Mutations, object: &VariantRecord, patch: &mut StatusPatch) {
    if !mutations.has(Mutation::ConditionsStick) {
        return;
    }
    let known = object.status.conditions.iter();
    let stuck: Vec<_> = known
        .filter(|known| known.status == ConditionStatus::False.as_str())
        .collect();
    for condition in &mut patch.status.conditions {
        if let Some(known) = stuck.iter().find(|known| known.type_ == condition.type_) {
            condition.clone_from(known);
        }
    }
}

/// Whether a flawed controller keeps what a scale said before.
pub(super) fn keeps_scale(mutations: &Mutations, known: Option<&ScaleReading>) -> bool {
    mutations.has(Mutation::ScalesKept) && matches!(known, Some(ScaleReading::Found(_)))
}

/// How long a flawed controller waits before it tries again what has failed.
pub(super) fn pause(mutations: &Mutations, delay: Duration) -> Duration {
    if mutations.has(Mutation::RetriesUnpaced) {
        UNPACED
    } else {
        delay
    }
}

/// For how long a flawed controller leaves the API server alone that asks for so much.
pub(super) fn asked(mutations: &Mutations, time: Option<Duration>) -> Option<Duration> {
    time.filter(|_| !mutations.has(Mutation::RetryAfterIgnored))
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

/// Takes everything back.
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
    decision.steps.push(Step {
        stage,
        from,
        to,
        why,
    });
}
