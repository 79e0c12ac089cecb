//! Reads the metrics APIs of Kubernetes: usage of pods, custom metrics of pods, and external metrics.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::client::{RequestError, within};
use crate::policy::pod_autoscaler::resource_quantity::{
    InvalidQuantity, milli_quantity, resource_quantity,
};
use crate::policy::pod_autoscaler::source::is_path_segment;
use wva_base::moment::WallTime;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MetricsApi {
    Resource,
    Custom,
    External,
}

impl MetricsApi {
    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::Resource => "metrics.k8s.io",
            Self::Custom => "custom.metrics.k8s.io",
            Self::External => "external.metrics.k8s.io",
        }
    }

    /// Its versions that are understood, the preferred one first.
    fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Resource | Self::External => &["v1beta1"],
            Self::Custom => &["v1beta2", "v1beta1"],
        }
    }

    pub(crate) fn server(self) -> &'static str {
        match self {
            Self::Resource => "metrics-server",
            Self::Custom => "an adapter for custom metrics",
            Self::External => "an adapter for external metrics",
        }
    }
}

/// The version that each API is served in.
pub(crate) type ServedMetricsApis = BTreeMap<MetricsApi, &'static str>;

/// One request: it brings the values of all pods of a namespace, or one total.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MetricsRequest {
    pub(crate) api: MetricsApi,
    pub(crate) namespace: Arc<str>,
    /// Of which metric; empty for usage, which has both.
    pub(crate) metric: Arc<str>,
}

/// A value with the time that it was measured at, where the API states it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MeasuredMetric {
    pub(crate) value: Result<f64, InvalidQuantity>,
    pub(crate) at: Option<WallTime>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MetricsAnswer {
    /// Milli-cores and bytes, by pod.
    Usage(BTreeMap<Arc<str>, PodUsage>),
    Custom(BTreeMap<Arc<str>, MeasuredMetric>),
    /// The sum of all items; `None` without any.
    External(Option<MeasuredMetric>),
}

/// The usage of all containers of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodUsage {
    /// Milli-cores.
    pub(crate) cpu: MeasuredMetric,
    /// Bytes.
    pub(crate) memory: MeasuredMetric,
}

#[derive(Clone)]
pub(crate) struct MetricsApiClient {
    pub(crate) client: Client,
    /// Longest wait for one answer.
    pub(crate) timeout: Duration,
}

wva_base::debug_of!(MetricsApiClient: timeout);

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Deserialize)]
struct UsageItem {
    metadata: ItemName,
    timestamp: Option<String>,
    #[serde(default)]
    containers: Vec<ContainerItem>,
}

#[derive(Deserialize)]
struct ItemName {
    name: Arc<str>,
}

#[derive(Deserialize)]
struct ContainerItem {
    #[serde(default)]
    usage: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct ValueItem {
    #[serde(rename = "describedObject")]
    object: Option<ItemName>,
    timestamp: Option<String>,
    value: Value,
}

impl MetricsApiClient {
    pub(crate) async fn served(&self) -> Result<ServedMetricsApis, RequestError> {
        let groups = within(self.timeout, self.client.list_api_groups()).await?;
        let all = [MetricsApi::Resource, MetricsApi::Custom, MetricsApi::External];
        let served = all.into_iter().filter_map(|api| {
            let group = groups.groups.iter().find(|one| one.name == api.group())?;
            let mut versions = api.versions().iter().copied();
            let serves = |version: &&str| group.versions.iter().any(|one| one.version == *version);
            Some((api, versions.find(serves)?))
        });
        Ok(served.collect())
    }

    /// Sends one request to an API in this version.
    ///
    /// # Errors
    /// Whatever kept the API from answering; a metric that it does not have is refused with 404.
    pub(crate) async fn read(
        &self,
        request: &MetricsRequest,
        version: &str,
    ) -> Result<MetricsAnswer, RequestError> {
        let (group, namespace) = (request.api.group(), segment(&request.namespace));
        let metric = segment(&request.metric);
        // No metric has another name, and a path must not climb.
        let is_name = is_path_segment(&request.metric);
        let root = format!("/apis/{group}/{version}/namespaces/{namespace}");
        Ok(match request.api {
            MetricsApi::Resource => {
                MetricsAnswer::Usage(usage(self.get(format!("{root}/pods")).await?))
            }
            MetricsApi::Custom if !is_name => MetricsAnswer::Custom(BTreeMap::new()),
            MetricsApi::External if !is_name => MetricsAnswer::External(None),
            MetricsApi::Custom => {
                let list = self.get(format!("{root}/pods/*/{metric}")).await?;
                MetricsAnswer::Custom(by_pod(list))
            }
            MetricsApi::External => {
                let list: List<ValueItem> = self.get(format!("{root}/{metric}")).await?;
                MetricsAnswer::External(total(list.items.iter().map(measured)))
            }
        })
    }

