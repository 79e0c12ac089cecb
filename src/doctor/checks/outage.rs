//! What KEDA makes of a target while no controller answers. Source: `fallback.go`, `scale_handler.go` and
//! `scale_scaledobjects.go` of KEDA 2.21.

use super::behavior::may_rest_at_zero;
use super::scalers::{ReadScaler, scalers};
use super::targets::{claimed, of_key};
use crate::doctor::facts::{FactSource, Facts};
use crate::doctor::object::LiveObject;
use crate::doctor::report::OutageForecast;
use crate::policy::scaler::{Absence, Input, ScalerActivity, ScalerKind};

/// Failures of an external trigger that KEDA may count, as its own poll and that of the HPA may be on their way when
/// it forgets the metric. From then on it learns of none, and counts nothing.
const COUNTED_OF_EXTERNAL: i64 = 2;

/// `spec.fallback` of a ScaledObject.
struct Fallback<'a> {
    replicas: i64,
    threshold: i64,
    behavior: &'a str,
}

impl<'a> Fallback<'a> {
    fn of(object: &'a LiveObject) -> Option<Self> {
        let number = |field: &str| object.number(&format!("/spec/fallback/{field}"));
        object.has("/spec/fallback").then(|| Self {
            replicas: number("replicas").unwrap_or(0),
            threshold: number("failureThreshold").unwrap_or(0),
            behavior: object.text("/spec/fallback/behavior"),
        })
    }

    /// The count that KEDA shows the HPA in place of the metric; `None` where a formula decides.
    fn shown(&self, current: i64) -> Option<i64> {
        match self.behavior {
            "currentReplicas" => Some(current),
            "currentReplicasIfHigher" => Some(current.max(self.replicas)),
            "currentReplicasIfLower" => Some(current.min(self.replicas)),
            "scalingModifiers" => None,
            _ => Some(self.replicas),
        }
    }
}

/// The forecast of every ScaledObject that reads one count and nothing else. What depends on clocks, or has a finding
/// of its own, has none.
pub(super) fn outages(facts: &Facts) -> Vec<OutageForecast> {
    // Manifests do not show how many replicas there are.
    if facts.source == FactSource::Files {
        return Vec::new();
    }
    let claimed = claimed(facts);
    let read = scalers(facts).into_iter();
    let ours = read.filter(|one| {
        let is_keda = one.kept.scaler.kind == ScalerKind::ScaledObject;
        is_keda && one.reads_count(&claimed)
    });
    ours.filter_map(|one| forecast(facts, &one)).collect()
}

fn forecast(facts: &Facts, one: &ReadScaler<'_>) -> Option<OutageForecast> {
    let scaler = &one.kept.scaler;
    let is_free =
        matches!(scaler.activity, ScalerActivity::Working | ScalerActivity::Failing { .. });
    let [input] = scaler.inputs.as_slice() else {
        return None;
    };
    let key = one.kept.target.as_ref().filter(|_| is_free)?;
    let target = of_key(facts, key)?;
    let current = target.number("/spec/replicas").unwrap_or(1);
    let (replicas, why) = match (input, Fallback::of(one.object)) {
        (Input::Other, _) => return None,
        // An absent count is 0 then.
        (Input::Published(read), _) if read.absence == Absence::Zero => return None,
        (_, None) => (current, "it has no fallback".to_owned()),
        (_, Some(fallback)) if fallback.replicas == 0 && may_rest_at_zero(one.object) => {
            return None;
        }
        (Input::ExternalScaler { .. }, Some(fallback)) => {
            let is_out_of_reach = fallback.threshold >= COUNTED_OF_EXTERNAL;
            let why = "its fallback follows errors of a controller, and not its absence";
            (is_out_of_reach.then_some(current)?, why.to_owned())
        }
        (Input::Published(_), Some(fallback)) => {
            // A target at 0 is started for its fallback. The HPA keeps within its own bounds, of which the lower one is
            // at least 1.
            let least = one.object.number("/spec/minReplicaCount").unwrap_or(0).max(1);
            let shown = fallback.shown(current.max(least))?;
            let why = format!("its fallback, after more than {} failures", fallback.threshold);
            (shown.min(i64::from(scaler.max.0)).max(least), why)
        }
    };
    Some(OutageForecast { object: one.object.title(), replicas, why })
}
