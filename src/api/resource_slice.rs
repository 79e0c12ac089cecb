//! The few fields of a `ResourceSlice` that say which devices there are.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeSelector;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// A part of a pool of devices.
#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize)]
#[kube(
    group = "resource.k8s.io",
    version = "v1",
    kind = "ResourceSlice",
    plural = "resourceslices",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSliceSpec {
    /// The driver that published it.
    #[serde(default)]
    pub driver: String,
    /// The pool.
    #[serde(default)]
    pub pool: SlicePool,
    /// Where all of its devices are.
    #[serde(flatten)]
    pub place: SlicePlace,
    /// The devices.
    #[serde(default)]
    pub devices: Vec<SliceDevice>,
}

/// The nodes that reach devices.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlicePlace {
    /// One node.
    #[serde(default)]
    pub node_name: Option<String>,
    /// Those that it selects.
    #[serde(default)]
    pub node_selector: Option<NodeSelector>,
    /// Every node, where it is true.
    #[serde(default)]
    pub all_nodes: Option<bool>,
}

/// The pool of a slice.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlicePool {
    /// Its name, unique within a driver.
    #[serde(default)]
    pub name: String,
    /// Grows with every change of the pool. Slices of older ones no longer count.
    #[serde(default)]
    pub generation: i64,
    /// Slices that the pool has at this generation.
    #[serde(default)]
    pub resource_slice_count: i64,
}

/// One device.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SliceDevice {
    /// Its name, unique within the pool.
    #[serde(default)]
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub fields: DeviceFields,
    /// The same in `v1beta1`.
    #[serde(default)]
    pub basic: Option<DeviceFields>,
}

/// What a device is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceFields {
    /// What the driver says about it.
    #[serde(default)]
    pub attributes: BTreeMap<String, DeviceAttribute>,
    /// Where it is, if that differs from device to device.
    #[serde(flatten)]
    pub place: SlicePlace,
    /// Counters that it shares with other devices, as parts of a GPU do with the whole.
    #[serde(default)]
    pub consumes_counters: Vec<CounterConsumption>,
    /// What keeps claims off.
    #[serde(default)]
    pub taints: Vec<DeviceTaint>,
}

/// A value of several types, of which texts are read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DeviceAttribute {
    /// A text.
    #[serde(default)]
    pub string: Option<String>,
}

/// Counters that a device takes from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CounterConsumption {
    /// The name of the set, unique within the pool.
    #[serde(default)]
    pub counter_set: String,
}

/// A taint of a device.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DeviceTaint {
    /// `NoSchedule` or `NoExecute`; others have no effect.
    #[serde(default)]
    pub effect: String,
}
