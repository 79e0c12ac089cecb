//! Messages of `externalscaler.ExternalScaler`, the service that KEDA calls. Field numbers are those of KEDA 2.21.

use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ScaledObjectRef {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(super) scaler_metadata: BTreeMap<String, String>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct IsActiveResponse {
    #[prost(bool, tag = "1")]
    pub(super) result: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GetMetricSpecResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) metric_specs: Vec<MetricTargetSpec>,
}

/// `MetricSpec`: a metric, with the value that one replica stands for.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricTargetSpec {
    #[prost(string, tag = "1")]
    pub(super) metric_name: String,
    #[prost(int64, tag = "2")]
    pub(super) target_size: i64,
    #[prost(double, tag = "3")]
    pub(super) target_size_float: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GetMetricsRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) scaled_object_ref: Option<ScaledObjectRef>,
    #[prost(string, tag = "2")]
    pub(super) metric_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GetMetricsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) metric_values: Vec<MetricValue>,
}

/// The value of one metric. KEDA reads the whole number where the other one is 0.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricValue {
    #[prost(string, tag = "1")]
    pub(super) metric_name: String,
    #[prost(int64, tag = "2")]
    pub(super) whole: i64,
    #[prost(double, tag = "3")]
    pub(super) float: f64,
}
