//! `OptimizationReady`.

use super::{Condition, ConditionReason, ConditionStatus, ConditionType};
use crate::backlog::STANDS;
use crate::plan::{Action, Decision, DecisionOutcome, PlanStage, Step};
use crate::reason::{Basis, BlockReason, Reason, TargetProblem, ZeroBlock};
use crate::snapshot::{DeclaredBounds, VariantView};
use crate::spare::SpareTrigger;
use crate::units::Replicas;

pub(super) fn ready(view: &VariantView, decision: Option<&Decision>) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let (status, reason, mut message) = match decision {
        None => (
            Unknown,
            Reason::AwaitingFirstDecision,
            "No planning cycle has looked at this variant yet".to_owned(),
        ),
        Some(decision) => match decision.outcome {
            DecisionOutcome::Analyzed => match decision.unserved() {
                Some(because) => (False, Reason::RequestsWaiting, unserved(decision, because)),
                None => (True, Reason::SaturationOnlyMode, saturation_only(decision)),
            },
            DecisionOutcome::SafetyNet if decision.target.is_some() => {
                (False, Reason::SafetyNetActivated, safety_net(decision))
            }
            // Without a count of before, a target that cannot be read leaves nothing to fall back to.
            DecisionOutcome::SafetyNet | DecisionOutcome::Unmanaged => (
                False,
                Reason::SkippedProcessing,
                format!("No decision is published: {}", unusable(decision)),
            ),
        },
    };
    for note in notes(view, decision) {
        message.push_str(". ");
        message.push_str(&note);
    }
    Condition::new(ConditionType::OptimizationReady, status, reason, message)
}

/// Where analyzers voted, `decision of the analyzers: <action>`; else
/// `saturation-only decision: <reason> (target: <n> replicas)`, the reason being
/// `saturation-only mode: <action>` and what holds the variant or bounds it.
fn saturation_only(decision: &Decision) -> String {
    let voted = |step: &Step| matches!(step.stage, PlanStage::Optimizer | PlanStage::Hybrid);
    let mode = if decision.steps.iter().any(voted) {
        "decision of the analyzers"
    } else {
        "saturation-only decision: saturation-only mode"
    };
    let mut message = format!("{mode}: {}", decision.action());
    if let Some(because) = decision.decisive().and_then(|step| because(decision, step)) {
        message.push_str(", ");
        message.push_str(&because);
    }
    let expired = |step: &Step| matches!(step.why, Reason::TransitionExpired { .. });
    if decision.steps.iter().any(expired) {
        message.push_str(", a limit on waiting has passed");
    }
    message.push_str(&target_text(decision.target));
    message
}

/// The action compares with the replicas that exist, a step with the published count: where they disagree, both are
/// named.
fn because(decision: &Decision, step: &Step) -> Option<String> {
    let detail = detail(&step.why)?;
    let (exist, is_opposite) = match decision.action() {
        Action::NoChange => return Some(detail.to_owned()),
        Action::ScaleUp => {
            ("fewer", matches!(step.why, Reason::Shrunk { .. } | Reason::ScaledDown { .. }))
        }
        Action::ScaleDown => {
            ("more", matches!(step.why, Reason::Grown { .. } | Reason::ScaledUp { .. }))
        }
    };
    Some(match detail {
        BALANCE => "the published count is not applied yet".to_owned(),
        _ if matches!(step.why, Reason::NotMeasured { .. }) => {
            format!("{detail}, the published count is not applied yet")
        }
        detail if is_opposite => format!("{detail}, still {exist} exist"),
        detail => detail.to_owned(),
    })
}

/// `Requests have waited for two minutes, and nothing grows: <reason> (target: <n> replicas)`.
fn unserved(decision: &Decision, because: &Reason) -> String {
    let because = detail(because).unwrap_or("no analyzer needs more");
    format!(
        "Requests have waited for {} minutes, and nothing grows: {because}{}",
        STANDS.as_secs() / 60,
        target_text(decision.target)
    )
}

