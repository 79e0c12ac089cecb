//! `MetricsAvailable`.

use super::{Condition, ConditionReason, ConditionStatus, ConditionType};
use crate::metrics_gap::MetricsGap;
use crate::plan::{Decision, MetricsState};
use crate::snapshot::VariantView;

/// Whether there are metrics to decide on; where there are none, why and what to do.
pub(super) fn available(
    view: &VariantView,
    decision: Option<&Decision>,
    gap: Option<&MetricsGap>,
) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let because =
        |otherwise: &str| gap.map_or_else(|| otherwise.to_owned(), |gap| gap.text(&view.model));
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
        Some(MetricsState::Missing) => {
            return missing(
                Reason::MetricsMissing,
                "No saturation metrics available",
                &because("pods may not be ready or metrics not yet scraped"),
            );
        }
        Some(MetricsState::Stale) => (
            False,
            Reason::MetricsStale,
            "Saturation metrics are too old to act on - check that Prometheus still scrapes the pods",
        ),
        Some(MetricsState::QueryFailed | MetricsState::NotCollected) => {
            return missing(
                Reason::PrometheusError,
                "Prometheus did not answer the saturation queries",
                &because("see the controller's log for the error"),
            );
        }
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

fn missing(reason: ConditionReason, what: &str, why: &str) -> Condition {
    Condition::new(
        ConditionType::MetricsAvailable,
        ConditionStatus::False,
        reason,
        format!("{what} - {why}"),
    )
}
