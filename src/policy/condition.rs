//! The conditions of one variant, as they are judged now. Messages hold targets and reasons, never
//! measurements, so that they stay the same while the situation does.

mod actuation;
mod conflict;
mod notes;

pub use conflict::conflict;

use serde::Serialize;

use super::limit::WhyLimited;
use super::optimize::WhyShared;
use super::plan::{Decision, MetricsState, Outcome, Stage, Step, TargetProblem, Why};
use super::snapshot::{TargetView, VariantView};
use super::units::Replicas;
use super::why::listed;

/// Types of condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ConditionType {
    /// The scale target was found and belongs to this variant alone.
    TargetResolved,
    /// There are metrics to decide on.
    MetricsAvailable,
    /// A decision was made on them.
    OptimizationReady,
    /// Something follows what is published.
    ActuationReady,
    /// Target, metrics and decision together.
    Ready,
    /// Another controller claims the object too; absent while none does.
    ControllerConflict,
}

impl ConditionType {
    /// The text that Kubernetes stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TargetResolved => "TargetResolved",
            Self::MetricsAvailable => "MetricsAvailable",
            Self::OptimizationReady => "OptimizationReady",
            Self::ActuationReady => "ActuationReady",
            Self::Ready => "Ready",
            Self::ControllerConflict => "ControllerConflict",
        }
    }
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It cannot be told.
    Unknown,
}

impl ConditionStatus {
    /// The text that Kubernetes stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One word why a condition has its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ConditionReason {
    /// The target was found.
    TargetFound,
    /// The target does not exist.
    TargetNotFound,
    /// The target has not been seen yet.
    TargetUnknown,
    /// Several variants name the target.
    TargetContested,
    /// The kind of the target cannot be scaled.
    UnsupportedTargetKind,
    /// The object breaks its schema.
    MalformedObject,
    /// `Ready` only: the target Deployment does not exist.
    DeploymentNotFound,
    /// Metrics are there.
    MetricsFound,
    /// Metrics are not there.
    MetricsMissing,
    /// Metrics are too old.
    MetricsStale,
    /// Prometheus did not answer.
    PrometheusError,
    /// The target has no replicas that could be measured.
    NoReplicas,
    /// V1 decided.
    SaturationOnlyMode,
    /// The safety net decided.
    SafetyNetActivated,
    /// Nothing is decided for this variant.
    SkippedProcessing,
    /// No cycle has looked at the variant yet.
    AwaitingFirstDecision,
    /// A scaler follows, as far as can be seen.
    ScalerFollows,
    /// Scalers have not been listed yet.
    ScalersUnknown,
    /// Nothing scales the target.
    NoScaler,
    /// Several scalers scale the target.
    SeveralScalers,
    /// The scaler does not read this variant's count.
    CountNotRead,
    /// The scaler makes something else of the count.
    WrongTarget,
    /// The scaler is paused.
    ScalerPaused,
    /// The scaler says that it does not work.
    ScalerFailing,
    /// The scaler's minimum is too high.
    ScalerMinimum,
    /// The scaler's maximum is too low.
    ScalerMaximum,
    /// The scaler ignores small steps.
    ScalerTolerance,
    /// The scaler counts a missing value as 0.
    NullCountsAsZero,
    /// Another controller holds the object.
    OtherController,
    /// Somebody else publishes the same variant.
    SecondSeries,
    /// `Ready` only: target, metrics and decision are there.
    VariantReady,
    /// `Ready` only: the variant's own actor keeps failing.
    VariantQuarantined,
}

