//! GPUs that nodes offer, and that pods hold of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::accelerator_name::short_name;
use super::pools::Physical;
use crate::accelerator::{AMD_PRODUCT_NAME, GKE_ACCELERATOR};
use crate::params::LabelSelector;
use crate::units::Gpus;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Vendor {
    /// Prefix of the label that names the product of a node's GPUs.
    pub prefix: &'static str,
    /// Another label that names the product, where the first one is absent.
    pub otherwise: Option<&'static str>,
    /// Resources that count them: a node offers one kind.
    pub resources: &'static [&'static str],
    /// The same of drivers for dynamic resource allocation: resources of their device classes.
    pub devices: &'static [&'static str],
}

const VENDORS: [Vendor; 3] = [
    Vendor {
        prefix: "nvidia.com",
        otherwise: Some(GKE_ACCELERATOR),
        resources: &["nvidia.com/gpu"],
        devices: &["deviceclass.resource.kubernetes.io/gpu.nvidia.com"],
    },
    Vendor {
        prefix: "amd.com",
        otherwise: Some(AMD_PRODUCT_NAME),
        resources: &["amd.com/gpu"],
        devices: &["deviceclass.resource.kubernetes.io/gpu.amd.com"],
    },
    Vendor {
        prefix: "intel.com",
        otherwise: None,
        resources: &["intel.com/gpu", "habana.ai/gaudi", "gpu.intel.com/i915", "gpu.intel.com/xe"],
        devices: &[
            "deviceclass.resource.kubernetes.io/gpu.intel.com",
            "deviceclass.resource.kubernetes.io/gaudi.intel.com",
        ],
    },
];

impl Vendor {
    fn product(self, node: &NodeView) -> Option<&Arc<str>> {
        let stated = |label: &str| node.labels.get(label).filter(|product| !product.is_empty());
        stated(format!("{}/gpu.product", self.prefix).as_str())
            .or_else(|| self.otherwise.and_then(stated))
    }

    /// The short type name of a node's GPUs, if they are this vendor's. GKE writes in small letters
    /// what the vendors write in capitals: one type must have one name.
    fn kind(self, node: &NodeView) -> Option<Arc<str>> {
        let product = self.product(node)?;
        let kind = short_name(product);
        let is_gke = node.labels.get(GKE_ACCELERATOR) == Some(product);
        Some(if is_gke { kind.to_ascii_uppercase().into() } else { kind.into() })
    }

    /// Whether it is known how many GPUs a node offers. Of a new one it is not before its device plugin or driver runs.
    fn is_listed(self, node: &NodeView) -> bool {
        let mut resources = self.resources.iter().chain(self.devices);
        resources.any(|resource| node.allocatable.contains_key(*resource))
    }

    /// Whether a part of what a node offers is not known.
    fn is_uncounted(self, node: &NodeView) -> bool {
        let mut devices = self.devices.iter();
        devices.any(|resource| node.uncounted.contains(*resource))
    }

    /// GPUs that a node offers. A device plugin and a driver on one node offer the same ones.
    fn offered(self, node: &NodeView) -> Gpus {
        let sum = |resources| sum(resources, |resource| node.offers(resource));
        sum(self.resources).max(sum(self.devices))
    }

    /// GPUs of a node that pods hold: those that they request, and devices of their claims. Where no device plugin
    /// runs, requests are met by devices, for which Kubernetes makes claims.
    fn held(self, node: Option<&NodeView>, held: impl Fn(&str) -> Gpus) -> Gpus {
        let [requested, devices] =
            [self.resources, self.devices].map(|resources| sum(resources, &held));
        let of_plugin = |node| sum(self.resources, |resource| NodeView::offers(node, resource));
        let has_plugin = node.is_some_and(|node| of_plugin(node) > Gpus::ZERO);
        if has_plugin { requested.plus(devices) } else { requested.max(devices) }
    }
}

fn sum(resources: &[&str], count: impl Fn(&str) -> Gpus) -> Gpus {
    resources.iter().map(|resource| count(resource)).sum()
}

