//! Causes that answers of Prometheus show, and those of scalers.

use serde_json::json;

use super::causes::{Cause, edit, forget_running, objects, remove, with_environment};
use super::fleets::external_scaler;
use super::healthy::{LEASE, NOW, QUERY, resolve, series};
use crate::doctor::checks::count_queries;
use crate::doctor::facts::{Facts, LiveKind, QueryAnswers, Reading, SeriesFact};
use crate::doctor::object::LiveObject;
use crate::doctor::probe::PrometheusProbe as Probe;

pub(super) fn answer(facts: &mut Facts, probe: Probe, series: Vec<SeriesFact>) {
    facts.series.insert(probe, Reading::Known(series));
}

/// Renames the model of all running requests.
pub(super) fn model(facts: &mut Facts, name: &str) {
    let renamed =
        ["a-0", "b-0"].map(|pod| series(&format!("namespace=ns,pod={pod},model_name={name}"), 1.0));
    answer(facts, Probe::Running, renamed.to_vec());
}

fn down(facts: &mut Facts, why: &str) {
    facts.prometheus = Reading::Known(Err(why.to_owned()));
    facts.series.clear();
    facts.triggers = Reading::NotAsked;
}

pub(super) const ANSWERS: &[Cause] = causes! {
    PrometheusUnusable => |facts| down(facts, "Prometheus cannot be reached (connection refused)");
    PrometheusPlain => |facts| down(facts, "Prometheus does not answer with TLS (corrupt message)");
    PrometheusEmpty => |facts| {
        for reading in facts.series.values_mut() {
            *reading = Reading::Known(Vec::new());
        }
        triggers(facts, Ok(Vec::new()));
    };
    OwnSeriesMissing => |facts| {
        answer(facts, Probe::Counts, Vec::new());
        triggers(facts, Ok(Vec::new()));
    };
    VariantSeriesMissing => |facts| {
        let other = series("namespace=system,exported_namespace=ns,variant_name=b", 1.0);
        answer(facts, Probe::Counts, vec![other]);
    };
    ClockSkew => |facts| answer(facts, Probe::Clock, vec![series("", NOW + 60.0)]);
    SlowScrape => |facts| answer(facts, Probe::Ages, vec![series("namespace=ns,pod=a-0", 60.0)]);
    DoubleScrape => |facts| {
        let double = series("namespace=ns,pod=a-0,__name__=vllm:num_requests_running", 2.0);
        answer(facts, Probe::Doubles, vec![double]);
    };
    EngineNotScraped => |facts| forget_running(facts, "a-0");
    EngineScrapeFails => |facts| {
        forget_running(facts, "a-0");
        answer(facts, Probe::Pods, vec![series("namespace=ns,pod=a-0", 0.0)]);
    };
    LabelsMissing => |facts| answer(facts, Probe::Running, vec![series("model_name=meta/llama", 2.0)]);
    ModelNameDiffers => |facts| model(facts, "served");
    ModelNameSpelledOtherwise => |facts| model(facts, "/models/Llama");
    UnknownGeneration => |facts| {
        forget_running(facts, "a-0");
        answer(facts, Probe::EngineSeries, vec![series("namespace=ns,pod=a-0", 40.0)]);
    };
    SeriesOfDeadPods => |facts| {
        let Some(Reading::Known(running)) = facts.series.get_mut(&Probe::Running) else {
            return;
        };
        running.push(series("namespace=ns,pod=a-9,model_name=meta/llama", 2.0));
    };
    FlowControlOff => |facts| answer(facts, Probe::RouterQueues, Vec::new());
};

/// Answers the query of one scaler alone.
fn answer_to(facts: &mut Facts, scaler: &str, answer: Result<Vec<SeriesFact>, String>) {
    let mut queries = count_queries(facts).into_iter();
    let (_, query) = queries.find(|(object, _)| object.name() == scaler).unwrap();
    facts.triggers = Reading::Known(QueryAnswers::from([(query, answer)]));
}

pub(super) fn triggers(facts: &mut Facts, answer: Result<Vec<SeriesFact>, String>) {
    answer_to(facts, "b", answer);
}

