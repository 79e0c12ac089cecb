//! Causes in what the API server serves.

use serde_json::json;

use super::causes::{Cause, absent, bundle, edit, main_config, objects, remove};
use super::fleets::all_by_keda;
use crate::doctor::examine;
use crate::doctor::facts::{Facts, LiveKind, Reading};
use crate::doctor::object::LiveObject;

pub(super) const EXTERNAL_METRICS: &str = "v1beta1.external.metrics.k8s.io";

/// The server of external metrics has no endpoint.
pub(super) fn unavailable(facts: &mut Facts) {
    let condition =
        json!([{ "type": "Available", "status": "False", "reason": "MissingEndpoints" }]);
    let place = "/status/conditions";
    edit(facts, LiveKind::APIService, EXTERNAL_METRICS, place, condition);
}

/// A definition without the bounds of replicas.
pub(super) fn old_definition(facts: &mut Facts) {
    let schema = json!({ "properties": { "spec": { "properties": { "modelID": {} } } } });
    let version = json!({ "name": "v1alpha1", "schema": { "openAPIV3Schema": schema } });
    let name = "variantautoscalings.llmd.ai";
    let object = json!({
        "kind": "CustomResourceDefinition", "metadata": { "name": name }, "spec": { "versions": [version] } });
    objects(facts, LiveKind::CustomResourceDefinition).push(LiveObject::new(object));
}

pub(super) const CLUSTER: &[Cause] = causes! {
    DefinitionOld => old_definition;
    VariantKindMissing => |facts| absent(facts, LiveKind::VariantAutoscaling);
    PodAutoscalerKindMissing => |facts| {
        absent(facts, LiveKind::PodAutoscaler);
        main_config(facts, "POD_AUTOSCALERS_ENABLED", "true");
    };
    ExternalMetricsMissing => unavailable;
    ExternalMetricsMissing => |facts| remove(facts, LiveKind::APIService, EXTERNAL_METRICS);
    // Below KEDA, no HorizontalPodAutoscaler gets a number then.
    ExternalMetricsMissing => |facts| {
        all_by_keda(facts, true);
        unavailable(facts);
        let failing = json!({ "type": "ScalingActive", "status": "False", "reason": "FailedGetExternalMetric",
            "message": "unable to get external metric ns/s0-prometheus/nil: the server is unavailable" });
        for name in ["keda-hpa-a", "keda-hpa-b"] {
            let (kind, place) = (LiveKind::HorizontalPodAutoscaler, "/status/conditions/1");
            edit(facts, kind, name, place, failing.clone());
        }
    };
    WebhookUnserved: EndpointSlice "webhooks-1" "/endpoints/0/conditions/ready" = false;
    CertificateEnds => |facts| {
        let (kind, place) = (LiveKind::ValidatingWebhookConfiguration, "/webhooks/0/clientConfig/caBundle");
        edit(facts, kind, "wva", place, bundle(6));
    };
    NoScalerKind => |facts| {
        absent(facts, LiveKind::ScaledObject);
        remove(facts, LiveKind::APIService, EXTERNAL_METRICS);
        remove(facts, LiveKind::VariantAutoscaling, "b");
    };
    OldKubernetes => |facts| facts.version = Reading::Known((1, 24));
};

#[test]
fn nothing_is_available_where_nothing_is_installed() {
    let mut facts = super::facts();
    let tick = "√ external metrics are available\n";
    assert!(examine(&facts).to_text().contains(tick));
    absent(&mut facts, LiveKind::ScaledObject);
    assert!(examine(&facts).to_text().contains(tick));
    remove(&mut facts, LiveKind::APIService, EXTERNAL_METRICS);
    let text = examine(&facts).to_text();
    assert!(text.contains("× WVA006 ") && !text.contains(tick), "{text}");
}