/// Whether a resource is whole GPUs of a device class, as the drivers of their vendors install it.
pub fn is_gpu_device(resource: &str) -> bool {
    let mut devices = VENDORS.iter().flat_map(|vendor| vendor.devices);
    devices.any(|one| *one == resource)
}

/// One node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NodeDocument")]
pub struct NodeView {
    /// Its labels; `nvidia.com/gpu.product` and its like name the type of its GPUs.
    #[serde(default)]
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Its allocatable resources that are whole numbers, as `nvidia.com/gpu: 8`, and its devices by the resource of
    /// their class, as `deviceclass.resource.kubernetes.io/gpu.nvidia.com: 8`.
    #[serde(default)]
    pub allocatable: BTreeMap<Arc<str>, u32>,
    /// Resources of device classes of which it offers an unknown number. Left out: none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uncounted: BTreeSet<Arc<str>>,
    /// Whether pods may be placed on it. Left out: true.
    #[serde(rename = "schedulable", default)]
    #[schemars(with = "bool")]
    pub scheduling: Scheduling,
}

/// Whether pods may be placed on a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Scheduling {
    /// Ready and not cordoned.
    #[default]
    Open,
    /// Cordoned or not ready: what it holds keeps running, and nothing is added.
    Closed,
}

impl From<bool> for Scheduling {
    fn from(is_open: bool) -> Self {
        if is_open { Self::Open } else { Self::Closed }
    }
}

impl From<Scheduling> for bool {
    fn from(scheduling: Scheduling) -> Self {
        scheduling == Scheduling::Open
    }
}

impl NodeView {
    /// Whether it offers GPUs, or could: a product label outlives a device plugin that is down.
    pub fn has_gpus(&self) -> bool {
        let is_ours = |vendor: &Vendor| vendor.product(self).is_some();
        let is_listed = !self.allocatable.is_empty() || !self.uncounted.is_empty();
        is_listed || VENDORS.iter().any(is_ours)
    }

    /// Adds devices by the resource of their class; `None` is an unknown number. Where no label names the product of
    /// its GPUs, theirs does, as a label would.
    pub fn offer(&mut self, resource: &Arc<str>, count: Option<u32>, product: Option<&str>) {
        match count {
            Some(count) => {
                let sum = self.allocatable.entry(Arc::clone(resource)).or_default();
                *sum = sum.saturating_add(count);
            }
            None => {
                self.uncounted.insert(Arc::clone(resource));
            }
        }
        let mut vendors = VENDORS.iter();
        let vendor = vendors.find(|vendor| vendor.devices.contains(&&**resource));
        if let (Some(vendor), Some(product)) = (vendor, product)
            && vendor.product(self).is_none()
        {
            let label = format!("{}/gpu.product", vendor.prefix);
            self.labels.insert(label.into(), product.replace(' ', "-").into());
        }
    }

    fn offers(&self, resource: &str) -> Gpus {
        Gpus(self.allocatable.get(resource).copied().unwrap_or_default())
    }
}

/// What is read of a pod that requests GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuPod {
    /// Its namespace and name, where known.
    pub named: Option<(Arc<str>, Arc<str>)>,
    /// The node it is bound to.
    pub node: Option<Arc<str>>,
    /// Whether it still holds what it asked for.
    pub phase: PodPhase,
    /// Requests of each container, by resource.
    pub containers: Vec<BTreeMap<Arc<str>, u32>>,
    /// Requests of each init container, by resource.
    pub init_containers: Vec<BTreeMap<Arc<str>, u32>>,
}

/// Whether a pod still holds its resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PodPhase {
    /// Pending, running or unknown.
    Active,
    /// Deleted and not gone: it holds what it asked for until it is.
    Leaving,
    /// Succeeded or failed.
    Finished,
}

/// GPUs of one resource that a pod holds: containers run together, init containers one by one.
pub fn pod_gpus(pod: &GpuPod, resource: &str) -> Gpus {
    let of = |container: &BTreeMap<Arc<str>, u32>| {
        Gpus(container.get(resource).copied().unwrap_or_default())
    };
    let together: Gpus = pod.containers.iter().map(of).sum();
    let largest = pod.init_containers.iter().map(of).max();
    together.max(largest.unwrap_or_default())
}

