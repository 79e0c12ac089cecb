//! The safety net: without usable metrics the count published last stays, else the current one.

use std::sync::Arc;

use serde::Serialize;

use super::params::ActuationMode;
use super::pending_decision::PendingDecision;
use super::plan::{Decision, DecisionOutcome, PlanStage, Step, VariantFigures};
use super::reason::{MetricsState, Reason, TargetProblem};
use super::router_queue::HeldQueue;
use super::snapshot::VariantView;
use super::units::Replicas;

/// Log text of every use of the safety net.
pub const LOG_TEXT: &str = "Safety net activated: emitted fallback metrics";

wva_base::named! {
    /// Where a fallback count comes from; the `fallbackSource` of the log line.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum FallbackSource {
        /// The count published last, zero included.
        PreviousDesired = "previous-desired",
        /// The replicas that exist.
        CurrentReplicas = "current-replicas",
    }
}

/// Where the count of a decision of the safety net comes from; `None` for any other decision.
pub fn fallback_source(decision: &Decision) -> Option<FallbackSource> {
    if decision.outcome != DecisionOutcome::SafetyNet {
        return None;
    }
    decision.steps.first().and_then(|step| match step.why {
        Reason::LastDesired => Some(FallbackSource::PreviousDesired),
        Reason::CurrentReplicas => Some(FallbackSource::CurrentReplicas),
        _ => None,
    })
}

/// Keeps every variant of a model whose metrics are not usable. One without replicas that wants none has not
/// failed. `queue` are the requests in the router, which raise no count either.
pub(super) fn hold(
    drafts: &mut [PendingDecision<'_>],
    state: MetricsState,
    queue: Option<HeldQueue>,
) {
    for draft in drafts {
        if draft.is_idle() {
            draft.metrics = MetricsState::NoReplicas;
            draft.keep(PlanStage::Saturation, Reason::NoReplicas);
        } else {
            draft.metrics = state;
            draft.outcome = DecisionOutcome::SafetyNet;
            let queue = queue.filter(|_| draft.scale.current > Replicas::ZERO);
            draft.keep(PlanStage::SafetyNet, Reason::NoUsableMetrics { state, queue });
        }
    }
}

/// Keeps a variant whose target is not known. `bounds` is absent where the object cannot be read.
pub(super) fn hold_unseen(
    view: &VariantView,
    problem: TargetProblem,
    bounds: Option<&super::bounds::Bounds>,
) -> Decision {
    let mut decision = unpublished(view, problem, DecisionOutcome::SafetyNet);
    let Some(desired) = view.desired else {
        return decision;
    };
    let step = |stage, to, why| Step { stage, from: desired, to, why };
    decision.target = Some(desired);
    decision.steps = vec![
        step(PlanStage::Base, desired, Reason::LastDesired),
        step(PlanStage::SafetyNet, desired, Reason::TargetUnusable { problem }),
    ];
    if let Some(bounds) = bounds {
        let (count, why) = bounds.clamp(desired);
        decision.target = Some(count);
        decision.steps.push(step(PlanStage::Bounds, count, why));
    }
    decision
}

pub(super) fn unpublished(
    view: &VariantView,
    problem: TargetProblem,
    outcome: DecisionOutcome,
) -> Decision {
    let count = view.desired.unwrap_or(Replicas::ZERO);
    Decision {
        key: view.key.clone(),
        uid: Arc::clone(&view.uid),
        model: view.model.clone(),
        role: view.template.role,
        accelerator: view.accelerator.clone(),
        cost: view.cost,
        current: None,
        target: None,
        outcome,
        metrics: MetricsState::NotEvaluated,
        figures: VariantFigures::default(),
        steps: vec![Step {
            stage: PlanStage::Base,
            from: count,
            to: count,
            why: Reason::TargetUnusable { problem },
        }],
        actuation: ActuationMode::default(),
        notes: Vec::new(),
    }
}