impl ConditionReason {
    /// The text that Kubernetes stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TargetFound => "TargetFound",
            Self::TargetNotFound => "TargetNotFound",
            Self::TargetUnknown => "TargetUnknown",
            Self::TargetContested => "TargetContested",
            Self::UnsupportedTargetKind => "UnsupportedTargetKind",
            Self::MalformedObject => "MalformedObject",
            Self::DeploymentNotFound => "DeploymentNotFound",
            Self::MetricsFound => "MetricsFound",
            Self::MetricsMissing => "MetricsMissing",
            Self::MetricsStale => "MetricsStale",
            Self::PrometheusError => "PrometheusError",
            Self::NoReplicas => "NoReplicas",
            Self::SaturationOnlyMode => "SaturationOnlyMode",
            Self::SafetyNetActivated => "SafetyNetActivated",
            Self::SkippedProcessing => "SkippedProcessing",
            Self::AwaitingFirstDecision => "AwaitingFirstDecision",
            Self::ScalerFollows => "ScalerFollows",
            Self::ScalersUnknown => "ScalersUnknown",
            Self::NoScaler => "NoScaler",
            Self::SeveralScalers => "SeveralScalers",
            Self::CountNotRead => "CountNotRead",
            Self::WrongTarget => "WrongTarget",
            Self::ScalerPaused => "ScalerPaused",
            Self::ScalerFailing => "ScalerFailing",
            Self::ScalerMinimum => "ScalerMinimum",
            Self::ScalerMaximum => "ScalerMaximum",
            Self::ScalerTolerance => "ScalerTolerance",
            Self::NullCountsAsZero => "NullCountsAsZero",
            Self::OtherController => "OtherController",
            Self::SecondSeries => "SecondSeries",
            Self::VariantReady => "VariantReady",
            Self::VariantQuarantined => "VariantQuarantined",
        }
    }
}

/// One condition, without the times that its writer adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Its type.
    pub kind: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: ConditionReason,
    /// Why, in words.
    pub message: String,
}

impl Condition {
    fn new(
        kind: ConditionType,
        status: ConditionStatus,
        reason: ConditionReason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            status,
            reason,
            message: message.into(),
        }
    }
}

impl Condition {
    /// `Ready` turned false, for a variant whose own actor keeps failing; the others stay.
    #[must_use]
    pub fn quarantined(self, why: &str) -> Self {
        if self.kind != ConditionType::Ready {
            return self;
        }
        let message = format!(
            "The controller's own handling of this object keeps failing ({why}); its last replica count is kept, and it is tried again every 5 minutes or when the object changes"
        );
        Self::new(
            self.kind,
            ConditionStatus::False,
            ConditionReason::VariantQuarantined,
            message,
        )
    }
}

/// Every condition of a variant.
pub type Conditions = [Condition; 5];

/// The conditions of a variant, from its view and the newest decision about it.
pub fn conditions(view: &VariantView, decision: Option<&Decision>) -> Conditions {
    let target = target_resolved(view);
    let metrics = metrics_available(decision);
    let optimization = optimization_ready(view, decision);
    let ready = ready(view, decision, &target, &metrics);
    let actuation = actuation::ready(view, decision);
    [target, metrics, optimization, actuation, ready]
}

fn target_resolved(view: &VariantView) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let (status, reason, message) = match &view.target {
        TargetView::Resolved(target) => (
            True,
            Reason::TargetFound,
            format!("Scale target {} {} found", target.key.kind, target.key.name),
        ),
        TargetView::NotFound { target } => (
            False,
            Reason::TargetNotFound,
            format!("Scale target {} {} not found", target.kind, target.name),
        ),
        TargetView::Unknown { target } => (
            Unknown,
            Reason::TargetUnknown,
            format!(
                "Scale target {} {} has not been seen yet",
                target.kind, target.name
            ),
        ),
        TargetView::Contested { target, claimants } => {
            let mut message = format!(
                "Scale target {} {} is named by several VariantAutoscalings, and none of them scales it; keep one of: ",
                target.kind, target.name
            );
            // Writing to a string does not fail.
            listed(&mut message, claimants).unwrap_or_default();
            (False, Reason::TargetContested, message)
        }
        TargetView::UnsupportedKind { kind, name, why } => (
            False,
            Reason::UnsupportedTargetKind,
            format!("Scale target {kind} {name} cannot be scaled: {why}"),
        ),
        TargetView::Malformed { why } => (False, Reason::MalformedObject, why.to_string()),
    };
    Condition::new(ConditionType::TargetResolved, status, reason, message)
}

