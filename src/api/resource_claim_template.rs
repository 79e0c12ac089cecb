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
#[serde(rename_all = "camelCase")]
pub struct ResourceClaimTemplateSpec {
    /// The specification of a claim.
    #[serde(default)]
    pub spec: ClaimSpec,
}

/// One claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSpec {
    /// The devices.
    #[serde(default)]
    pub devices: ClaimedDevices,
}

/// The devices of one claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedDevices {
    /// Each is met.
    #[serde(default)]
    pub requests: Vec<ClaimRequest>,
}

/// One request of a claim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRequest {
    /// What is wanted.
    #[serde(default)]
    pub exactly: Option<DeviceRequest>,
    /// The first of these that is to be had.
    #[serde(default)]
    pub first_available: Vec<DeviceRequest>,
    /// What is wanted, in `v1beta1`; of no class otherwise.
    #[serde(flatten)]
    pub direct: DeviceRequest,
}

/// Devices of one class.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceRequest {
    /// The class.
    #[serde(default)]
    pub device_class_name: String,
    /// `ExactCount`, where it says nothing, or `All`.
    #[serde(default)]
    pub allocation_mode: Option<String>,
    /// How many; one where it says nothing.
    #[serde(default)]
    pub count: Option<i64>,
    /// Whether devices are looked at that others hold.
    #[serde(default)]
    pub admin_access: Option<bool>,
    /// Shares of devices, where it is not whole ones.
    #[serde(default)]
    pub capacity: Option<Value>,
}
