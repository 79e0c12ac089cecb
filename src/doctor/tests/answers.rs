//! Causes that answers of Prometheus show, and those of scalers.

use std::collections::BTreeMap;

use serde_json::json;

use super::causes::{Cause, edit, forget_running, objects, remove};
use super::fleets::external_scaler;
use super::healthy::{LEASE, NOW, QUERY, controller, resolve, series};
use crate::doctor::FindingCode as Code;
use crate::doctor::facts::{Facts, LiveKind, Reading, SeriesFact};
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

pub(super) const ANSWERS: &[Cause] = &[
    (Code::PrometheusUnusable, |facts| {
        down(facts, "Prometheus cannot be reached (connection refused)");
    }),
    (Code::PrometheusPlain, |facts| {
        down(
            facts,
            "Prometheus does not answer with TLS (corrupt message)",
        );
    }),
    (Code::PrometheusEmpty, |facts| {
        for reading in facts.series.values_mut() {
            *reading = Reading::Known(Vec::new());
        }
        triggers(facts, Ok(Vec::new()));
    }),
    (Code::OwnSeriesMissing, |facts| {
        answer(facts, Probe::Counts, Vec::new());
        triggers(facts, Ok(Vec::new()));
    }),
    (Code::VariantSeriesMissing, |facts| {
        answer(
            facts,
            Probe::Counts,
            vec![series(
                "namespace=system,exported_namespace=ns,variant_name=b",
                1.0,
            )],
        );
    }),
    (Code::ClockSkew, |facts| {
        answer(facts, Probe::Clock, vec![series("", NOW + 60.0)]);
    }),
    (Code::SlowScrape, |facts| {
        answer(
            facts,
            Probe::Ages,
            vec![series("namespace=ns,pod=a-0", 60.0)],
        );
    }),
    (Code::DoubleScrape, |facts| {
        answer(
            facts,
            Probe::Doubles,
            vec![series(
                "namespace=ns,pod=a-0,__name__=vllm:num_requests_running",
                2.0,
            )],
        );
    }),
    (Code::EngineNotScraped, |facts| forget_running(facts, "a-0")),
    (Code::EngineScrapeFails, |facts| {
        forget_running(facts, "a-0");
        answer(
            facts,
            Probe::Pods,
            vec![series("namespace=ns,pod=a-0", 0.0)],
        );
    }),
    (Code::LabelsMissing, |facts| {
        answer(
            facts,
            Probe::Running,
            vec![series("model_name=meta/llama", 2.0)],
        );
    }),
    (Code::ModelNameDiffers, |facts| model(facts, "served")),
    (Code::ModelNameSpelledOtherwise, |facts| {
        model(facts, "/models/Llama");
    }),
    (Code::UnknownGeneration, |facts| {
        let one = series("namespace=ns,pod=a-0", 40.0);
        forget_running(facts, "a-0");
        answer(facts, Probe::EngineSeries, vec![one]);
    }),
    (Code::SeriesOfDeadPods, |facts| {
        let Some(Reading::Known(running)) = facts.series.get_mut(&Probe::Running) else {
            return;
        };
        running.push(series("namespace=ns,pod=a-9,model_name=meta/llama", 2.0));
    }),
    (Code::FlowControlOff, |facts| {
        answer(facts, Probe::RouterQueues, Vec::new());
    }),
];

pub(super) fn triggers(facts: &mut Facts, answer: Result<Vec<SeriesFact>, String>) {
    let key = (crate::policy::key::ObjectKey::new("ns", "b"), 0);
    facts.triggers = Reading::Known(BTreeMap::from([(key, answer)]));
}

/// A scaler reports that it does not work.
fn fails(facts: &mut Facts) {
    let status = json!({ "conditions": [{ "type": "ScalingActive", "status": "False",
        "reason": "FailedGetExternalMetric", "message": "no metrics", "lastTransitionTime": "2025-12-31T23:00:00Z" }] });
    hpa(facts, "/status", status);
}

