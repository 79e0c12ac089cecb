//! GPUs that all pods hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::inventory::{NodeView, VENDORS, Vendor};
use crate::units::Gpus;

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

/// GPUs in use by node and prefix of their vendor, of all pods that are bound and not finished.
pub(crate) fn usage_by_node(
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
