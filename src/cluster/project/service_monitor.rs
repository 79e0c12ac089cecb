//! `ServiceMonitor`, by its metadata alone: the one that scrapes us may be deleted.

use std::sync::Arc;

use kube::core::PartialObjectMeta;

use super::{Interner, Projected, lifecycle, name, namespace_of, uid};
use crate::api::service_monitor::ServiceMonitor;
use crate::policy::object::Lifecycle;

/// What is kept of a `ServiceMonitor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceMonitorObject {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// `metadata.uid`, for events on it.
    pub uid: Arc<str>,
    pub lifecycle: Lifecycle,
}

impl Projected for PartialObjectMeta<ServiceMonitor> {
    type View = ServiceMonitorObject;

    fn project(self, texts: &mut Interner) -> ServiceMonitorObject {
        ServiceMonitorObject {
            namespace: namespace_of(&self.metadata, texts),
            name: name(&self.metadata),
            uid: uid(&self.metadata),
            lifecycle: lifecycle(&self.metadata),
        }
    }
}
