//! Devices that drivers for dynamic resource allocation offer, and those that claims hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};

use super::resource_claim_template::class_resource;
use super::{Interner, Projected, controller, namespace_of};
use crate::api::resource_claim::ResourceClaim;
use crate::api::resource_slice::{
    DeviceFields, DeviceTaint, ResourceSlice, SliceDevice, SlicePlace,
};
use crate::policy::gpu::is_gpu_device;
use crate::policy::params::{LabelRequirement, LabelSelector, Requirement};

/// Values of the attribute `type` of a whole GPU, and of a part of one or another way to use it.
const WHOLE: [&str; 3] = ["gpu", "amdgpu", "gaudi"];
const PARTS: [&str; 4] = ["mig", "vfio", "amdgpu-partition", "vf"];
/// The field of a node that a selector may require, in addition to labels.
const NODE_NAME: &str = "metadata.name";
/// Attributes that name the product, best first.
const PRODUCTS: [&str; 2] = ["productName", "model"];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolKey {
    /// The resource of the device class of its driver.
    pub resource: Arc<str>,
    pub pool: Arc<str>,
}

impl PoolKey {
    pub fn device(&self, device: &Device) -> DeviceKey {
        DeviceKey { pool: self.clone(), device: Arc::clone(&device.name) }
    }
}

/// What is kept of a `ResourceSlice`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceObject {
    pub pool: PoolKey,
    pub generation: i64,
    /// Slices of the pool at this generation.
    pub slices: i64,
    /// Where all of its devices are; `None` where each says that itself.
    pub place: Option<DevicePlace>,
    pub devices: Vec<Device>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub name: Arc<str>,
    pub sort: DeviceSort,
    /// Where it is, if that is not where all of its slice are.
    pub place: Option<DevicePlace>,
    pub product: Option<Arc<str>>,
    /// Counters that it shares with other devices of the pool.
    pub counters: Vec<Arc<str>>,
}

/// The nodes that reach a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DevicePlace {
    Node(Arc<str>),
    /// Those that one of these selects, of which each may require a name.
    Selected(Vec<LabelSelector>),
    /// All, or it is not known which.
    Any,
}

impl DevicePlace {
    /// The place that is stated, if any is.
    fn of(stated: &SlicePlace, texts: &mut Interner) -> Option<Self> {
        let node = (stated.node_name.as_ref()).map(|node| Self::Node(texts.intern(node)));
        let selector = (stated.node_selector.as_ref()).map(|selector| {
            let terms = selector.node_selector_terms.iter().map(term);
            terms.collect::<Option<_>>().map_or(Self::Any, Self::Selected)
        });
        let all = (stated.all_nodes == Some(true)).then_some(Self::Any);
        node.or(selector).or(all)
    }

    /// Whether a node with these labels reaches it.
    pub fn reaches(&self, name: &str, labels: &BTreeMap<Arc<str>, Arc<str>>) -> bool {
        let value = |label: &str| match label {
            NODE_NAME => Some(name),
            _ => labels.get(label).map(|value| &**value),
        };
        match self {
            Self::Node(node) => **node == *name,
            Self::Selected(terms) => terms.iter().any(|term| term.matches(value)),
            Self::Any => true,
        }
    }
}

/// All of a term must hold; one that is empty selects nothing. `None` of an operator that compares numbers.
fn term(term: &NodeSelectorTerm) -> Option<LabelSelector> {
    let stated = [&term.match_expressions, &term.match_fields];
    let mut requirements: Vec<Requirement> =
        stated.into_iter().flatten().flatten().map(requirement).collect::<Option<_>>()?;
    if requirements.is_empty() {
        requirements
            .push(Requirement { label: NODE_NAME.to_owned(), holds: LabelRequirement::Absent });
    }
    Some(LabelSelector { requirements })
}

fn requirement(stated: &NodeSelectorRequirement) -> Option<Requirement> {
    let values = || stated.values.iter().flatten().cloned().collect();
    let holds = match stated.operator.as_str() {
        "In" => LabelRequirement::OneOf(values()),
        "NotIn" => LabelRequirement::NoneOf(values()),
        "Exists" => LabelRequirement::Exists,
        "DoesNotExist" => LabelRequirement::Absent,
        _ => return None,
    };
    Some(Requirement { label: stated.key.clone(), holds })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceSort {
    /// A whole GPU that can be had.
    Gpu,
    /// A part of one, or one that claims are kept off.
    Other,
    Unknown,
}

impl SliceObject {
    pub fn has_gpus(&self) -> bool {
        is_gpu_device(&self.pool.resource)
    }
}

impl Projected for ResourceSlice {
    type View = SliceObject;

    fn project(self, texts: &mut Interner) -> SliceObject {
        let spec = self.spec;
        let devices = spec.devices.iter();
        let devices = devices.map(|one| device(one, texts));
        SliceObject {
            devices: devices.collect(),
            pool: PoolKey {
                resource: texts.intern(&class_resource(&spec.driver)),
                pool: texts.intern(&spec.pool.name),
            },
            generation: spec.pool.generation,
            slices: spec.pool.resource_slice_count,
            place: DevicePlace::of(&spec.place, texts),
        }
    }
}

fn device(one: &SliceDevice, texts: &mut Interner) -> Device {
    let fields = one.basic.as_ref().unwrap_or(&one.fields);
    let product = PRODUCTS.iter().find_map(|name| attribute(fields, name));
    let counters = fields.consumes_counters.iter();
    Device {
        name: texts.intern(&one.name),
        sort: sort(fields),
        place: DevicePlace::of(&fields.place, texts),
        product: product.map(|product| texts.intern(product)),
        counters: counters.map(|counters| texts.intern(&counters.counter_set)).collect(),
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

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceKey {
    pub pool: PoolKey,
    pub device: Arc<str>,
}

/// What is kept of a `ResourceClaim`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimObject {
    pub namespace: Arc<str>,
    /// GPUs that are allocated to it, and parts of them.
    pub devices: BTreeSet<DeviceKey>,
    /// Names of the pods that use them, or of the one that they are for.
    pub pods: Vec<Arc<str>>,
}

impl ClaimObject {
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
        let devices = held.filter(|key| is_gpu_device(&key.pool.resource)).collect();
        let users = status.reserved_for.iter();
        let users = users.filter(|consumer| consumer.resource == "pods");
        let mut pods: Vec<Arc<str>> = users.map(|pod| texts.intern(&pod.name)).collect();
        if pods.is_empty() {
            // It was made for this one, which is to have it, or had it.
            let owner = controller(&self.metadata, texts);
            let owner = owner.filter(|owner| owner.group.is_empty() && &*owner.kind == "Pod");
            pods.extend(owner.map(|owner| owner.name));
        }
        ClaimObject { devices, pods, namespace: namespace_of(&self.metadata, texts) }
    }
}