/// Limits and use by short type name over the selected nodes that pods may be placed on. What runs on a
/// closed node counts on neither side: it holds no GPU that anybody could have.
///
/// `None` for either view means that it could not be read, and leaves the budget unknown; an empty
/// view says that there is nothing. A type is unknown, too, where none of its nodes says how many GPUs it offers, or
/// one of them offers an unknown number of devices.
pub(crate) fn physical(
    nodes: Option<&BTreeMap<Arc<str>, NodeView>>,
    pods: Option<&[GpuPod]>,
    selector: &LabelSelector,
) -> Physical {
    let (Some(nodes), Some(pods)) = (nodes, pods) else {
        return Physical::Unknown;
    };
    let used_by_node = usage_by_node(nodes, pods);
    let mut limits: BTreeMap<Arc<str>, Gpus> = BTreeMap::new();
    let mut used: BTreeMap<Arc<str>, Gpus> = BTreeMap::new();
    let mut listed: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut uncounted: BTreeSet<Arc<str>> = BTreeSet::new();
    for (name, node) in nodes {
        let is_selected = selector.matches(|label| node.labels.get(label).map(|value| &**value));
        if node.scheduling == Scheduling::Closed || !is_selected {
            continue;
        }
        for vendor in VENDORS {
            let Some(kind) = vendor.kind(node) else {
                continue;
            };
            let offered = vendor.offered(node);
            let taken = used_by_node
                .get(name)
                .and_then(|by_vendor| by_vendor.get(vendor.prefix))
                .copied()
                .unwrap_or_default();
            add(&mut limits, &kind, offered);
            add(&mut used, &kind, taken.min(offered));
            if vendor.is_uncounted(node) {
                uncounted.insert(kind);
            } else if vendor.is_listed(node) {
                listed.insert(kind);
            }
        }
    }
    let unlisted = limits.keys().filter(|kind| !listed.contains(*kind));
    uncounted.extend(unlisted.cloned());
    Physical::Known { unlisted: uncounted, limits, used }
}

/// GPUs in use by node and prefix of their vendor, of all pods that are bound and not finished.
fn usage_by_node(
    nodes: &BTreeMap<Arc<str>, NodeView>,
    pods: &[GpuPod],
) -> BTreeMap<Arc<str>, BTreeMap<&'static str, Gpus>> {
    let mut bound: BTreeMap<&Arc<str>, Vec<&GpuPod>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.phase != PodPhase::Finished) {
        if let Some(node) = &pod.node {
            bound.entry(node).or_default().push(pod);
        }
    }
    let by_vendor = |node: &Arc<str>, pods: &[&GpuPod]| {
        let held = |resource: &str| pods.iter().map(|pod| pod_gpus(pod, resource)).sum::<Gpus>();
        let of = |vendor: Vendor| (vendor.prefix, vendor.held(nodes.get(node), held));
        let held = VENDORS.into_iter().map(of);
        held.filter(|(_, gpus)| *gpus > Gpus::ZERO).collect()
    };
    let bound = bound.into_iter();
    bound.map(|(node, pods)| (Arc::clone(node), by_vendor(node, &pods))).collect()
}

/// GPUs by short type name that will be free without anybody's doing: those of pods that are deleted
/// and not gone, over the same nodes. They are in use until then.
pub(crate) fn leaving(
    nodes: &BTreeMap<Arc<str>, NodeView>,
    pods: &[GpuPod],
    selector: &LabelSelector,
) -> BTreeMap<Arc<str>, Gpus> {
    let is_leaving = |pod: &&GpuPod| pod.phase == PodPhase::Leaving;
    let pods: Vec<GpuPod> = pods.iter().filter(is_leaving).cloned().collect();
    match physical(Some(nodes), Some(&pods), selector) {
        Physical::Known { used, .. } => used,
        Physical::Unknown | Physical::Unlimited => BTreeMap::new(),
    }
}

fn add(sums: &mut BTreeMap<Arc<str>, Gpus>, kind: &Arc<str>, gpus: Gpus) {
    let sum = sums.entry(Arc::clone(kind)).or_default();
    *sum = sum.plus(gpus);
}

#[cfg(test)]
mod tests;