/// `Safety net activated: <what is kept> (target: <n> replicas)`.
fn safety_net(decision: &Decision) -> String {
    let kept = match decision.steps.first().map(|step| &step.why) {
        Some(Reason::LastDesired) => "the last desired count is kept",
        Some(Reason::CurrentReplicas) => "the current count is kept",
        _ => unusable(decision),
    };
    format!("Safety net activated: {kept}{}", target_text(decision.target))
}

fn target_text(target: Option<Replicas>) -> String {
    target.map_or_else(String::new, |target| format!(" (target: {target} replicas)"))
}

fn unusable(decision: &Decision) -> &'static str {
    let problem = decision.steps.iter().find_map(|step| match step.why {
        Reason::TargetUnusable { problem } => Some(problem),
        _ => None,
    });
    problem.map_or("there is nothing to decide on", TargetProblem::as_str)
}

/// Neither growth nor shrinking is due, for one of several reasons that a load in balance meets in
/// turns: each in its own words would be a write of the status in every other cycle.
const BALANCE: &str = "neither more nor fewer replicas are due";

fn arbitrated(basis: Basis) -> &'static str {
    match basis {
        Basis::SafetyOverride => "saturation keeps replicas that the queueing model would release",
        Basis::Saturation => "saturation decides",
        Basis::Model => "the queueing model decides",
        Basis::Neither => BALANCE,
    }
}

/// What a reason adds to the bare action, without its numbers.
fn detail(why: &Reason) -> Option<&'static str> {
    match why {
        Reason::InTransition { causes } => causes.first().map(|cause| cause.label()),
        Reason::AtMaximum { .. } | Reason::CutToMaximum { .. } | Reason::CutToCeiling { .. } => {
            Some("the maximum is reached")
        }
        Reason::AwaitsScaler { .. } => {
            Some("the published count would be enough and is not applied")
        }
        Reason::RaisedToMinimum { .. } => Some("the minimum is kept"),
        Reason::MinimumAboveGpus { .. } => Some("the minimum exceeds its GPUs or quotas"),
        Reason::HeldForStart { .. } => Some("GPUs are held for a start from zero"),
        Reason::BoundsConflict { .. } => Some("the maximum is below the minimum"),
        Reason::ShrinkWaits { .. } => Some("shrinking waits for a variant of the model"),
        Reason::ShrinkOnStale { .. } | Reason::ShrinkOnStaleRouter => {
            Some("metrics are too old to shrink on")
        }
        Reason::ShrinkOnPartial { .. } => Some("metrics are too incomplete to shrink on"),
        Reason::ShrinkOnSilent { .. } => Some("not every replica reports"),
        Reason::NoView { missing, .. } if missing.is_empty() => Some(NO_VIEW),
        Reason::NoView { .. } => Some("a signal is missing that its analyzers need"),
        Reason::NoUsableMetrics { .. } => Some("no replica of the variant reports"),
        Reason::NoReplicas => Some("there are no replicas"),
        Reason::Relapsed { .. } => Some("fewer replicas did not last at this load"),
        Reason::QueueHoldsRelease { .. } => {
            Some("nothing is released while requests wait in the router")
        }
        Reason::QueueStands { .. } => Some("requests in the router do not become fewer"),
        Reason::Unserved { because, .. } => detail(because),
        Reason::GrowthWaits { .. } => Some("the load on the newest replica is not known yet"),
        Reason::ReleaseCancelled { .. } => {
            Some("more is needed, and a release that is not applied is cancelled")
        }
        Reason::Woken { cause, .. } => Some(cause.in_short()),
        Reason::WakeRefused { obstacle, cause, by, .. } => Some(obstacle.in_short(*cause, by)),
        Reason::AwaitsDecode { .. } => Some("prefill waits for its decode to be ready"),
        Reason::WakeSignalFailed { .. } => Some("whether requests wait for it is not known"),
        // A load around a threshold meets balance and a busy model in turns.
        Reason::AtFloor { .. }
        | Reason::Steady { .. }
        | Reason::ZeroBlocked { block: ZeroBlock::Busy } => Some(BALANCE),
        Reason::NoRequests { .. } | Reason::ZeroBlocked { .. } => {
            Some("the boundary to zero decides")
        }
        Reason::GrownElsewhere { .. } => Some("another variant of the model grows"),
        Reason::ShrunkElsewhere { .. } => Some("another variant of the model shrinks"),
        Reason::Grown { trigger } => Some(lacking(*trigger)),
        Reason::Shrunk { .. } => Some("fewer replicas carry the load"),
        Reason::Arbitrated { basis, .. } => Some(arbitrated(*basis)),
        other => of_optimizer(other),
    }
}

