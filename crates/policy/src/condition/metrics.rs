//! `MetricsAvailable`.

use super::{Condition, ConditionReason, ConditionStatus, ConditionType};
use crate::metrics_gap::MetricsGap;
use crate::plan::Decision;
use crate::reason::MetricsState;
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
            "No planning cycle has looked at this variant yet".to_owned(),
        ),
        Some(MetricsState::Available) => (
            True,
            Reason::MetricsFound,
            "Saturation metrics data is available for scaling decisions".to_owned(),
        ),
        Some(MetricsState::Missing) => {
            let why = because("pods may not be ready or metrics not yet scraped");
            (False, Reason::MetricsMissing, format!("No saturation metrics available - {why}"))
        }
        Some(MetricsState::Stale) => (
            False,
            Reason::MetricsStale,
            "Saturation metrics are too old to act on - check that Prometheus still scrapes the pods"
                .to_owned(),
        ),
        Some(MetricsState::QueryFailed | MetricsState::NotCollected) => {
            let why = because("see the controller's log for the error");
            let message = format!("Prometheus did not answer the saturation queries - {why}");
            (False, Reason::PrometheusError, message)
        }
        Some(MetricsState::NoReplicas) => (
            False,
            Reason::NoReplicas,
            "The scale target has no replicas, so there is nothing to measure".to_owned(),
        ),
        Some(MetricsState::NotEvaluated) => (
            Unknown,
            Reason::SkippedProcessing,
            "Metrics are not looked at while the scale target is not resolved".to_owned(),
        ),
    };
    Condition::new(ConditionType::MetricsAvailable, status, reason, message)
}