/// The selector of the HorizontalPodAutoscaler, of which an adapter finds nothing.
pub(super) fn selects_nothing(facts: &mut Facts, labels: serde_json::Value) {
    let place = "/spec/metrics/0/external/metric/selector/matchLabels";
    edit(facts, LiveKind::HorizontalPodAutoscaler, "a", place, labels);
    answer_to(facts, "a", Ok(Vec::new()));
}

/// A scaler reports that it does not work.
fn fails(facts: &mut Facts) {
    let status = json!({ "conditions": [{ "type": "ScalingActive", "status": "False",
        "reason": "FailedGetExternalMetric", "message": "no metrics", "lastTransitionTime": "2025-12-31T23:00:00Z" }] });
    let kind = LiveKind::HorizontalPodAutoscaler;
    edit(facts, kind, "a", "/status", status);
}

fn keda(facts: &mut Facts, pointer: &str, value: serde_json::Value) {
    edit(facts, LiveKind::ScaledObject, "b", pointer, value);
}

fn query(facts: &mut Facts, text: &str) {
    keda(facts, "/spec/triggers/0/metadata/query", json!(text));
}

/// Another HorizontalPodAutoscaler, of a target that is no variant's.
pub(super) fn share(facts: &mut Facts, metric: &str, target: &str) {
    let object = json!({
        "kind": "HorizontalPodAutoscaler", "metadata": { "namespace": "ns", "name": "share" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "free" },
            "maxReplicas": 8,
            "metrics": [{ "type": "External", "external": { "metric": { "name": metric },
                "target": { "type": "AverageValue", "averageValue": target } } }],
        },
    });
    objects(facts, LiveKind::HorizontalPodAutoscaler).push(LiveObject::new(object));
}