fn metrics_available(decision: Option<&Decision>) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let (status, reason, message) = match decision.map(|decision| decision.metrics) {
        None => (
            Unknown,
            Reason::AwaitingFirstDecision,
            "No planning cycle has looked at this variant yet",
        ),
        Some(MetricsState::Available) => (
            True,
            Reason::MetricsFound,
            "Saturation metrics data is available for scaling decisions",
        ),
        Some(MetricsState::Missing) => (
            False,
            Reason::MetricsMissing,
            "No saturation metrics available - pods may not be ready or metrics not yet scraped",
        ),
        Some(MetricsState::Stale) => (
            False,
            Reason::MetricsStale,
            "Saturation metrics are too old to act on - check that Prometheus still scrapes the pods",
        ),
        Some(MetricsState::QueryFailed) => (
            False,
            Reason::PrometheusError,
            "Prometheus did not answer the saturation queries - see the controller's log for the error",
        ),
        Some(MetricsState::NoReplicas) => (
            False,
            Reason::NoReplicas,
            "The scale target has no replicas, so there is nothing to measure",
        ),
        Some(MetricsState::NotEvaluated) => (
            Unknown,
            Reason::SkippedProcessing,
            "Metrics are not looked at while the scale target is not resolved",
        ),
    };
    Condition::new(ConditionType::MetricsAvailable, status, reason, message)
}

fn optimization_ready(view: &VariantView, decision: Option<&Decision>) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let (status, reason, mut message) = match decision {
        None => (
            Unknown,
            Reason::AwaitingFirstDecision,
            "No planning cycle has looked at this variant yet".to_owned(),
        ),
        Some(decision) => match decision.outcome {
            Outcome::Analyzed => (True, Reason::SaturationOnlyMode, saturation_only(decision)),
            Outcome::SafetyNet if decision.target.is_some() => {
                (False, Reason::SafetyNetActivated, safety_net(decision))
            }
            // Without a count of before, a target that cannot be read leaves nothing to fall back to.
            Outcome::SafetyNet | Outcome::Unmanaged => (
                False,
                Reason::SkippedProcessing,
                format!("No decision is published: {}", unusable(decision)),
            ),
        },
    };
    for note in notes::of(view) {
        message.push_str(". ");
        message.push_str(&note);
    }
    Condition::new(ConditionType::OptimizationReady, status, reason, message)
}

/// Where analyzers voted, `decision of the analyzers: <action>`; else
/// `saturation-only decision: <reason> (target: <n> replicas)`, the reason being
/// `saturation-only mode: <action>` and what holds the variant or bounds it.
fn saturation_only(decision: &Decision) -> String {
    let voted = |step: &Step| matches!(step.stage, Stage::Optimizer | Stage::Hybrid);
    let mode = if decision.steps.iter().any(voted) {
        "decision of the analyzers"
    } else {
        "saturation-only decision: saturation-only mode"
    };
    let mut message = format!("{mode}: {}", decision.action());
    if let Some(detail) = decision.decisive().and_then(|step| detail(&step.why)) {
        message.push_str(", ");
        message.push_str(detail);
    }
    let expired = |step: &Step| matches!(step.why, Why::TransitionExpired { .. });
    if decision.steps.iter().any(expired) {
        message.push_str(", a limit on waiting has passed");
    }
    message.push_str(&target_text(decision.target));
    message
}

/// `Safety net activated: <what is kept> (target: <n> replicas)`.
fn safety_net(decision: &Decision) -> String {
    let kept = match decision.steps.first().map(|step| &step.why) {
        Some(Why::LastDesired) => "the last desired count is kept",
        Some(Why::CurrentReplicas) => "the current count is kept",
        _ => unusable(decision),
    };
    format!(
        "Safety net activated: {kept}{}",
        target_text(decision.target)
    )
}

fn target_text(target: Option<Replicas>) -> String {
    target.map_or_else(String::new, |target| {
        format!(" (target: {target} replicas)")
    })
}

