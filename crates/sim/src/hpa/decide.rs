//! One decision of an autoscaler.

use std::time::Duration;

use super::rules::{ScalingDirection, ScalingRules, TOLERANCE};
use super::spec::{Behavior, ExternalMetricSpec, ExternalMetricTarget, HpaSpec};
use crate::milli::Milli;
use wva::policy::rounding;

/// How long scaling down waits where no behavior says: the flag
/// `--horizontal-pod-autoscaler-downscale-stabilization`.
const DOWNSCALE_STABILIZATION: Duration = Duration::from_mins(5);
const WITHIN: (&str, &str) =
    ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_MANY: (&str, &str) =
    ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: (&str, &str) =
    ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const TOO_FAST_UP: (&str, &str) =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const TOO_FAST_DOWN: (&str, &str) = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);

/// What an autoscaler sees of its target and its metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// `spec.replicas` of the scale.
    pub wanted: u32,
    /// `status.replicas` of the scale.
    pub existing: u32,
    /// Pods of the target that run and are ready.
    pub ready: u32,
    /// For each metric of the spec the sum of its series, or why there is none.
    pub metrics: Vec<Result<Milli, String>>,
}

/// A condition of the status, with the reason and the message of the real controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HpaCondition {
    /// `AbleToScale`, `ScalingActive`, `ScalingLimited` or `ScaledToZero`.
    pub kind: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// One word.
    pub reason: &'static str,
    pub(crate) message: String,
}

impl HpaCondition {
    pub(super) fn new(
        kind: &'static str,
        holds: bool,
        (reason, message): (&'static str, impl Into<String>),
    ) -> Self {
        Self { kind, holds, reason, message: message.into() }
    }

    /// What each change of a count says since Kubernetes 1.37.
    pub fn scaled_to_zero(spec: &HpaSpec, desired: u32) -> Self {
        let holds = desired == 0 && spec.min == 0;
        let (reason, what) =
            if holds { ("ScaledToZero", "scaled") } else { ("NotScaledToZero", "did not scale") };
        let message = format!("the HPA controller {what} the workload to zero");
        Self::new("ScaledToZero", holds, (reason, message))
    }
}

/// What comes of one decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HpaDecision {
    /// Replicas to have; nothing where it could not be said, which holds those there are.
    pub desired: Option<u32>,
    /// For each metric of the spec what the status shows of it.
    pub current: Vec<Option<Milli>>,
    /// The conditions that this decision sets; others stay.
    pub conditions: Vec<HpaCondition>,
}

/// What an autoscaler remembers. The real controller loses it with its process, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    recommendations: Vec<(Duration, u32)>,
    rescales: Vec<(Duration, ScalingDirection, u32)>,
}

impl History {
    /// Notes that the target was rescaled.
    pub fn rescaled(&mut self, now: Duration, spec: &HpaSpec, from: u32, to: u32) {
        let Some(behavior) = &spec.behavior else {
            return;
        };
        let rules = [&behavior.up, &behavior.down];
        let policies = rules.into_iter().flat_map(|rules| &rules.policies);
        let longest = policies.map(|policy| policy.period).max();
        let longest = longest.unwrap_or_default();
        self.rescales.retain(|(when, ..)| now.saturating_sub(*when) < longest);
        let direction = if to > from { ScalingDirection::Up } else { ScalingDirection::Down };
        self.rescales.push((now, direction, to.abs_diff(from)));
    }

    fn start_of(&self, now: Duration, current: u32, period: Duration) -> i64 {
        let within = self.rescales.iter().filter(|(when, ..)| now.saturating_sub(*when) < period);
        within.fold(i64::from(current), |start, (_, direction, change)| match direction {
            ScalingDirection::Up => start - i64::from(*change),
            ScalingDirection::Down => start + i64::from(*change),
        })
    }

    fn recommend(&mut self, now: Duration, longest: Duration, replicas: u32) {
        self.recommendations.retain(|(when, _)| now.saturating_sub(*when) <= longest);
        self.recommendations.push((now, replicas));
    }
}

