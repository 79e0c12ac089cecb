//! The few fields of a `ResourceClaim` that say which devices are held, and by whom.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What is claimed; what was allocated says more.
#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize)]
#[kube(
    group = "resource.k8s.io",
    version = "v1",
    kind = "ResourceClaim",
    plural = "resourceclaims",
    namespaced,
    status = "ResourceClaimStatus",
    schema = "disabled"
)]
pub struct ResourceClaimSpec {}

/// What was allocated.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceClaimStatus {
    /// The devices; `None` where none are allocated.
    pub allocation: Option<Allocation>,
    /// Who uses them.
    pub reserved_for: Vec<ClaimConsumer>,
}

/// The devices of a claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Allocation {
    /// The devices.
    #[serde(default)]
    pub devices: AllocatedDevices,
}

/// The devices of a claim, each by itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct AllocatedDevices {
    /// One for each device of each request.
    #[serde(default)]
    pub results: Vec<AllocatedDevice>,
}

/// One device.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AllocatedDevice {
    /// Its driver.
    pub driver: String,
    /// Its pool.
    pub pool: String,
    /// Its name in the pool.
    pub device: String,
    /// Whether others may hold it, too.
    pub admin_access: Option<bool>,
}

/// Who uses a claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimConsumer {
    /// `pods`.
    pub resource: String,
    /// Its name.
    pub name: String,
}
