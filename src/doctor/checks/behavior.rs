//! How scalers of counts move, and what they do without an answer.

use serde_json::Value;

use super::queries::slow_query;
use super::scalers::{ReadScaler, scalers, unattached};
use super::targets::claimed;
use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, text};
use crate::policy::scaler::Input;
use wva_base::text::counted;

/// The longest window that does not matter, in seconds.
const SHORT_WINDOW: i64 = 30;
/// The replicas by which a share is judged where no maximum is stated.
const FEW_REPLICAS: i64 = 10;
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

/// A policy that adds less than a pod a minute, where no other one adds more, or the slowest one acts. Of a share,
/// Kubernetes rounds the pods up.
fn slow_policy(object: &LiveObject) -> Option<String> {
    let paths =
        ["/spec/behavior/scaleUp", "/spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleUp"];
    let rules = paths.iter().find_map(|path| object.0.pointer(path))?;
    let mut bounds = ["/spec/maxReplicas", "/spec/maxReplicaCount"].into_iter();
    let most = bounds.find_map(|path| object.number(path));
    let most = most.unwrap_or(FEW_REPLICAS);
    let slow = |policy: &Value| {
        let number = |field: &str| policy.get(field).and_then(Value::as_i64);
        let (value, seconds) = (number("value")?, number("periodSeconds")?);
        let (pods, added) = match text(policy, "/type") {
            "Pods" => (value, counted(value, "pod")),
            "Percent" => (
                most.saturating_mul(value).saturating_add(99) / 100,
                format!("{value} % of {most} replicas"),
            ),
            _ => return None,
        };
        (pods.saturating_mul(60) < seconds).then(|| {
            format!("behavior.scaleUp.policies add {added} in {seconds} s; 100 pods in 15 s do not hold a count back")
        })
    };
    let mut policies = rules.get("policies")?.as_array()?.iter();
    if text(rules, "/selectPolicy") == "Min" {
        return policies.find_map(slow);
    }
    let all: Vec<String> = policies.map(slow).collect::<Option<_>>()?;
    all.into_iter().next()
}

/// The time between two looks of KEDA at a target that rests, or at a count that it answers from its cache.
fn slow_look(scaler: &ReadScaler<'_>) -> Option<String> {
    let object = scaler.object;
    let seconds = object.number("/spec/pollingInterval");
    let seconds = seconds.filter(|seconds| *seconds > SLOW_LOOK)?;
    let triggers = object.list("/spec/triggers");
    let inputs = scaler.kept.scaler.inputs.iter();
    let is_cached = |(trigger, input): (&Value, &Input)| {
        let is_on = trigger.get("useCachedMetrics").and_then(Value::as_bool) == Some(true);
        is_on && *input != Input::Other
    };
    if triggers.iter().zip(inputs).any(is_cached) {
        return Some(format!(
            "spec.pollingInterval is {seconds}, and by useCachedMetrics KEDA answers with a count of that age"
        ));
    }
    let mut triggers = triggers.iter();
    let is_pushed = triggers.any(|trigger| text(trigger, "/type") == "external-push");
    (!is_pushed && may_rest_at_zero(object)).then(|| {
        format!(
            "spec.pollingInterval is {seconds}, for which the first replica waits; KEDA's default is 30"
        )
    })
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
            slow_look(one),
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
