//! The few fields of a `ResourceClaimTemplate` that say how many devices the claim of a pod holds.

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the claims are made from.
#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize)]
#[kube(
    group = "resource.k8s.io",
    version = "v1",
    kind = "ResourceClaimTemplate",
    plural = "resourceclaimtemplates",
    namespaced,
    schema = "disabled"
)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceClaimTemplateSpec {
    /// The specification of a claim.
    pub spec: ClaimSpec,
}

/// One claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSpec {
    /// The devices.
    pub devices: ClaimedDevices,
}

/// The devices of one claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimedDevices {
    /// Each is met.
    pub requests: Vec<ClaimRequest>,
}

/// One request of a claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimRequest {
    /// What is wanted.
    pub exactly: Option<DeviceRequest>,
    /// The first of these that is to be had.
    pub first_available: Vec<DeviceRequest>,
    /// What is wanted, in `v1beta1`; of no class otherwise.
    #[serde(flatten)]
    pub direct: DeviceRequest,
}

/// Devices of one class.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceRequest {
    /// The class.
    pub device_class_name: String,
    /// `ExactCount`, where it says nothing, or `All`.
    pub allocation_mode: Option<String>,
    /// How many; one where it says nothing.
    pub count: Option<i64>,
    /// Whether devices are looked at that others hold.
    pub admin_access: Option<bool>,
    /// Shares of devices, where it is not whole ones.
    pub capacity: Option<Value>,
}