fn lacking(trigger: SpareTrigger) -> &'static str {
    match (trigger.kv, trigger.queue) {
        (Some(_), Some(_)) => "spare KV cache and spare queue are below their triggers",
        (None, Some(_)) => "spare queue is below its trigger",
        (Some(_) | None, None) => "spare KV cache is below its trigger",
    }
}

fn of_optimizer(why: &Reason) -> Option<&'static str> {
    Some(match why {
        Reason::ScaledUp { .. } => "its analyzers need more capacity",
        Reason::ScaledDown { .. } => "its analyzers have capacity to spare",
        Reason::NotChosen { .. } | Reason::NotReleased { .. } => BALANCE,
        Reason::Straggles { .. } => "it is too slow to serve with the other variants",
        Reason::StartsStalled => "its last replicas are late or gated: other variants grow first",
        Reason::Ordered { .. } | Reason::CountedOn { .. } => {
            "replicas that are on order are enough"
        }
        Reason::NeedAtMaximum { .. } => "the maximum is reached",
        Reason::FedByPrefill { .. } => "prefill cannot feed more replicas",
        Reason::NotSized => "no analyzer knows the capacity of one replica",
        Reason::ModelGrows => "another role of the model needs capacity",
        Reason::LeftToSaturation => "saturation decides",
        Reason::NotMeasured { by: Some(_), .. } => {
            "slo has not measured its replicas yet, and saturation decides"
        }
        Reason::NotMeasured { by: None, .. } => {
            "slo has not measured its replicas yet, and percentages decide"
        }
        Reason::Held { hold } => held(hold),
        Reason::Limited { .. } | Reason::ShareLimited { .. } => "GPUs or quotas limit growth",
        Reason::BudgetUnknown { .. } => "BudgetUnknown: what GPUs allow is not known",
        Reason::GpusNotCounted(_) => "GpusNotCounted: limits cannot count GPUs of its replicas",
        Reason::Granted { .. } => "its analyzers need more capacity, and GPUs are free",
        Reason::ServedByOthers => "other variants of the model grow",
        why if why.is_rescale() => "a contended budget of GPUs is shared by priority",
        _ => return None,
    })
}

fn held(hold: &BlockReason) -> &'static str {
    match hold {
        BlockReason::Vetoed { .. } | BlockReason::Waiting { .. } => BALANCE,
        BlockReason::NoLiveVoter
        | BlockReason::Awaited { .. }
        | BlockReason::Undetermined { .. }
        | BlockReason::Unlearned { .. } => "an analyzer is silent",
        BlockReason::Unjudged { .. } => "another role of the model cannot be judged",
        BlockReason::NoView => NO_VIEW,
        BlockReason::Unsized { .. } => "the capacity of the model is not known",
    }
}

const NO_VIEW: &str = "no analyzer has a view on its role";

/// What the owner of the object should know about its fields.
fn notes(view: &VariantView, decision: Option<&Decision>) -> Vec<String> {
    let mut notes: Vec<String> = view.notes.iter().map(ToString::to_string).collect();
    match view.bounds {
        LEGACY_BOUNDS => notes.push(
            "minReplicas 1 and maxReplicas 2 are the original's schema defaults, which it stored in objects that set neither; remove maxReplicas or set the one that you want"
                .to_owned(),
        ),
        DeclaredBounds {
            min: Some(min),
            max: Some(max),
        } if min > max => {
            notes.push(format!(
                "minReplicas {min} is above maxReplicas {max}: the maximum holds until one of them is changed"
            ));
        }
        _ => {}
    }
    notes.extend(decision.into_iter().flat_map(|decision| decision.notes.iter().cloned()));
    notes
}

/// What the original's schema wrote into every object that left its bounds out.
const LEGACY_BOUNDS: DeclaredBounds =
    DeclaredBounds { min: Some(Replicas(1)), max: Some(Replicas(2)) };
