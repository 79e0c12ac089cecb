//! What planted defects make of settings and plans.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::env::{Flaw, Flaws};
use crate::policy::learned::Learned;
use crate::policy::moment::Moment;
use crate::policy::plan::{Decision, Outcome, Plan, Stage, Step};
use crate::policy::snapshot::{ClusterSnapshot, MetricsSnapshot};
use crate::policy::units::Replicas;
use crate::policy::zero::ActivityLog;
use crate::settings::{DynamicSettings, TransitionLimits};

/// The settings as a flawed controller reads them.
pub(super) fn settings<'a>(
    flaws: &Flaws,
    settings: &'a DynamicSettings,
) -> Cow<'a, DynamicSettings> {
    if !flaws.has(Flaw::PendingIgnored) {
        return Cow::Borrowed(settings);
    }
    let mut seen = settings.clone();
    seen.transition_limits = TransitionLimits {
        pending: Duration::ZERO,
        unapplied: Duration::ZERO,
        silent: Duration::ZERO,
    };
    Cow::Owned(seen)
}

/// The plan as a flawed controller publishes it.
pub(super) fn plan(flaws: &Flaws, mut plan: Plan) -> Plan {
    for decision in plan.decisions.values_mut() {
        if flaws.has(Flaw::BoundsUndone) {
            undo_bounds(decision);
        }
        let is_silent = decision.outcome == Outcome::SafetyNet;
        if flaws.has(Flaw::SilenceLowers) && is_silent && decision.target > Some(Replicas::ONE) {
            lower(decision, Stage::SafetyNet);
        }
        if flaws.has(Flaw::ZeroUnasked) && decision.target == Some(Replicas::ONE) {
            lower(decision, Stage::Zero);
        }
    }
    plan
}

/// The time of a collection as a flawed controller takes it that knows this much.
pub(super) fn taught_at(flaws: &Flaws, known: &Learned, now: Moment) -> Moment {
    if !flaws.has(Flaw::IdleSinceEver) || known.activity != ActivityLog::default() {
        return now;
    }
    Moment {
        monotonic: Duration::ZERO,
        ..now
    }
}

/// What is known, as a flawed controller knows it.
pub(super) fn snapshot(flaws: &Flaws, mut snapshot: ClusterSnapshot) -> ClusterSnapshot {
    if flaws.has(Flaw::RoutersUnheard) {
        snapshot.direct = Arc::default();
    }
    snapshot
}

/// What a flawed controller does with a collection.
pub(super) fn collected(flaws: &Flaws, snapshot: &Arc<MetricsSnapshot>) {
    if flaws.has(Flaw::SnapshotsKept) {
        flaws.hoard(Arc::<MetricsSnapshot>::clone(snapshot));
    }
}

fn undo_bounds(decision: &mut Decision) {
    let last = decision.steps.last_mut();
    if let Some(step) = last.filter(|step| step.stage == Stage::Bounds) {
        step.to = step.from;
        decision.target = Some(step.from);
    }
}

fn lower(decision: &mut Decision, stage: Stage) {
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
