//! Causes of PodAutoscalers.

use serde_json::json;

use super::causes::{Cause, edit, objects, remove, with_environment};
use super::fleets::pod_autoscalers;
use super::healthy::{self, resolve};
use crate::doctor::facts::{FactSource, Facts, LiveKind};
use crate::doctor::{FindingCode, examine};

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

pub(super) const AUTOSCALERS: &[Cause] = causes! {
    AutoscalerInvalid => |facts| specifies(facts, "/spec/maxReplicas", json!(0));
    AutoscalerInvalid => |facts| specifies(facts, "/spec/minReplicas", json!("one"));
    AutoscalerInvalid => |facts| {
        let night = json!([{ "name": "night", "startTime": "22:00", "endTime": "06:00", "minReplicas": 0 }]);
        specifies(facts, "/spec/schedules", night);
    };
    AutoscalerTargetMissing => |facts| {
        reports(facts, 2, "AbleToScale", "FailedGetScale");
        remove(facts, LiveKind::Deployment, "kpa");
    };
    AutoscalerConflict => |facts| reports(facts, 0, "MultiPodAutoscalerConflict", "MultiPodAutoscalerConflict");
    AutoscalerMetricAbsent => |facts| reports(facts, 3, "MetricsAvailable", "MetricsAbsent");
    AutoscalerMetricsFail => |facts| reports(facts, 3, "MetricsAvailable", "MetricsFailed");
    AutoscalerMetricsFail => |facts| reports(facts, 3, "MetricsAvailable", "NoServingPod");
    AutoscalerMetricsFail => |facts| reports(facts, 1, "ScalingActive", "FailedGetResourceMetric");
    AutoscalerPort => |facts| {
        pod_autoscalers(facts);
        facts.source = FactSource::Files;
        let ports = json!([{ "containerPort": 9000 }]);
        let path = "/spec/template/spec/containers/0/ports";
        edit(facts, LiveKind::Deployment, "kpa", path, ports);
    };
    AutoscalerAnnotation => |facts| {
        let annotations = json!({ "autoscaling.aibrix.ai/max-scale-up-rate": "fast" });
        specifies(facts, "/metadata/annotations", annotations);
    };
    AutoscalerAnnotation => |facts| reports(facts, 4, "AnnotationsAccepted", "AnnotationsWithoutEffect");
    AutoscalerStuck => |facts| reports(facts, 2, "AbleToScale", "HpaNotOwned");
    AutoscalerGated => |facts| reports(facts, 3, "MetricsAvailable", "PodsGated");
    AutoscalerAtZero => |facts| reports(facts, 4, "Asleep", "ScaledElsewhere");
    AutoscalersIgnored => |facts| {
        forget_status(facts);
        resolve(facts, &[with_environment("wva", &[("POD_AUTOSCALERS_ENABLED", "false")])]);
    };
    // No other object is in that namespace.
    NamespaceNotWatched => |facts| {
        forget_status(facts);
        for kind in [LiveKind::VariantAutoscaling, LiveKind::HorizontalPodAutoscaler, LiveKind::ScaledObject] {
            objects(facts, kind).clear();
        }
        resolve(facts, &[with_environment("wva", &[("WATCH_NAMESPACE", "elsewhere")])]);
    };
};

/// The causes of the findings of a code.
fn causes(facts: &Facts, code: FindingCode) -> Vec<String> {
    let diagnosis = examine(facts);
    let found = diagnosis.findings().filter(|one| one.code == code);
    found.map(|one| one.cause.clone()).collect()
}

#[test]
fn a_failing_source_names_ports_where_pages_are_read() {
    let causes = |strategy: &str| {
        let mut facts = healthy::facts();
        reports(&mut facts, 3, "MetricsAvailable", "MetricsFailed");
        edit(&mut facts, KIND, "kpa", "/spec/scalingStrategy", json!(strategy));
        let ports = json!([{ "containerPort": 9000 }]);
        let path = "/spec/template/spec/containers/0/ports";
        edit(&mut facts, LiveKind::Deployment, "kpa", path, ports);
        causes(&facts, FindingCode::AutoscalerMetricsFail)
    };
    let why = "MetricsAvailable is False (MetricsFailed): why";
    let port = "port 8000 is read, and the pods state 9000; check that a container listens there";
    assert_eq!(causes("KPA"), [format!("{port}; {why}")]);
    assert_eq!(causes("HPA"), [why]);
}

#[test]
fn a_condition_names_what_its_target_leaves_without_effect() {
    let causes = |facts: &Facts| causes(facts, FindingCode::AutoscalerAnnotation);
    let mut facts = healthy::facts();
    let annotations = json!({ "autoscaling.aibrix.ai/storm-service-mode": "both" });
    specifies(&mut facts, "/metadata/annotations", annotations);
    let own = "annotation autoscaling.aibrix.ai/storm-service-mode: \"both\" has no effect: the target is no \
               StormService; remove it";
    assert_eq!(causes(&facts), [own]);
    let condition = json!({
        "type": "AnnotationsAccepted", "status": "False", "reason": "AnnotationsWithoutEffect",
        "message": "spec.mode is another",
    });
    edit(&mut facts, KIND, "kpa", "/status/conditions/4", condition);
    assert_eq!(causes(&facts), ["spec.mode is another"]);
    edit(&mut facts, KIND, "kpa", "/status/conditions/4/status", json!("True"));
    assert_eq!(causes(&facts), [own]);
}