    async fn get<T: DeserializeOwned>(&self, path: String) -> Result<T, RequestError> {
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(|error| RequestError::from(kube::Error::HttpError(error)))?;
        within(self.timeout, self.client.request(request)).await
    }
}

/// A part of a path, with all that a path may not hold in its encoded form.
fn segment(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        let letter = char::from(byte);
        if letter.is_ascii_alphanumeric() || "-._~:".contains(letter) {
            encoded.push(letter);
        } else {
            write!(encoded, "%{byte:02X}").unwrap_or_default();
        }
    }
    encoded
}

fn usage(list: List<UsageItem>) -> BTreeMap<Arc<str>, PodUsage> {
    let items = list.items.into_iter();
    items
        // A pod whose containers were not measured has no usage.
        .filter(|item| !item.containers.is_empty())
        .map(|item| {
            let at = item.timestamp.as_deref().and_then(wall_time);
            let sum = |resource: &str, parse: fn(&str) -> Result<f64, InvalidQuantity>| {
                let containers = item.containers.iter();
                let values = containers.map(|one| match one.usage.get(resource) {
                    Some(value) => parse(&text_of(value)),
                    None => parse(""),
                });
                MeasuredMetric {
                    value: values.sum(),
                    at,
                }
            };
            let usage = PodUsage {
                cpu: sum("cpu", milli_quantity),
                memory: sum("memory", resource_quantity),
            };
            (item.metadata.name, usage)
        })
        .collect()
}

fn by_pod(list: List<ValueItem>) -> BTreeMap<Arc<str>, MeasuredMetric> {
    let mut items: BTreeMap<Arc<str>, Vec<MeasuredMetric>> = BTreeMap::new();
    for item in list.items {
        let value = measured(&item);
        if let Some(object) = item.object {
            items.entry(object.name).or_default().push(value);
        }
    }
    items.into_iter().filter_map(|(pod, values)| Some((pod, total(values.into_iter())?))).collect()
}

fn measured(item: &ValueItem) -> MeasuredMetric {
    MeasuredMetric {
        value: resource_quantity(&text_of(&item.value)),
        at: item.timestamp.as_deref().and_then(wall_time),
    }
}

