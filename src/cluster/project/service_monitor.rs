//! `ServiceMonitor`, by its metadata alone: the one that scrapes us may be deleted.

use std::sync::Arc;

use kube::core::PartialObjectMeta;

use super::{Interner, Projected, uid};
use crate::api::service_monitor::ServiceMonitor;

/// What is kept of a `ServiceMonitor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceMonitorObject {
    /// `metadata.uid`, for events on it.
    pub uid: Arc<str>,
}

impl Projected for PartialObjectMeta<ServiceMonitor> {
    type View = ServiceMonitorObject;

    fn project(self, _: &mut Interner) -> ServiceMonitorObject {
        ServiceMonitorObject { uid: uid(&self.metadata) }
    }
}
