//! `Service`, of which those with a port for metrics matter: they lead to the pods of routers.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Interner, Projected, lifecycle};
use crate::policy::key::ObjectLabels;
use crate::policy::object::Lifecycle;

const METRICS: &str = "metric";

/// What is kept of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceObject {
    /// Labels that a pod behind it carries; empty selects no pod.
    pub selector: Arc<ObjectLabels>,
    /// The port at which its pods serve metrics: that of the first port with `metric` in its name.
    pub metrics_port: Option<u16>,
    /// Whether it is being deleted.
    pub lifecycle: Lifecycle,
}

impl ServiceObject {
    /// Whether a pod with these labels stands behind it.
    pub fn selects(&self, labels: &ObjectLabels) -> bool {
        let mut wanted = self.selector.iter();
        !self.selector.is_empty() && wanted.all(|(key, value)| labels.get(key) == Some(value))
    }

    /// Whether it may lead to a router.
    pub fn has_metrics(&self) -> bool {
        self.metrics_port.is_some()
    }
}

impl Projected for Service {
    type View = ServiceObject;

    fn project(self, texts: &mut Interner) -> ServiceObject {
        let spec = self.spec.unwrap_or_default();
        let mut ports = spec.ports.iter().flatten();
        let metrics =
            ports.find(|port| port.name.as_deref().is_some_and(|name| name.contains(METRICS)));
        ServiceObject {
            selector: spec.selector.map(|selector| texts.labels(&selector)).unwrap_or_default(),
            metrics_port: metrics.and_then(pod_port),
            lifecycle: lifecycle(&self.metadata),
        }
    }
}

/// The port that pods listen at. One that is named in their containers is taken to have the number of
/// the service's own.
fn pod_port(port: &ServicePort) -> Option<u16> {
    let number = match &port.target_port {
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(_)) | None => port.port,
    };
    u16::try_from(number).ok().filter(|number| *number > 0)
}
