//! Causes of PodAutoscalers.

use serde_json::json;

use super::causes::{Cause, edit, objects, remove, with_environment};
use super::fleets::pod_autoscalers;
use super::healthy::resolve;
use crate::doctor::FindingCode as Code;
use crate::doctor::facts::{Facts, LiveKind};

const KIND: LiveKind = LiveKind::PodAutoscaler;

/// The PodAutoscaler kpa with a condition that is False.
fn reports(facts: &mut Facts, place: usize, kind: &str, reason: &str) {
    pod_autoscalers(facts);
    let condition = json!({ "type": kind, "status": "False", "reason": reason, "message": "why" });
    let path = format!("/status/conditions/{place}");
    edit(facts, KIND, "kpa", &path, condition);
}

fn specifies(facts: &mut Facts, field: &str, value: serde_json::Value) {
    pod_autoscalers(facts);
    edit(facts, KIND, "kpa", field, value);
}

fn forget_status(facts: &mut Facts) {
    pod_autoscalers(facts);
    objects(facts, KIND).truncate(1);
    edit(facts, KIND, "kpa", "/status", json!({}));
}

pub(super) const AUTOSCALERS: &[Cause] = &[
    (Code::AutoscalerInvalid, |facts| {
        specifies(facts, "/spec/maxReplicas", json!(0));
    }),
    (Code::AutoscalerInvalid, |facts| {
        specifies(facts, "/spec/minReplicas", json!("one"));
    }),
    (Code::AutoscalerInvalid, |facts| {
        let night = json!([{ "name": "night", "startTime": "22:00", "endTime": "06:00", "minReplicas": 0 }]);
        specifies(facts, "/spec/schedules", night);
    }),
    (Code::AutoscalerTargetMissing, |facts| {
        reports(facts, 2, "AbleToScale", "FailedGetScale");
        remove(facts, LiveKind::Deployment, "kpa");
    }),
    (Code::AutoscalerConflict, |facts| {
        reports(
            facts,
            0,
            "MultiPodAutoscalerConflict",
            "MultiPodAutoscalerConflict",
        );
    }),
    (Code::AutoscalerMetricAbsent, |facts| {
        reports(facts, 3, "MetricsAvailable", "MetricsAbsent");
    }),
    (Code::AutoscalerMetricsFail, |facts| {
        reports(facts, 3, "MetricsAvailable", "MetricsFailed");
    }),
    (Code::AutoscalerMetricsFail, |facts| {
        reports(facts, 1, "ScalingActive", "FailedGetResourceMetric");
    }),
    (Code::AutoscalerPort, |facts| {
        reports(facts, 3, "MetricsAvailable", "MetricsFailed");
        let ports = json!([{ "containerPort": 9000 }]);
        let path = "/spec/template/spec/containers/0/ports";
        edit(facts, LiveKind::Deployment, "kpa", path, ports);
    }),
    (Code::AutoscalerAnnotation, |facts| {
        let annotations = json!({ "autoscaling.aibrix.ai/max-scale-up-rate": "fast" });
        specifies(facts, "/metadata/annotations", annotations);
    }),
    (Code::AutoscalerStuck, |facts| {
        reports(facts, 2, "AbleToScale", "HpaNotOwned");
    }),
    (Code::AutoscalerAtZero, |facts| {
        reports(facts, 4, "Asleep", "ScaledElsewhere");
    }),
    (Code::AutoscalersIgnored, |facts| {
        forget_status(facts);
        let off = with_environment("wva", &[("POD_AUTOSCALERS_ENABLED", "false")]);
        resolve(facts, &[off]);
    }),
    // No other object is in that namespace.
    (Code::NamespaceNotWatched, |facts| {
        forget_status(facts);
        for kind in [
            LiveKind::VariantAutoscaling,
            LiveKind::HorizontalPodAutoscaler,
            LiveKind::ScaledObject,
        ] {
            objects(facts, kind).clear();
        }
        let elsewhere = with_environment("wva", &[("WATCH_NAMESPACE", "elsewhere")]);
        resolve(facts, &[elsewhere]);
    }),
];
