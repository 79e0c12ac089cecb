//! The Prometheus operator's `ServiceMonitor`, of which only the metadata is read.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// Nothing: the type names the resource for metadata requests.
#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize)]
#[kube(
    group = "monitoring.coreos.com",
    version = "v1",
    kind = "ServiceMonitor",
    plural = "servicemonitors",
    namespaced,
    schema = "disabled"
)]
pub struct ServiceMonitorSpec {}
