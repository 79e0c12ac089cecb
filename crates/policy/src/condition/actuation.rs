//! `ActuationReady`.

use super::{Condition, ConditionReason, ConditionStatus, ConditionType};
use crate::actuation::{ActuationObstacle, growing_only, judge, unasked};
use crate::key::{TargetKey, VariantKey};
use crate::ownership::Exposure;
use crate::params::ActuationMode;
use crate::plan::Decision;
use crate::scaler::{Scaler, Scalers};
use crate::snapshot::VariantView;

pub(super) fn ready(
    view: &VariantView,
    decision: Option<&Decision>,
    exposure: Exposure,
) -> Condition {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True, Unknown};
    let is_direct = decision.is_some_and(|decision| decision.actuation == ActuationMode::Direct);
    let (status, reason, message) = match (&view.scalers, view.target.resolved()) {
        (_, None) => (
            Unknown,
            Reason::SkippedProcessing,
            "Scalers are not looked at while the scale target is not resolved".to_owned(),
        ),
        (Scalers::Unknown, Some(_)) => (
            Unknown,
            Reason::ScalersUnknown,
            "HorizontalPodAutoscalers and ScaledObjects have not been listed yet".to_owned(),
        ),
        (Scalers::Known(scalers), Some(_)) if scalers.is_empty() && decision.is_none() => (
            Unknown,
            Reason::AwaitingFirstDecision,
            "No cycle has looked yet at who is to scale the target".to_owned(),
        ),
        (Scalers::Known(scalers), Some(target)) if is_direct && scalers.is_empty() => {
            let TargetKey { kind, name, .. } = &target.key;
            (True, Reason::ScaledDirectly, format!("The controller scales {kind} {name} itself"))
        }
        (Scalers::Known(scalers), Some(target)) => {
            let desired = decision.and_then(|decision| decision.target);
            let obstacles = judge(scalers, &view.key, view.bounds, desired);
            let mut texts: Vec<String> = obstacles.iter().map(|one| one.text(&view.key)).collect();
            let is_failing =
                |one: &ActuationObstacle| matches!(one, ActuationObstacle::Failing { .. });
            // It comes before what the scaler says about it.
            if let Some(place) = obstacles.iter().position(is_failing)
                && exposure == Exposure::Missing
                && view.scalers.read_series()
            {
                texts.insert(place, UNSCRAPED.to_owned());
            }
            let (status, reason) = if let Some(worst) = obstacles.first() {
                (False, obstacle_reason(worst))
            } else {
                texts.push(follows(scalers, &view.key, &target.key));
                (True, Reason::ScalerFollows)
            };
            texts.extend(growing_only(scalers));
            texts.extend(is_direct.then(|| RESTS.to_owned()));
            (status, reason, sentence(&texts))
        }
    };
    Condition::new(ConditionType::ActuationReady, status, reason, message)
}

fn follows(scalers: &[Scaler], variant: &VariantKey, target: &TargetKey) -> String {
    let TargetKey { kind, name, .. } = target;
    match unasked(scalers, variant) {
        None => format!("A scaler follows for {kind} {name}"),
        Some(scaler) => format!(
            "{scaler} is to follow for {kind} {name}, and KEDA has not asked the external scaler for its count yet"
        ),
    }
}

/// A scaler is asked for by an object, and direct actuation by a setting for many.
const RESTS: &str = "the setting actuation: direct rests while a scaler is attached";

/// The likeliest cause where a scaler gets no count that Prometheus should have.
const UNSCRAPED: &str = "Prometheus has no series wva_desired_replicas of this variant; unless the controller serves external metrics itself, have Prometheus scrape the controller: its ServiceMonitor, the label by which Prometheus selects it, its token and network policies";

/// One text of several, with a capital letter.
fn sentence(texts: &[String]) -> String {
    let joined = texts.join(". Also ");
    let mut letters = joined.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The reason of the condition where this obstacle is the worst.
pub fn obstacle_reason(obstacle: &ActuationObstacle) -> ConditionReason {
    match obstacle {
        ActuationObstacle::NoScaler => ConditionReason::NoScaler,
        ActuationObstacle::SeveralScalers { .. } => ConditionReason::SeveralScalers,
        ActuationObstacle::NotRead { .. } => ConditionReason::CountNotRead,
        ActuationObstacle::WrongAim { .. } => ConditionReason::WrongTarget,
        ActuationObstacle::Paused { .. }
        | ActuationObstacle::GrowthPaused { .. }
        | ActuationObstacle::AtZeroByHand { .. } => ConditionReason::ScalerPaused,
        ActuationObstacle::Failing { .. } => ConditionReason::ScalerFailing,
        ActuationObstacle::Minimum { .. } => ConditionReason::ScalerMinimum,
        ActuationObstacle::Maximum { .. } => ConditionReason::ScalerMaximum,
        ActuationObstacle::Tolerance { .. } => ConditionReason::ScalerTolerance,
        ActuationObstacle::NullIsZero { .. } => ConditionReason::NullCountsAsZero,
    }
}