/// Decides at `now`, on the monotonic clock.
pub fn decide(
    now: Duration,
    spec: &HpaSpec,
    seen: &Observed,
    history: &mut History,
) -> HpaDecision {
    if history.recommendations.is_empty() {
        history.recommendations.push((now, seen.wanted));
    }
    let mut outcome = HpaDecision::default();
    if seen.wanted == 0 && spec.min != 0 {
        let why = "scaling is disabled since the replica count of the target is zero";
        let disabled = HpaCondition::new("ScalingActive", false, ("ScalingDisabled", why));
        outcome.conditions.push(disabled);
        outcome.desired = Some(0);
        return outcome;
    }
    if seen.wanted > spec.max || seen.wanted < spec.min {
        outcome.desired = Some(seen.wanted.min(spec.max).max(spec.min));
        return outcome;
    }
    let Some(proposed) = propose(spec, seen, &mut outcome) else {
        return outcome;
    };
    let (bounded, why) = match &spec.behavior {
        None => settle(now, spec, seen, proposed, history, &mut outcome),
        Some(behavior) => {
            let stable = stabilize(now, behavior, seen, proposed, history, &mut outcome);
            limit(now, spec, behavior, seen.wanted, stable, history)
        }
    };
    let limited = HpaCondition::new("ScalingLimited", why != WITHIN, why);
    outcome.conditions.push(limited);
    outcome.desired = Some(bounded);
    outcome
}

/// What the metrics ask for; nothing where too much of them is missing.
fn propose(spec: &HpaSpec, seen: &Observed, outcome: &mut HpaDecision) -> Option<u32> {
    let mut most: Option<(u32, &ExternalMetricSpec)> = None;
    let mut missing = None;
    for (metric, usage) in spec.metrics.iter().zip(&seen.metrics) {
        match usage {
            Ok(usage) => {
                let (replicas, shown) = replicas(spec, seen, metric.target, *usage);
                outcome.current.push(Some(shown));
                if most.is_none_or(|(other, _)| replicas > other) {
                    most = Some((replicas, metric));
                }
            }
            Err(cause) => {
                outcome.current.push(None);
                missing = missing.or(Some(cause));
            }
        }
    }
    let (replicas, metric) = match (most, missing) {
        // A missing metric might have asked for more, so nothing is taken away.
        (Some((replicas, metric)), None) => (replicas, metric),
        (Some((replicas, metric)), Some(_)) if replicas >= seen.wanted => (replicas, metric),
        (_, cause) => {
            let cause = cause.map_or("no metric is given", |cause| &**cause);
            let message = format!("the HPA was unable to compute the replica count: {cause}");
            let why = ("FailedGetExternalMetric", message);
            let inactive = HpaCondition::new("ScalingActive", false, why);
            outcome.conditions.push(inactive);
            return None;
        }
    };
    let message = format!(
        "the HPA was able to successfully calculate a replica count from external metric {}",
        metric.name
    );
    let active = HpaCondition::new("ScalingActive", true, ("ValidMetricFound", message));
    outcome.conditions.push(active);
    Some(replicas)
}

fn replicas(
    spec: &HpaSpec,
    seen: &Observed,
    target: ExternalMetricTarget,
    usage: Milli,
) -> (u32, Milli) {
    match target {
        ExternalMetricTarget::AverageValue(target) => {
            let existing = f64::from(seen.existing);
            let ratio = usage.real() / (target.real() * existing);
            let replicas = if tolerated(spec, ratio) {
                seen.existing
            } else {
                rounding::ceil(usage.real() / target.real())
            };
            let average = usage.0.div_ceil(u64::from(seen.existing.max(1)));
            (replicas, Milli(average))
        }
        ExternalMetricTarget::Value(target) => {
            let ratio = usage.real() / target.real();
            let replicas = if seen.wanted == 0 {
                rounding::ceil(ratio)
            } else if tolerated(spec, ratio) {
                seen.wanted
            } else {
                rounding::ceil(ratio * f64::from(seen.ready))
            };
            (replicas, usage)
        }
    }
}

