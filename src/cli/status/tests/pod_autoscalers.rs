//! What the rows of PodAutoscalers show.

use serde_json::{Value, json};

use crate::cli::status::enrich::add_decisions;
use crate::cli::status::fleet::FleetStatus;
use crate::cli::status::objects::FleetObjects;

/// The row of a PodAutoscaler with these conditions and scalings.
fn scaled(conditions: &[[&str; 4]], history: &Value) -> FleetStatus {
    let conditions = conditions.iter().map(|[kind, status, reason, message]| {
        json!({"type": kind, "status": status, "reason": reason, "message": message})
    });
    let object = json!({
        "metadata": {"namespace": "serving", "name": "a"},
        "spec": {"scalingStrategy": "KPA", "scaleTargetRef": {"kind": "Deployment", "name": "x"}},
        "status": {"conditions": conditions.collect::<Vec<_>>(), "scalingHistory": history},
    });
    FleetStatus::of(&FleetObjects { pod_autoscalers: vec![object], ..FleetObjects::default() })
}

#[test]
fn what_fails_now_comes_before_the_history_of_a_pod_autoscaler() {
    let grown = || json!({"reason": "kpa above target", "success": true});
    let outage = || json!({"reason": "FailedComputeScale", "success": false});
    let never = || json!([]);
    let once = || json!([grown()]);
    let valid = ["ValidSpec", "True", "AsExpected", ""];
    let measured = ["MetricsAvailable", "True", "MetricsFound", "q: 2 pods"];
    let stable = ["ScalingActive", "False", "Stable", "desired=0, actual=0"];
    let refused = ["MetricsAvailable", "False", "MetricsFailed", "q: page refused"];
    let absent = ["AbleToScale", "False", "FailedGetScale", "no x"];
    let unserved = ["MetricsAvailable", "Unknown", "NoServingPod", "no pod serves"];
    let copied = ["ScalingActive", "False", "FailedGetPodsMetric", "no adapter"];
    let at_zero = ["Asleep", "False", "ScaledElsewhere", "scale it to 1"];
    let annotated = ["AnnotationsAccepted", "False", "AnnotationsWithoutEffect", "odd"];
    let invalid = ["ValidSpec", "False", "Bounds", "write maxReplicas"];
    let follows = ["AbleToScale", "False", "InvalidSpec", ""];
    for (conditions, history, shown, is_failing) in [
        (vec![], never(), "-", false),
        (vec![valid, stable], never(), "desired=0, actual=0", false),
        (vec![stable, unserved], never(), "no pod serves", false),
        (vec![stable, measured], once(), "kpa above target", false),
        (vec![stable, measured], json!([grown(), outage()]), "kpa above target", false),
        (vec![stable, measured], json!([outage()]), "desired=0, actual=0", false),
        (vec![stable, annotated], once(), "kpa above target", false),
        (vec![stable, refused], never(), "q: page refused", true),
        (vec![stable, refused], once(), "q: page refused", true),
        (vec![stable, absent, refused], once(), "no x", true),
        (vec![copied, measured], once(), "no adapter", true),
        (vec![stable, measured, at_zero], once(), "scale it to 1", true),
        (vec![invalid, follows], once(), "write maxReplicas", true),
    ] {
        let status = scaled(&conditions, &history);
        let row = &status.pod_autoscalers[0];
        let found = (&*row.decision, row.is_failing);
        assert_eq!(found, (shown, is_failing), "{conditions:?}");
    }
}

#[test]
fn a_decision_replaces_no_condition_that_fails() {
    let refused = "403: deployments/scale is forbidden";
    for (state, shown) in [("True", "stable"), ("False", refused)] {
        let able = ["AbleToScale", state, "FailedUpdateScale", refused];
        let mut fleet = scaled(&[able], &json!([]));
        let decided = json!({"podAutoscalers": {"serving/a": {"decision": {"reason": "stable"}}}});
        add_decisions(&mut fleet, decided);
        assert_eq!(fleet.pod_autoscalers[0].decision, shown);
    }
}
