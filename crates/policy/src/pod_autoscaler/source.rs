//! What is measured.

use std::sync::Arc;

use super::amounts::TargetValue;
use super::object::MetricSourceSpec;

/// How a metrics page is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricsPage {
    /// `http` or `https`.
    pub protocol: Arc<str>,
    /// Its path, with a slash in front.
    pub path: Arc<str>,
}

/// Where values come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceKind {
    /// A page of each pod.
    Pod {
        /// Its port.
        port: Arc<str>,
        /// The page.
        page: MetricsPage,
    },
    /// `metrics.k8s.io`: milli-cores of each pod.
    Cpu,
    /// `metrics.k8s.io`: bytes of each pod.
    Memory,
    /// `custom.metrics.k8s.io`: a value of each pod.
    Custom,
    /// `external.metrics.k8s.io`: one total.
    External,
    /// A page of a service: one total.
    Service {
        /// Its host and port.
        endpoint: Arc<str>,
        /// The page.
        page: MetricsPage,
    },
}

/// One metric source.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSource {
    /// Where its values come from.
    pub kind: SourceKind,
    /// Name of the metric.
    pub metric: Arc<str>,
    /// What one replica is to carry.
    pub target: TargetValue,
}

impl MetricSource {
    /// Whether it has one value for all replicas, not one for each pod.
    pub fn is_total(&self) -> bool {
        matches!(self.kind, SourceKind::External | SourceKind::Service { .. })
    }

    /// What its window is kept by. The target is a part, as what pods without a sample count depends on it.
    pub fn identity(&self) -> String {
        format!("{self} at {}", self.target)
    }
}

wva_base::display_of! { MetricSource: Self { kind, metric, .. } => "{kind} {metric}"; }

wva_base::display_of! { SourceKind:
    Self::Pod { port, page } => "pod {}://:{port}{}", page.protocol, page.path;
    Self::Cpu | Self::Memory => "resource";
    Self::Custom => "custom";
    Self::External => "external";
    Self::Service { endpoint, page } => "external {}://{endpoint}{}", page.protocol, page.path;
}

impl SourceKind {
    /// Reads the fields that a type needs; `add` takes a field and what is wrong with it.
    pub(super) fn read(
        spec: &MetricSourceSpec,
        add: &mut impl FnMut(&str, String),
    ) -> Option<Self> {
        match &*spec.metric_source_type {
            "pod" => {
                need(add, "pod", &[("port", &spec.port)]);
                Some(Self::Pod { port: Arc::clone(&spec.port), page: page(spec, "pod", add) })
            }
            "resource" => Self::resource(spec, add),
            "custom" => Some(Self::Custom),
            "external" | "domain" if spec.endpoint.is_empty() => Some(Self::External),
            "external" | "domain" => Some(Self::Service {
                endpoint: Arc::clone(&spec.endpoint),
                page: page(spec, "external with an endpoint", add),
            }),
            other => {
                let why = format!(
                    "{other:?} is no source; write pod, resource, custom, external or domain"
                );
                add("metricSourceType", why);
                None
            }
        }
    }

    /// Whether a path names its metric: that of a metrics API, which a generated object reads, too.
    pub(super) fn is_named(&self, is_hpa: bool) -> bool {
        is_hpa || matches!(self, Self::Custom | Self::External)
    }

    fn resource(spec: &MetricSourceSpec, add: &mut impl FnMut(&str, String)) -> Option<Self> {
        let fields = [
            ("port", &spec.port),
            ("endpoint", &spec.endpoint),
            ("path", &spec.path),
            ("protocolType", &spec.protocol_type),
        ];
        for (field, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            let why = format!("{value:?} is not allowed for type resource; remove it");
            add(field, why);
        }
        match &*spec.target_metric {
            "cpu" => Some(Self::Cpu),
            "memory" => Some(Self::Memory),
            other => {
                let why = format!("targetMetric {other:?} is no resource; write cpu or memory");
                add("targetMetric", why);
                None
            }
        }
    }
}

impl MetricSourceSpec {
    /// Fields that are written and that its type does not read, with the reason.
    pub(super) fn fields_without_effect(
        &self,
        is_hpa: bool,
    ) -> impl Iterator<Item = (&'static str, &'static str)> {
        let of_api = Some("the metrics API is read, which has none");
        let of_endpoint = Some("the endpoint is read, which states its own");
        let of_hpa = is_hpa.then_some("an HPA reads metrics APIs alone");
        let [port, page, endpoint] = match (&*self.metric_source_type, &*self.endpoint) {
            ("pod", _) => [None, None, of_hpa.or(Some("the pods are read"))],
            ("custom", _) => [of_api, of_api, of_api],
            ("external" | "domain", "") => [of_api, of_api, None],
            ("external" | "domain", _) => [of_hpa.or(of_endpoint), None, of_hpa],
            // Of type resource they are refused.
            _ => [None, None, None],
        };
        let fields = [
            ("protocolType", &self.protocol_type, page),
            ("endpoint", &self.endpoint, endpoint),
            ("path", &self.path, page),
            ("port", &self.port, port),
        ];
        let written = fields.map(|(field, value, why)| {
            let why = why.filter(|_| !value.is_empty())?;
            Some((field, why))
        });
        written.into_iter().flatten()
    }
}

/// Whether a metrics API takes a name, as one part of a path. The API server refuses a generated object with another.
pub fn is_path_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

fn need(add: &mut impl FnMut(&str, String), kind: &str, fields: &[(&str, &Arc<str>)]) {
    for (field, _) in fields.iter().filter(|(_, value)| value.is_empty()) {
        add(field, format!("must be set for type {kind}"));
    }
}

fn page(spec: &MetricSourceSpec, kind: &str, add: &mut impl FnMut(&str, String)) -> MetricsPage {
    need(add, kind, &[("path", &spec.path), ("protocolType", &spec.protocol_type)]);
    let protocol = &spec.protocol_type;
    if !matches!(&**protocol, "" | "http" | "https") {
        add("protocolType", format!("{protocol:?} is no protocol; write http or https"));
    }
    let path = spec.path.trim_start_matches('/');
    MetricsPage { protocol: Arc::clone(protocol), path: format!("/{path}").into() }
}