fn hpa(facts: &mut Facts, pointer: &str, value: serde_json::Value) {
    edit(
        facts,
        LiveKind::HorizontalPodAutoscaler,
        "a",
        pointer,
        value,
    );
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

pub(super) const SCALERS: &[Cause] = &[
    (Code::NoScaler, |facts| {
        objects(facts, LiveKind::HorizontalPodAutoscaler).clear();
    }),
    (Code::SeveralScalers, |facts| {
        let mut object = objects(facts, LiveKind::HorizontalPodAutoscaler)[0].clone();
        object.0["metadata"]["name"] = json!("second");
        objects(facts, LiveKind::HorizontalPodAutoscaler).push(object);
    }),
    (Code::CountNotRead, |facts| {
        hpa(
            facts,
            "/spec/metrics/0/external/metric/selector/matchLabels/variant_name",
            json!("other"),
        );
    }),
    (Code::WrongTarget, |facts| {
        hpa(
            facts,
            "/spec/metrics/0/external/target",
            json!({ "type": "Value", "value": "1" }),
        );
    }),
    (Code::WrongTarget, |facts| {
        keda(facts, "/spec/triggers/0/metricType", json!("Value"));
    }),
    (Code::ScalerPaused, |facts| {
        keda(
            facts,
            "/metadata/annotations",
            json!({ "autoscaling.keda.sh/paused": "true" }),
        );
    }),
    (Code::ScalerPaused, |facts| {
        keda(
            facts,
            "/metadata/annotations",
            json!({ "autoscaling.keda.sh/paused-scale-out": "true" }),
        );
    }),
    // KEDA took it to zero, and no hand did.
    (Code::ScalerPaused, |facts| {
        keda(
            facts,
            "/metadata/annotations",
            json!({ "autoscaling.keda.sh/paused-replicas": "0" }),
        );
        edit(facts, LiveKind::Deployment, "b", "/spec/replicas", json!(0));
        remove(facts, LiveKind::Pod, "b-0");
        forget_running(facts, "b-0");
    }),
    (Code::ScalerPaused, |facts| {
        hpa(
            facts,
            "/spec/behavior/scaleUp/selectPolicy",
            json!("Disabled"),
        );
    }),
    (Code::ScalerFails, fails),
    // A scaler without a count fails, and counts end with their leader.
    (Code::OwnSeriesMissing, |facts| {
        answer(facts, Probe::Counts, Vec::new());
        fails(facts);
    }),
    (Code::LeaseUnheld, |facts| {
        let time = json!("2025-12-31T23:58:40.000000Z");
        edit(facts, LiveKind::Lease, LEASE, "/spec/renewTime", time);
        answer(facts, Probe::Counts, Vec::new());
        fails(facts);
    }),
    (Code::ScalerMinimum, |facts| {
        hpa(facts, "/spec/minReplicas", json!(2));
    }),
    (Code::ScalerMaximum, |facts| {
        hpa(facts, "/spec/maxReplicas", json!(4));
    }),
    (Code::AnnotationsNotTaken, |facts| {
        let annotations = json!({ "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m" });
        hpa(facts, "/metadata/annotations", annotations);
    }),
    (Code::ScalerTolerance, |facts| {
        hpa(facts, "/spec/behavior/scaleUp/tolerance", json!("0.2"));
    }),
    (Code::NullCountsAsZero, |facts| {
        keda(
            facts,
            "/spec/triggers/0/metadata/ignoreNullValues",
            json!("true"),
        );
    }),
    (Code::SlowScaleUp, |facts| {
        hpa(
            facts,
            "/spec/behavior/scaleUp/stabilizationWindowSeconds",
            json!(240),
        );
    }),
    (Code::SlowScaleUp, |facts| {
        external_scaler(facts);
        let config = "/spec/advanced/horizontalPodAutoscalerConfig";
        let window = format!("{config}/behavior/scaleUp/stabilizationWindowSeconds");
        keda(facts, &window, json!(600));
    }),
    (Code::FallbackZero, |facts| {
        keda(facts, "/spec/fallback/replicas", json!(0));
    }),
    // With the minimum 0 no behavior keeps anything.
    (Code::FallbackZero, |facts| {
        let fallback = json!({ "replicas": 0, "behavior": "currentReplicas" });
        keda(facts, "/spec/fallback", fallback);
        keda(facts, "/spec/minReplicaCount", json!(0));
    }),
    (Code::FallbackZero, |facts| {
        external_scaler(facts);
        keda(facts, "/spec/fallback/replicas", json!(0));
    }),
    // KEDA has not asked it yet.
    (Code::FallbackZero, |facts| {
        external_scaler(facts);
        let metadata = json!({ "scalerAddress": "x", "modelID": "meta/llama" });
        keda(facts, "/spec/triggers/0/metadata", metadata);
        keda(facts, "/spec/fallback/replicas", json!(0));
    }),
    (Code::QueryAddsUp, |facts| {
        query(facts, &QUERY.replacen("max", "sum", 1));
    }),
    (Code::QueryInventsZero, |facts| {
        query(facts, &format!("{QUERY} or vector(0)"));
    }),
    // The fallback has other labels than the count.
    (Code::QueryInventsZero, |facts| {
        query(facts, &format!("{QUERY} or vector(0)"));
        triggers(
            facts,
            Ok(vec![series("variant_name=b", 2.0), series("", 0.0)]),
        );
    }),
    (Code::QueryFindsNothing, |facts| {
        triggers(facts, Ok(Vec::new()));
    }),
    (Code::QueryFindsNothing, |facts| {
        query(facts, &QUERY.replace("exported_namespace=", "namespace="));
        triggers(facts, Ok(Vec::new()));
    }),
    (Code::QueryFindsSeveral, |facts| {
        triggers(facts, Ok(vec![series("pod=x", 1.0), series("pod=y", 1.0)]));
    }),
    (Code::QueryFails, |facts| {
        triggers(facts, Err("Prometheus rejected the query".to_owned()));
    }),
    (Code::SaturationCannotAsk, |facts| {
        share(facts, "wva_saturation_utilization", "0.7");
    }),
    (Code::InstanceNotSelected, |facts| {
        let named = |name: &str, instance: &str| {
            let mut object = controller(name);
            let all = &mut object["spec"]["template"]["spec"]["containers"][0]["env"];
            let variable = json!({ "name": "CONTROLLER_INSTANCE", "value": instance });
            all.as_array_mut().unwrap().push(variable);
            object
        };
        resolve(facts, &[named("wva", "blue"), named("wva-green", "green")]);
        for name in ["a", "b"] {
            edit(
                facts,
                LiveKind::VariantAutoscaling,
                name,
                "/metadata/labels",
                json!({ "wva.llmd.ai/controller-instance": "blue" }),
            );
        }
        let mut lease = objects(facts, LiveKind::Lease)[0].clone();
        lease.0["metadata"]["name"] = json!(format!("{LEASE}-blue"));
        objects(facts, LiveKind::Lease).push(lease.clone());
        lease.0["metadata"]["name"] = json!(format!("{LEASE}-green"));
        objects(facts, LiveKind::Lease).push(lease);
        keda(
            facts,
            "/metadata/annotations",
            json!({ "note": "wva_desired_replicas" }),
        );
        query(
            facts,
            &QUERY.replace(
                "variant_name=\"b\"",
                "variant_name=\"b\",controller_instance=\"blue\"",
            ),
        );
    }),
];
