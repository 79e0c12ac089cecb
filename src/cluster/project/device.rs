//! Devices that drivers for dynamic resource allocation offer, and those that claims hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::resource_claim_template::class_resource;
use super::{Interner, Projected, name, namespace_of, shared_key};
use crate::api::resource_claim::ResourceClaim;
use crate::api::resource_slice::{DeviceFields, DeviceTaint, ResourceSlice, SliceDevice};
use crate::cluster::mirror::ObjectKey;
use crate::policy::limit::is_gpu_device;

/// Values of the attribute `type` of a whole GPU, and of a part of one or another way to use it.
const WHOLE: [&str; 3] = ["gpu", "amdgpu", "gaudi"];
const PARTS: [&str; 4] = ["mig", "vfio", "amdgpu-partition", "vf"];
/// Attributes that name the product, best first.
const PRODUCTS: [&str; 2] = ["productName", "model"];

/// A pool of devices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolKey {
    /// The resource of the device class of its driver.
    pub resource: Arc<str>,
    /// Its name.
    pub pool: Arc<str>,
}

impl PoolKey {
    /// One device of the pool.
    pub fn device(&self, device: &Device) -> DeviceKey {
        DeviceKey {
            pool: self.clone(),
            device: Arc::clone(&device.name),
        }
    }
}

/// What is kept of a `ResourceSlice`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceObject {
    /// Its name.
    pub name: Arc<str>,
    /// The pool that it is a part of.
    pub pool: PoolKey,
    /// The generation of the pool.
    pub generation: i64,
    /// Slices of the pool at this generation.
    pub slices: i64,
    /// The node that all of its devices belong to.
    pub node: Option<Arc<str>>,
    /// Its devices.
    pub devices: Vec<Device>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub sort: DeviceSort,
    /// The node that it belongs to.
    pub node: Option<Arc<str>>,
    /// What it is called.
    pub product: Option<Arc<str>>,
    /// Counters that it shares with other devices of the pool.
    pub counters: Vec<Arc<str>>,
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceSort {
    /// A whole GPU that can be had.
    Gpu,
    /// A part of one, or one that claims are kept off.
    Other,
    /// It is not known what it is.
    Unknown,
}

impl SliceObject {
    /// Whether its devices are GPUs.
    pub fn has_gpus(&self) -> bool {
        is_gpu_device(&self.pool.resource)
    }

    /// The nodes that its devices belong to.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<str>> {
        let devices = self.devices.iter();
        let of_devices = devices.filter_map(|device| device.node.as_ref());
        self.node.iter().chain(of_devices)
    }
}

impl Projected for ResourceSlice {
    type View = SliceObject;

    fn project(self, texts: &mut Interner) -> SliceObject {
        let spec = self.spec;
        let node = spec.node_name.map(|node| texts.intern(&node));
        let devices = spec.devices.iter();
        let devices = devices.map(|one| device(one, node.as_ref(), texts));
        SliceObject {
            name: name(&self.metadata),
            devices: devices.collect(),
            pool: PoolKey {
                resource: texts.intern(&class_resource(&spec.driver)),
                pool: texts.intern(&spec.pool.name),
            },
            generation: spec.pool.generation,
            slices: spec.pool.resource_slice_count,
            node,
        }
    }

    fn key(view: &SliceObject) -> ObjectKey {
        ObjectKey::new("", Arc::clone(&view.name))
    }
}

fn device(one: &SliceDevice, node: Option<&Arc<str>>, texts: &mut Interner) -> Device {
    let fields = one.basic.as_ref().unwrap_or(&one.fields);
    let of_device = fields.node_name.as_ref().map(|node| texts.intern(node));
    let product = PRODUCTS.iter().find_map(|name| attribute(fields, name));
    let counters = fields.consumes_counters.iter();
    Device {
        name: texts.intern(&one.name),
        sort: sort(fields),
        node: of_device.or_else(|| node.cloned()),
        product: product.map(|product| texts.intern(product)),
        counters: counters
            .map(|counters| texts.intern(&counters.counter_set))
            .collect(),
    }
}

fn sort(device: &DeviceFields) -> DeviceSort {
    let stated = attribute(device, "type");
    let is_one_of = |sorts: &[&str]| stated.is_some_and(|stated| sorts.contains(&stated));
    if is_one_of(&PARTS) || device.taints.iter().any(closes) {
        DeviceSort::Other
    } else if stated.is_none() || is_one_of(&WHOLE) {
        DeviceSort::Gpu
    } else {
        DeviceSort::Unknown
    }
}

fn closes(taint: &DeviceTaint) -> bool {
    matches!(&*taint.effect, "NoSchedule" | "NoExecute")
}

/// An attribute of the driver's own domain, which names may carry.
fn attribute<'a>(device: &'a DeviceFields, name: &str) -> Option<&'a str> {
    let mut attributes = device.attributes.iter();
    let (_, value) = attributes.find(|(key, _)| key.rsplit('/').next() == Some(name))?;
    value.string.as_deref().filter(|text| !text.is_empty())
}

/// One device of all pools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceKey {
    /// Its pool.
    pub pool: PoolKey,
    /// Its name.
    pub device: Arc<str>,
}

/// What is kept of a `ResourceClaim`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimObject {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// GPUs that are allocated to it, and parts of them.
    pub devices: BTreeSet<DeviceKey>,
    /// Names of the pods that use them.
    pub pods: Vec<Arc<str>>,
}

impl ClaimObject {
    /// Whether it holds GPUs.
    pub fn holds_gpus(&self) -> bool {
        !self.devices.is_empty()
    }
}

impl Projected for ResourceClaim {
    type View = ClaimObject;

    fn project(self, texts: &mut Interner) -> ClaimObject {
        let status = self.status.unwrap_or_default();
        let results = status.allocation.unwrap_or_default().devices.results;
        let held = results.iter().filter(|one| one.admin_access != Some(true));
        let held = held.map(|one| DeviceKey {
            pool: PoolKey {
                resource: texts.intern(&class_resource(&one.driver)),
                pool: texts.intern(&one.pool),
            },
            device: texts.intern(&one.device),
        });
        let devices = held
            .filter(|key| is_gpu_device(&key.pool.resource))
            .collect();
        let pods = status.reserved_for.iter();
        let pods = pods.filter(|consumer| consumer.resource == "pods");
        ClaimObject {
            devices,
            pods: pods.map(|pod| texts.intern(&pod.name)).collect(),
            namespace: namespace_of(&self.metadata, texts),
            name: name(&self.metadata),
        }
    }

    fn key(view: &ClaimObject) -> ObjectKey {
        shared_key(&view.namespace, &view.name)
    }
}
