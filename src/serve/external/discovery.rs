//! What is served, as clients and the aggregator ask for it.

use serde_json::{Value, json};

use super::values::ExternalMetric;
use super::{GROUP, GROUP_VERSION, VERSION};

/// `/apis`.
pub(super) fn groups() -> Value {
    let mut group = group();
    if let Some(fields) = group.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group] })
}

/// `/apis/external.metrics.k8s.io`.
pub(super) fn group() -> Value {
    let version = json!({ "groupVersion": GROUP_VERSION, "version": VERSION });
    json!({
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": GROUP,
        "versions": [version],
        "preferredVersion": version,
    })
}

/// `/apis/external.metrics.k8s.io/v1beta1`. Only `get` is named, as by other servers of this group:
/// a resource that could be listed and deleted would be looked through whenever a namespace goes.
pub(super) fn resources() -> Value {
    let resource = |metric: ExternalMetric| {
        json!({
            "name": metric.as_str(),
            "singularName": "",
            "namespaced": true,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        })
    };
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": GROUP_VERSION,
        "resources": ExternalMetric::ALL.map(resource),
    })
}