fn unusable(decision: &Decision) -> &'static str {
    let problem = decision.steps.iter().find_map(|step| match step.why {
        Why::TargetUnusable { problem } => Some(problem),
        _ => None,
    });
    problem.map_or("there is nothing to decide on", TargetProblem::as_str)
}

/// What a reason adds to the bare action, without its numbers.
fn detail(why: &Why) -> Option<&'static str> {
    match why {
        Why::InTransition { causes } => causes.first().map(|cause| cause.label()),
        Why::AtMaximum { .. } | Why::CutToMaximum { .. } | Why::CutToCeiling { .. } => {
            Some("the maximum is reached")
        }
        Why::AwaitsScaler { .. } => Some("the published count would be enough and is not applied"),
        Why::RaisedToMinimum { .. } => Some("the minimum is kept"),
        Why::BoundsConflict { .. } => Some("the maximum is below the minimum"),
        Why::ShrinkWaits { .. } => Some("shrinking waits for a variant of the model"),
        Why::ShrinkOnStale { .. } | Why::ShrinkOnStaleRouter => {
            Some("metrics are too old to shrink on")
        }
        Why::ShrinkOnPartial { .. } => Some("metrics are too incomplete to shrink on"),
        Why::ShrinkOnSilent { .. } => Some("not every replica reports"),
        Why::NoView { .. } => Some("a signal is missing that its analyzers need"),
        Why::NoUsableMetrics { .. } => Some("no replica of the variant reports"),
        Why::NoReplicas => Some("there are no replicas"),
        Why::Shared(WhyShared::Limited { .. }) | Why::Limited(WhyLimited::Limited { .. }) => {
            Some("GPUs or quotas limit growth")
        }
        Why::Shared(WhyShared::BudgetUnknown { .. })
        | Why::Limited(WhyLimited::BudgetUnknown { .. }) => {
            Some("BudgetUnknown: nobody knows what GPUs allow")
        }
        Why::Rescaled(_) => Some("a contended budget of GPUs is shared by priority"),
        Why::Relapsed { .. } => Some("fewer replicas did not last at this load"),
        Why::Woken { cause, .. } => Some(cause.in_short()),
        Why::WakeRefused {
            obstacle,
            cause,
            by,
            ..
        } => Some(obstacle.in_short(*cause, by)),
        Why::WakeSignalFailed { .. } => Some("nobody knows whether requests wait for it"),
        Why::Zero(_) => Some("the boundary to zero decides"),
        Why::GrownElsewhere { .. } => Some("another variant of the model grows"),
        Why::ShrunkElsewhere { .. } => Some("another variant of the model shrinks"),
        Why::Optimized(_)
        | Why::Shared(_)
        | Why::Limited(_)
        | Why::Withheld(_)
        | Why::Arbitrated { .. }
        | Why::LastDesired
        | Why::CurrentReplicas
        | Why::Grown { .. }
        | Why::Shrunk { .. }
        | Why::AtFloor { .. }
        | Why::Steady { .. }
        | Why::TransitionExpired { .. }
        | Why::WithinBounds { .. }
        | Why::TargetUnusable { .. } => None,
    }
}

fn ready(
    view: &VariantView,
    decision: Option<&Decision>,
    target: &Condition,
    metrics: &Condition,
) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let like = |condition: &Condition| {
        (
            condition.status,
            condition.reason,
            condition.message.clone(),
        )
    };
    let (status, reason, message) = match (&view.target, decision) {
        (TargetView::NotFound { target }, _) => (
            False,
            Reason::DeploymentNotFound,
            format!(
                "Target {} '{}' no longer exists",
                target.kind.to_string().to_lowercase(),
                target.name
            ),
        ),
        (TargetView::Resolved(_), None) => (Unknown, metrics.reason, metrics.message.clone()),
        (TargetView::Resolved(_), Some(decision)) => match decision.metrics {
            MetricsState::Available | MetricsState::NoReplicas => (
                True,
                Reason::VariantReady,
                "Scale target and metrics are there, and a decision is published".to_owned(),
            ),
            _ => like(metrics),
        },
        _ => like(target),
    };
    Condition::new(ConditionType::Ready, status, reason, message)
}