/// The sum of items, as old as the oldest of them.
fn total(items: impl Iterator<Item = MeasuredMetric>) -> Option<MeasuredMetric> {
    items.reduce(|sum, item| MeasuredMetric {
        value: sum.value.and_then(|sum| Ok(sum + item.value?)),
        at: match (sum.at, item.at) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        },
    })
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn wall_time(text: &str) -> Option<WallTime> {
    let time: Timestamp = text.parse().ok()?;
    Some(WallTime(time.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::fake::{FakeResponse, FakeServer, refusal};

    fn apis(server: &FakeServer) -> MetricsApiClient {
        MetricsApiClient { client: server.client(), timeout: Duration::from_secs(5) }
    }

    fn request(api: MetricsApi, metric: &str) -> MetricsRequest {
        MetricsRequest { api, namespace: "ns".into(), metric: metric.into() }
    }

    async fn read(api: MetricsApi, metric: &str, answer: Value) -> (MetricsAnswer, String) {
        let server = FakeServer::new([FakeResponse::Json(200, answer)]);
        let answer = apis(&server).read(&request(api, metric), "v1beta1").await;
        (answer.unwrap(), server.asked()[0].path.clone())
    }

    fn known(value: f64, at: Option<i64>) -> MeasuredMetric {
        MeasuredMetric { value: Ok(value), at: at.map(WallTime) }
    }

    #[tokio::test]
    async fn usage_is_summed_over_containers_in_milli_cores_and_bytes() {
        let item = |name: &str, containers: Value| {
            json!({
                "metadata": {"name": name, "namespace": "ns"},
                "timestamp": "1970-01-01T00:00:10Z", "window": "15s", "containers": containers,
            })
        };
        let list = json!({"kind": "PodMetricsList", "items": [
            item("a", json!([
                {"name": "x", "usage": {"cpu": "1500000n", "memory": "128Mi"}},
                {"name": "y", "usage": {"cpu": "2", "memory": "1k"}},
            ])),
            item("b", json!([])),
            item("c", json!([{"name": "x", "usage": {"cpu": "many"}}])),
        ]});
        let (answer, path) = read(MetricsApi::Resource, "", list).await;
        assert_eq!(path, "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods");
        let MetricsAnswer::Usage(usage) = answer else {
            panic!("{answer:?}");
        };
        let pods: Vec<&str> = usage.keys().map(|pod| &**pod).collect();
        assert_eq!(pods, ["a", "c"]);
        assert_eq!(usage["a"].cpu, known(2_001.5, Some(10_000)));
        assert_eq!(usage["a"].memory, known(134_218_728.0, Some(10_000)));
        assert!(usage["c"].cpu.value.is_err() && usage["c"].memory.value.is_err());
    }

    #[tokio::test]
    async fn custom_metrics_are_values_of_pods() {
        let item = |pod: &str, value: Value, time: Value| {
            json!({
                "describedObject": {"kind": "Pod", "namespace": "ns", "name": pod, "apiVersion": "/v1"},
                "metricName": "q", "timestamp": time, "value": value, "selector": null,
            })
        };
        let list = json!({"items": [
            item("a", json!("1500m"), json!("1970-01-01T00:00:01.5Z")),
            item("b", json!(3), json!(null)),
        ]});
        let (answer, path) = read(MetricsApi::Custom, "my queue:x", list).await;
        let expected = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/pods/*/my%20queue:x";
        assert_eq!(path, expected);
        let values = [("a", known(1.5, Some(1_500))), ("b", known(3.0, None))];
        let values = values.map(|(pod, value)| (Arc::from(pod), value));
        assert_eq!(answer, MetricsAnswer::Custom(BTreeMap::from(values)));
    }

    #[tokio::test]
    async fn a_name_that_is_no_part_of_a_path_is_not_sent() {
        for name in [".", "..", "../../pods", "a/b", "%2E%2E"] {
            let server = FakeServer::new([]);
            let apis = apis(&server);
            for (api, nothing) in [
                (MetricsApi::Custom, MetricsAnswer::Custom(BTreeMap::new())),
                (MetricsApi::External, MetricsAnswer::External(None)),
            ] {
                let answer = apis.read(&request(api, name), "v1beta1").await;
                assert_eq!(answer.unwrap(), nothing, "{name}");
            }
            assert!(server.asked().is_empty(), "{name}");
        }
    }

    #[tokio::test]
    async fn an_external_metric_is_the_sum_of_its_items_and_as_old_as_the_oldest() {
        let item = |value: &str, time: &str| json!({"metricName": "q", "metricLabels": {"a": "b"}, "timestamp": time, "value": value});
        let times = ["1970-01-01T00:00:09Z", "1970-01-01T00:00:08Z"];
        let list = json!({"items": [item("100m", times[0]), item("2", times[1])]});
        let (answer, path) = read(MetricsApi::External, "q", list).await;
        assert_eq!(path, "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/q");
        assert_eq!(answer, MetricsAnswer::External(Some(known(2.1, Some(8_000)))));
        let (answer, _) = read(MetricsApi::External, "q", json!({"items": []})).await;
        assert_eq!(answer, MetricsAnswer::External(None));
        let list = json!({"items": [item("1", times[0]), item("much", times[1])]});
        let (answer, _) = read(MetricsApi::External, "q", list).await;
        assert!(matches!(answer, MetricsAnswer::External(Some(sum)) if sum.value.is_err()));
    }

    #[tokio::test]
    async fn the_preferred_of_the_served_versions_is_used() {
        let group = |name: &str, versions: &[&str]| {
            let version = |version: &str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
            let versions: Vec<Value> = versions.iter().map(|one| version(one)).collect();
            json!({"name": name, "versions": versions})
        };
        let groups = |all: Vec<Value>| {
            FakeResponse::Json(200, json!({"kind": "APIGroupList", "groups": all}))
        };
        let server = FakeServer::new([
            groups(vec![
                group("custom.metrics.k8s.io", &["v1beta1", "v1beta2"]),
                group("metrics.k8s.io", &["v1beta1"]),
                group("external.metrics.k8s.io", &["v2"]),
            ]),
            groups(vec![group("custom.metrics.k8s.io", &["v1beta1"])]),
            refusal(503, "ServiceUnavailable", "later"),
        ]);
        let apis = apis(&server);
        let listed = apis.served().await.unwrap();
        let both = [(MetricsApi::Resource, "v1beta1"), (MetricsApi::Custom, "v1beta2")];
        assert_eq!(listed, BTreeMap::from(both));
        let listed = apis.served().await.unwrap();
        assert_eq!(listed, BTreeMap::from([(MetricsApi::Custom, "v1beta1")]));
        assert_eq!(apis.served().await.unwrap_err().code(), Some(503));
    }
}
