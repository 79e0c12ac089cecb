//! How scalers of counts move, and what they do without an answer.

use super::scalers::{scalers, unattached};
use super::targets::claimed;
use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::LiveObject;

/// The longest window that does not matter, in seconds.
const SHORT_WINDOW: i64 = 30;

/// The window before growth, in seconds.
fn window(object: &LiveObject) -> Option<i64> {
    let paths = [
        "/spec/behavior/scaleUp/stabilizationWindowSeconds",
        "/spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleUp/stabilizationWindowSeconds",
    ];
    paths.iter().find_map(|path| object.number(path))
}

pub(super) fn windows(facts: &Facts) -> Vec<Finding> {
    let all = scalers(facts);
    let claimed = claimed(facts);
    let slow = all.iter().filter_map(|one| {
        // That of KEDA repeats its ScaledObject.
        if !one.reads_count(&claimed) || one.kept.scaler.made_for.is_some() {
            return None;
        }
        let window = window(one.object).filter(|window| *window > SHORT_WINDOW)?;
        let cause = format!("behavior.scaleUp.stabilizationWindowSeconds is {window}; the controller smooths already, so 0 is enough");
        Some(FindingCode::SlowScaleUp.at(one.object.title(), cause))
    });
    let mut found: Vec<Finding> = slow.collect();
    found.extend(unattached(facts, &all));
    found
}

/// Whether KEDA itself takes a target to zero, or to its idle count. At an error it does so unless a fallback has
/// replicas, or there is none. Source: `scale_scaledobjects.go` of KEDA 2.21.
pub(super) fn may_rest_at_zero(object: &LiveObject) -> bool {
    let min = object.number("/spec/minReplicaCount").unwrap_or(0);
    min == 0 || object.number("/spec/idleReplicaCount").is_some()
}

pub(super) fn fallbacks(facts: &Facts) -> Vec<Finding> {
    let all = scalers(facts);
    let claimed = claimed(facts);
    let zero = all.iter().filter(|one| {
        let behavior = one.object.text("/spec/fallback/behavior");
        let is_kept = matches!(behavior, "currentReplicas" | "currentReplicasIfHigher");
        let is_kept = is_kept && !may_rest_at_zero(one.object);
        let is_zero = one.object.number("/spec/fallback/replicas") == Some(0);
        one.reads_count(&claimed) && is_zero && !is_kept
    });
    let found = zero.map(|one| {
        let cause = if may_rest_at_zero(one.object) {
            "spec.fallback.replicas is 0, so that at an error KEDA goes to zero, whatever the behavior; remove the \
             fallback, with which KEDA holds the scale"
        } else {
            "spec.fallback.replicas is 0 without a behavior that keeps what there is"
        };
        FindingCode::FallbackZero.at(one.object.title(), cause)
    });
    found.collect()
}