pub(super) const SCALERS: &[Cause] = causes! {
    NoScaler => |facts| objects(facts, LiveKind::HorizontalPodAutoscaler).clear();
    SeveralScalers => |facts| {
        let mut object = objects(facts, LiveKind::HorizontalPodAutoscaler)[0].clone();
        object.0["metadata"]["name"] = json!("second");
        objects(facts, LiveKind::HorizontalPodAutoscaler).push(object);
    };
    CountNotRead: HorizontalPodAutoscaler "a"
        "/spec/metrics/0/external/metric/selector/matchLabels/variant_name" = "other";
    CountNotRead: HorizontalPodAutoscaler "a" "/spec/metrics/0/external/metric/name" = "wva_desired_ratio";
    CountNotRead: HorizontalPodAutoscaler "a" "/spec/scaleTargetRef/name" = "free";
    WrongTarget: HorizontalPodAutoscaler "a" "/spec/metrics/0/external/target" = { "type": "Value", "value": "1" };
    WrongTarget: ScaledObject "b" "/spec/triggers/0/metricType" = "Value";
    ScalerPaused: ScaledObject "b" "/metadata/annotations" = { "autoscaling.keda.sh/paused": "true" };
    ScalerPaused: ScaledObject "b" "/metadata/annotations" = { "autoscaling.keda.sh/paused-scale-out": "true" };
    // KEDA took it to zero, and no hand did.
    ScalerPaused: ScaledObject "b" "/metadata/annotations" = { "autoscaling.keda.sh/paused-replicas": "0" },
        Deployment "b" "/spec/replicas" = 0 => |facts| {
            remove(facts, LiveKind::Pod, "b-0");
            forget_running(facts, "b-0");
        };
    ScalerPaused: HorizontalPodAutoscaler "a" "/spec/behavior/scaleUp/selectPolicy" = "Disabled";
    ScalerFails => fails;
    // A scaler without a count fails, and counts end with their leader.
    OwnSeriesMissing => |facts| {
        answer(facts, Probe::Counts, Vec::new());
        fails(facts);
    };
    LeaseUnheld: Lease LEASE "/spec/renewTime" = "2025-12-31T23:58:40.000000Z" => |facts| {
        answer(facts, Probe::Counts, Vec::new());
        fails(facts);
    };
    ScalerMinimum: HorizontalPodAutoscaler "a" "/spec/minReplicas" = 2;
    ScalerMaximum: HorizontalPodAutoscaler "a" "/spec/maxReplicas" = 4;
    AnnotationsNotTaken: HorizontalPodAutoscaler "a" "/metadata/annotations" =
        { "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m" };
    ScalerTolerance: HorizontalPodAutoscaler "a" "/spec/behavior/scaleUp/tolerance" = "0.2";
    NullCountsAsZero: ScaledObject "b" "/spec/triggers/0/metadata/ignoreNullValues" = "true";
    SlowScaleUp: HorizontalPodAutoscaler "a" "/spec/behavior/scaleUp/stabilizationWindowSeconds" = 240;
    SlowScaleUp: HorizontalPodAutoscaler "a" "/spec/behavior/scaleUp/policies" =
        [{ "type": "Pods", "value": 1, "periodSeconds": 240 }];
    SlowScaleUp => |facts| {
        external_scaler(facts);
        let config = "/spec/advanced/horizontalPodAutoscalerConfig";
        let window = format!("{config}/behavior/scaleUp/stabilizationWindowSeconds");
        keda(facts, &window, json!(600));
    };
    FallbackZero: ScaledObject "b" "/spec/fallback/replicas" = 0;
    // With the minimum 0 no behavior keeps anything.
    FallbackZero: ScaledObject "b" "/spec/fallback" = { "replicas": 0, "behavior": "currentReplicas" },
        ScaledObject "b" "/spec/minReplicaCount" = 0;
    FallbackZero => |facts| {
        external_scaler(facts);
        keda(facts, "/spec/fallback/replicas", json!(0));
    };
    // KEDA has not asked it yet.
    FallbackZero => |facts| {
        external_scaler(facts);
        let metadata = json!({ "scalerAddress": "x", "modelID": "meta/llama" });
        keda(facts, "/spec/triggers/0/metadata", metadata);
        keda(facts, "/spec/fallback/replicas", json!(0));
    };
    QueryAddsUp => |facts| query(facts, &QUERY.replacen("max", "sum", 1));
    QueryInventsZero => |facts| query(facts, &format!("{QUERY} or vector(0)"));
    // The fallback has other labels than the count.
    QueryInventsZero => |facts| {
        query(facts, &format!("{QUERY} or vector(0)"));
        triggers(facts, Ok(vec![series("variant_name=b", 2.0), series("", 0.0)]));
    };
    QueryFindsNothing => |facts| triggers(facts, Ok(Vec::new()));
    QueryFindsNothing => |facts| {
        query(facts, &QUERY.replace("exported_namespace=", "namespace="));
        triggers(facts, Ok(Vec::new()));
    };
    // The HorizontalPodAutoscaler fails because of that.
    QueryFindsNothing => |facts| {
        selects_nothing(facts, json!({ "variant_name": "a", "namespace": "ns" }));
        fails(facts);
    };
    QueryFindsSeveral => |facts| triggers(facts, Ok(vec![series("pod=x", 1.0), series("pod=y", 1.0)]));
    QueryFails => |facts| triggers(facts, Err("Prometheus rejected the query".to_owned()));
    SaturationCannotAsk => |facts| share(facts, "wva_saturation_utilization", "0.7");
    InstanceNotSelected: ScaledObject "b" "/metadata/annotations" = { "note": "wva_desired_replicas" },
        VariantAutoscaling "a" "/metadata/labels" = { "wva.llmd.ai/controller-instance": "blue" },
        VariantAutoscaling "b" "/metadata/labels" = { "wva.llmd.ai/controller-instance": "blue" } => |facts| {
            let named = [("wva", "blue"), ("wva-green", "green")].map(|(name, instance)| {
                with_environment(name, &[("CONTROLLER_INSTANCE", instance)])
            });
            resolve(facts, &named);
            for instance in ["blue", "green"] {
                let mut lease = objects(facts, LiveKind::Lease)[0].clone();
                lease.0["metadata"]["name"] = json!(format!("{LEASE}-{instance}"));
                objects(facts, LiveKind::Lease).push(lease);
            }
            let selected = "variant_name=\"b\",controller_instance=\"blue\"";
            query(facts, &QUERY.replace("variant_name=\"b\"", selected));
        };
};
