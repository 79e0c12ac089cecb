//! The conditions of one variant, as they are judged now. Messages hold targets and reasons, never
//! measurements, so that they stay the same while the situation does.

mod actuation;
mod metrics;
mod optimization;

pub use actuation::obstacle_reason;

use serde::Serialize;

use super::key::{TargetKey, TargetKind};
use super::metrics_gap::MetricsGap;
use super::ownership::{Exposure, Ownership};
use super::plan::Decision;
use super::reason::MetricsState;
use super::snapshot::{TargetPast, TargetView, VariantView};
use wva_base::text::listed;

wva_base::named! {
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
}

wva_base::named! {
    /// Whether a condition holds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    pub enum ConditionStatus {
        /// It holds.
        True,
        /// It does not hold.
        False,
        /// It is not known.
        Unknown,
    }
}

wva_base::named! {
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
        /// Requests have waited for long, and nothing grows.
        RequestsWaiting,
        /// Nothing is decided for this variant.
        SkippedProcessing,
        /// No cycle has looked at the variant yet.
        AwaitingFirstDecision,
        /// A scaler follows, as far as can be seen.
        ScalerFollows,
        /// The controller scales the target itself.
        ScaledDirectly,
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
        /// Another instance publishes the same variant.
        SecondSeries,
        /// `Ready` only: target, metrics and decision are there.
        VariantReady,
        /// `Ready` only: the variant's own actor keeps failing.
        VariantQuarantined,
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
        Self { kind, status, reason, message: message.into() }
    }

    /// `Ready` turned false, for a variant whose own actor keeps failing; the others stay.
    #[must_use]
    pub fn quarantined(self, why: &str) -> Self {
        if self.kind != ConditionType::Ready {
            return self;
        }
        let message = format!(
            "The controller's own handling of this object keeps failing ({why}); its last replica count is kept, and it is tried again every 5 minutes or when the object changes"
        );
        Self::new(self.kind, ConditionStatus::False, ConditionReason::VariantQuarantined, message)
    }

    /// The same in the words of before, where only figures of a foreign text differ: an error that
    /// comes with another time or port in every cycle is not worth a write of the status.
    pub(super) fn in_words_of(self, previous: &Self) -> Self {
        let is_same = (self.kind, self.status, self.reason)
            == (previous.kind, previous.status, previous.reason);
        let words = |text: &str| -> String {
            let letters = text.chars().filter(|letter| !letter.is_ascii_digit());
            letters.collect()
        };
        let is_foreign = self.reason == ConditionReason::PrometheusError;
        if is_foreign && is_same && words(&self.message) == words(&previous.message) {
            return previous.clone();
        }
        self
    }
}

/// Every condition of a variant.
pub type Conditions = [Condition; 5];

/// What is known of the causes of a trouble.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints<'a> {
    /// Why the newest decision had no metrics, if it had none.
    pub gap: Option<&'a MetricsGap>,
    /// Whether Prometheus holds the published count.
    pub exposure: Exposure,
}

/// The conditions of a variant, from its view, the newest decision about it, and what is known of
/// causes.
pub fn conditions(view: &VariantView, decision: Option<&Decision>, hints: Hints<'_>) -> Conditions {
    let target = target_resolved(view);
    let metrics = metrics::available(view, decision, hints.gap);
    let optimization = optimization::ready(view, decision);
    let ready = ready(view, decision, &target, &metrics, &optimization);
    let actuation = actuation::ready(view, decision, hints.exposure);
    [target, metrics, optimization, actuation, ready]
}

fn target_resolved(view: &VariantView) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let named = |target: &TargetKey, what: &str| {
        format!("Scale target {} {} {what}", target.kind, target.name)
    };
    let (status, reason, message) = match &view.target {
        TargetView::Resolved(target) => (True, Reason::TargetFound, named(&target.key, "found")),
        TargetView::NotFound { target, .. } => {
            let what = format!("not found; {}", remedy(target));
            (False, Reason::TargetNotFound, named(target, &what))
        }
        TargetView::Unknown { target } => {
            let what = "has not been seen yet";
            (Unknown, Reason::TargetUnknown, named(target, what))
        }
        TargetView::Contested { target, claimants, owner } => {
            let what = match owner {
                Some(owner) => {
                    format!("is scaled by {owner}, which is older; delete one of both")
                }
                None => format!(
                    "is named by several VariantAutoscalings, and none of them scales it; keep one of: {}",
                    listed(claimants)
                ),
            };
            (False, Reason::TargetContested, named(target, &what))
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

fn remedy(target: &TargetKey) -> String {
    format!("create it in namespace {}, or correct spec.scaleTargetRef", target.namespace)
}

/// The documented words about a target that is gone, and others about one that never was.
fn absent(target: &TargetKey, past: TargetPast) -> String {
    let kind = match &target.kind {
        TargetKind::Deployment => "deployment".to_owned(),
        other => other.to_string(),
    };
    match past {
        TargetPast::Existed => format!("Target {kind} '{}' no longer exists", target.name),
        TargetPast::Unseen => {
            format!("Target {kind} '{}' does not exist; {}", target.name, remedy(target))
        }
    }
}

fn ready(
    view: &VariantView,
    decision: Option<&Decision>,
    target: &Condition,
    metrics: &Condition,
    optimization: &Condition,
) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let like =
        |condition: &Condition| (condition.status, condition.reason, condition.message.clone());
    let (status, reason, message) = match (&view.target, decision) {
        (TargetView::NotFound { target, past }, _) => {
            (False, Reason::DeploymentNotFound, absent(target, *past))
        }
        (TargetView::Resolved(_), None) => (Unknown, metrics.reason, metrics.message.clone()),
        (TargetView::Resolved(_), Some(decision)) => match decision.metrics {
            MetricsState::Available if optimization.reason == Reason::RequestsWaiting => {
                like(optimization)
            }
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

/// `ControllerConflict`, where there is one.
pub fn conflict(standing: &Ownership) -> Option<Condition> {
    let (reason, message) = match standing {
        Ownership::Alone => return None,
        Ownership::Shared => (
            ConditionReason::SecondSeries,
            "Prometheus has a second series wva_desired_replicas for this variant; find the other controller by its pod label, and give each its own CONTROLLER_INSTANCE, or uninstall one".to_owned(),
        ),
        Ownership::Behind { managers } => (
            ConditionReason::OtherController,
            format!(
                "Another controller holds this object, so this one publishes nothing for it; give each its own \
                 CONTROLLER_INSTANCE, or uninstall one. It writes as {}",
                listed(managers)
            ),
        ),
    };
    let kind = ConditionType::ControllerConflict;
    Some(Condition::new(kind, ConditionStatus::True, reason, message))
}