fn tolerated(spec: &HpaSpec, ratio: f64) -> bool {
    let (up, down) = spec.behavior.as_ref().map_or((TOLERANCE, TOLERANCE), |behavior| {
        (behavior.up.tolerance, behavior.down.tolerance)
    });
    (1.0 - down..=1.0 + up).contains(&ratio)
}

/// Without a behavior: the highest recommendation of five minutes, and at most twice the replicas
/// or four.
fn settle(
    now: Duration,
    spec: &HpaSpec,
    seen: &Observed,
    proposed: u32,
    history: &mut History,
    outcome: &mut HpaDecision,
) -> Bounded {
    let recent = history
        .recommendations
        .iter()
        .filter(|(when, _)| now.saturating_sub(*when) <= DOWNSCALE_STABILIZATION)
        .map(|(_, replicas)| *replicas);
    let stable = recent.fold(proposed, u32::max);
    history.recommend(now, DOWNSCALE_STABILIZATION, proposed);
    outcome.conditions.push(stabilized(ScalingDirection::Down, proposed, stable));
    let most = most(spec, seen.wanted.saturating_mul(2).max(4));
    if stable < spec.min {
        (spec.min, TOO_FEW)
    } else if stable > most.0 {
        most
    } else {
        (stable, WITHIN)
    }
}

/// With a behavior: the present replicas, moved only as far as all recent recommendations agree.
fn stabilize(
    now: Duration,
    behavior: &Behavior,
    seen: &Observed,
    proposed: u32,
    history: &mut History,
    outcome: &mut HpaDecision,
) -> u32 {
    let within = |window: Duration| {
        let recent = history.recommendations.iter();
        recent.filter(move |(when, _)| now.saturating_sub(*when) < window)
    };
    let up = within(behavior.up.window).fold(proposed, |least, (_, one)| least.min(*one));
    let down = within(behavior.down.window).fold(proposed, |most, (_, one)| most.max(*one));
    let stable = seen.wanted.max(up).min(down);
    let longest = behavior.up.window.max(behavior.down.window);
    history.recommend(now, longest, proposed);
    let direction =
        if proposed >= seen.wanted { ScalingDirection::Up } else { ScalingDirection::Down };
    outcome.conditions.push(stabilized(direction, proposed, stable));
    stable
}

fn stabilized(direction: ScalingDirection, proposed: u32, stable: u32) -> HpaCondition {
    let why = match direction {
        _ if proposed == stable => ("ReadyForNewScale", "recommended size matches current size"),
        ScalingDirection::Up => (
            "ScaleUpStabilized",
            "recent recommendations were lower than current one, applying the lowest recent \
             recommendation",
        ),
        ScalingDirection::Down => (
            "ScaleDownStabilized",
            "recent recommendations were higher than current one, applying the highest recent \
             recommendation",
        ),
    };
    HpaCondition::new("AbleToScale", true, why)
}

/// A count, with the reason and the message of its condition.
type Bounded = (u32, (&'static str, &'static str));

fn most(spec: &HpaSpec, fastest: u32) -> Bounded {
    if spec.max > fastest { (fastest, TOO_FAST_UP) } else { (spec.max, TOO_MANY) }
}

fn limit(
    now: Duration,
    spec: &HpaSpec,
    behavior: &Behavior,
    current: u32,
    stable: u32,
    history: &History,
) -> Bounded {
    let start_of = |period| history.start_of(now, current, period);
    let count = |limit: i64| u32::try_from(limit.max(0)).unwrap_or(u32::MAX);
    let fastest = |rules: &ScalingRules, way| count(rules.limit(way, current, start_of));
    if stable > current {
        let most = most(spec, fastest(&behavior.up, ScalingDirection::Up));
        if stable > most.0 {
            return most;
        }
    } else if stable < current {
        let fastest = fastest(&behavior.down, ScalingDirection::Down);
        let least = if spec.min < fastest { (fastest, TOO_FAST_DOWN) } else { (spec.min, TOO_FEW) };
        if stable < least.0 {
            return least;
        }
    }
    (stable, WITHIN)
}
