//! How scalers of counts move, and what they do without an answer.

use serde_json::Value;

use super::queries::slow_query;
use super::scalers::{ReadScaler, scalers, unattached};
use super::targets::claimed;
use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, text};
use wva_base::text::counted;

/// The longest window that does not matter, in seconds.
const SHORT_WINDOW: i64 = 30;
/// The longest time between two looks of KEDA that does not matter, in seconds.
const SLOW_LOOK: i64 = 60;

/// The window before growth, in seconds.
fn window(object: &LiveObject) -> Option<i64> {
    let paths = [
        "/spec/behavior/scaleUp/stabilizationWindowSeconds",
        "/spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleUp/stabilizationWindowSeconds",
    ];
    paths.iter().find_map(|path| object.number(path))
}

/// A policy that adds less than a pod a minute, where no other one adds more.
fn slow_policy(object: &LiveObject) -> Option<String> {
    let paths = [
        "/spec/behavior/scaleUp/policies",
        "/spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleUp/policies",
    ];
    let policies = paths.iter().find_map(|path| object.0.pointer(path))?;
    let read = policies.as_array()?.iter().map(|policy| {
        let number = |field: &str| policy.get(field).and_then(Value::as_i64);
        let pods = number("value").filter(|_| text(policy, "/type") == "Pods")?;
        let seconds = number("periodSeconds")?;
        (pods.saturating_mul(60) < seconds).then_some((pods, seconds))
    });
    let slow: Vec<(i64, i64)> = read.collect::<Option<_>>()?;
    let (pods, seconds) = slow.first()?;
    let pods = counted(*pods, "pod");
    Some(format!(
        "behavior.scaleUp.policies add {pods} in {seconds} s; 100 pods in 15 s do not hold a count back"
    ))
}

/// The time between two looks of KEDA at a target that rests.
fn slow_look(object: &LiveObject) -> Option<String> {
    let seconds = object.number("/spec/pollingInterval");
    let seconds = seconds.filter(|seconds| *seconds > SLOW_LOOK && may_rest_at_zero(object))?;
    let mut triggers = object.list("/spec/triggers").iter();
    let is_pushed = triggers.any(|trigger| text(trigger, "/type") == "external-push");
    let cause = format!(
        "spec.pollingInterval is {seconds}, for which the first replica waits; KEDA's default is 30"
    );
    (!is_pushed).then_some(cause)
}

pub(super) fn windows(facts: &Facts) -> Vec<Finding> {
    let all = scalers(facts);
    let claimed = claimed(facts);
    // That of KEDA repeats its ScaledObject.
    let is_judged =
        |one: &&ReadScaler<'_>| one.reads_count(&claimed) && one.kept.scaler.made_for.is_none();
    let slow = all.iter().filter(is_judged).flat_map(|one| {
        let window = window(one.object).filter(|window| *window > SHORT_WINDOW);
        let window = window.map(|window| {
            format!("behavior.scaleUp.stabilizationWindowSeconds is {window}; the controller smooths already, so 0 is enough")
        });
        let causes = [
            window,
            slow_policy(one.object),
            slow_look(one.object),
            slow_query(one.object),
        ];
        let causes = causes.into_iter().flatten();
        causes.map(move |cause| FindingCode::SlowScaleUp.at(one.object.title(), cause))
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
