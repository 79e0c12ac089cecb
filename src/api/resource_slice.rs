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
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSliceSpec {
    /// The driver that published it.
    pub driver: String,
    /// The pool.
    pub pool: SlicePool,
    /// Where all of its devices are.
    #[serde(flatten)]
    pub place: SlicePlace,
    /// The devices.
    pub devices: Vec<SliceDevice>,
}

/// The nodes that reach devices.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SlicePlace {
    /// One node.
    pub node_name: Option<String>,
    /// Those that it selects.
    pub node_selector: Option<NodeSelector>,
    /// Every node, where it is true.
    pub all_nodes: Option<bool>,
}

/// The pool of a slice.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SlicePool {
    /// Its name, unique within a driver.
    pub name: String,
    /// Grows with every change of the pool. Slices of older ones no longer count.
    pub generation: i64,
    /// Slices that the pool has at this generation.
    pub resource_slice_count: i64,
}

/// One device.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SliceDevice {
    /// Its name, unique within the pool.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub fields: DeviceFields,
    /// The same in `v1beta1`.
    pub basic: Option<DeviceFields>,
}

/// What a device is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceFields {
    /// What the driver says about it.
    pub attributes: BTreeMap<String, DeviceAttribute>,
    /// Where it is, if that differs from device to device.
    #[serde(flatten)]
    pub place: SlicePlace,
    /// Counters that it shares with other devices, as parts of a GPU do with the whole.
    pub consumes_counters: Vec<CounterConsumption>,
    /// What keeps claims off.
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
#[serde(default, rename_all = "camelCase")]
pub struct CounterConsumption {
    /// The name of the set, unique within the pool.
    pub counter_set: String,
}

/// A taint of a device.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DeviceTaint {
    /// `NoSchedule` or `NoExecute`; others have no effect.
    #[serde(default)]
    pub effect: String,
}
