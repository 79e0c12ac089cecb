//! Tests of the arithmetic.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::milli::Milli;

fn spec(min: u32, max: u32, target: &Value, behavior: &Value) -> HpaSpec {
    let object = json!({"metadata": {"name": "h"}, "spec": {
        "minReplicas": min, "maxReplicas": max, "behavior": behavior,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "metrics": [{"type": "External", "external": {
            "metric": {"name": "wanted"}, "target": target,
        }}],
    }});
    let object: HorizontalPodAutoscaler = serde_json::from_value(object).unwrap();
    HpaSpec::read(&object).unwrap()
}

fn average(behavior: &Value) -> HpaSpec {
    let target = json!({"type": "AverageValue", "averageValue": "1"});
    spec(1, 100, &target, behavior)
}

fn seen(replicas: u32, usage: u64) -> Observed {
    Observed {
        wanted: replicas,
        existing: replicas,
        ready: replicas,
        metrics: vec![Ok(Milli::units(usage))],
    }
}

fn reason<'a>(outcome: &'a HpaDecision, kind: &str) -> &'a str {
    let mut all = outcome.conditions.iter();
    all.find(|one| one.kind == kind).map_or("", |one| one.reason)
}

#[test]
fn quantities_are_read_as_the_api_writes_them() {
    let cases = [
        ("1", Some(1_000)),
        ("500m", Some(500)),
        ("0.1", Some(100)),
        ("1.0001", Some(1_001)),
        ("2k", Some(2_000_000)),
        ("1Ki", Some(1_024_000)),
        ("1e1", Some(10_000)),
        ("-1", None),
        ("", None),
        ("inf", None),
        ("m", None),
    ];
    for (text, expected) in cases {
        assert_eq!(Milli::parse(text), expected.map(Milli), "{text}");
    }
}

#[test]
fn one_step_without_history() {
    let none = Value::Null;
    let exact = json!({"scaleUp": {"tolerance": "0"}, "scaleDown": {
        "tolerance": "0", "stabilizationWindowSeconds": 0,
    }});
    let four =
        json!({"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}});
    let least = json!({"scaleUp": {"selectPolicy": "Min"}});
    let off = json!({"scaleUp": {"selectPolicy": "Disabled"}});
    let down = json!({"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [
        {"type": "Percent", "value": 10, "periodSeconds": 60},
    ]}});
    let cases = [
        ("within the tolerance", &none, 10, 11, 10, "DesiredWithinRange"),
        ("no tolerance", &exact, 10, 11, 11, "DesiredWithinRange"),
        ("beyond the tolerance", &none, 10, 12, 12, "DesiredWithinRange"),
        ("at most four from one", &none, 1, 9, 4, "ScaleUpLimit"),
        ("at most twice", &none, 10, 50, 20, "ScaleUpLimit"),
        ("maximum", &none, 80, 150, 100, "TooManyReplicas"),
        ("five from one with a behavior", &exact, 1, 9, 5, "ScaleUpLimit"),
        ("pods", &four, 10, 50, 14, "ScaleUpLimit"),
        ("least of pods and percent", &least, 10, 50, 14, "ScaleUpLimit"),
        ("disabled", &off, 10, 50, 10, "ScaleUpLimit"),
        ("percent down, cut off", &down, 15, 1, 13, "ScaleDownLimit"),
        ("down to the minimum", &exact, 15, 0, 1, "TooFewReplicas"),
        ("down waits", &none, 10, 1, 10, "DesiredWithinRange"),
    ];
    for (id, behavior, replicas, usage, expected, limited) in cases {
        let outcome = decide(
            Duration::ZERO,
            &average(behavior),
            &seen(replicas, usage),
            &mut History::default(),
        );
        assert_eq!(outcome.desired, Some(expected), "{id}");
        assert_eq!(reason(&outcome, "ScalingLimited"), limited, "{id}");
        assert_eq!(reason(&outcome, "ScalingActive"), "ValidMetricFound", "{id}");
    }
}

#[test]
fn a_total_value_counts_ready_pods() {
    let target = json!({"type": "Value", "value": "10"});
    let spec = spec(0, 100, &target, &Value::Null);
    for (id, ready, usage, expected) in [("all ready", 4, 15, 6), ("one not", 3, 15, 5)] {
        let mut seen = seen(4, usage);
        seen.ready = ready;
        let outcome = decide(Duration::ZERO, &spec, &seen, &mut History::default());
        assert_eq!(outcome.desired, Some(expected), "{id}");
    }
    let none = decide(Duration::ZERO, &spec, &seen(0, 25), &mut History::default());
    assert_eq!(none.desired, Some(3), "from zero the ratio itself counts");
}

#[test]
fn fewer_replicas_wait_for_five_minutes() {
    for behavior in [Value::Null, json!({"scaleUp": {}})] {
        let spec = average(&behavior);
        let mut history = History::default();
        let high = decide(Duration::ZERO, &spec, &seen(10, 10), &mut history);
        assert_eq!(high.desired, Some(10));
        let at = |seconds| Duration::from_secs(seconds);
        let held = decide(at(299), &spec, &seen(10, 5), &mut history);
        assert_eq!(held.desired, Some(10), "{behavior}");
        assert_eq!(reason(&held, "AbleToScale"), "ScaleDownStabilized");
        let taken = decide(at(301), &spec, &seen(10, 5), &mut history);
        assert_eq!(taken.desired, Some(5), "{behavior}");
        assert_eq!(reason(&taken, "AbleToScale"), "ReadyForNewScale");
    }
}

#[test]
fn a_policy_remembers_what_its_period_already_saw() {
    let behavior = json!({"scaleUp": {"policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 60},
    ]}});
    let spec = average(&behavior);
    let mut history = History::default();
    let first = decide(Duration::ZERO, &spec, &seen(10, 50), &mut history);
    assert_eq!(first.desired, Some(14));
    history.rescaled(Duration::ZERO, &spec, 10, 14);
    let spent = decide(Duration::from_secs(59), &spec, &seen(14, 50), &mut history);
    assert_eq!(spent.desired, Some(14));
    let next = decide(Duration::from_mins(1), &spec, &seen(14, 50), &mut history);
    assert_eq!(next.desired, Some(18));
}

#[test]
fn what_is_missing_holds() {
    let mut seen = seen(3, 9);
    seen.metrics = vec![Err("no series".to_owned())];
    let spec = average(&Value::Null);
    let outcome = decide(Duration::ZERO, &spec, &seen, &mut History::default());
    assert_eq!(outcome.desired, None);
    assert_eq!(reason(&outcome, "ScalingActive"), "FailedGetExternalMetric");
}

#[test]
fn bounds_and_zero_come_before_metrics() {
    let target = json!({"type": "AverageValue", "averageValue": "1"});
    let spec = spec(2, 5, &target, &Value::Null);
    for (replicas, expected) in [(0, 0), (1, 2), (9, 5)] {
        let outcome = decide(Duration::ZERO, &spec, &seen(replicas, 4), &mut History::default());
        assert_eq!(outcome.desired, Some(expected), "from {replicas}");
    }
}

proptest! {
    #[test]
    fn desired_lies_within_the_bounds(replicas in 1_u32..=100, usage in 0_u64..10_000, rules: bool) {
        let behavior = if rules { json!({"scaleDown": {"stabilizationWindowSeconds": 0}}) } else { Value::Null };
        let outcome = decide(Duration::ZERO, &average(&behavior), &seen(replicas, usage), &mut History::default());
        prop_assert!(outcome.desired.is_some_and(|desired| (1..=100).contains(&desired)));
    }
}
