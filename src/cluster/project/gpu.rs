//! GPUs that nodes offer and pods hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ResourceRequirements, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::resource_claim_template::device_class;
use super::{Interner, Projected, name, namespace_of};
use crate::api::gpu::{HoldingContainer, HoldingPod, OfferingNode};
use crate::policy::gpu::{GpuPod, NodeView, PodPhase, Scheduling};
use crate::policy::pod_template::is_gpu;

/// Taints by which Kubernetes and cluster autoscalers say that a node takes nothing more. Others, like
/// those that keep pods without GPUs off, are tolerated by the pods that count here.
const CLOSING_TAINTS: [&str; 4] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
];

/// Whether a pod holds GPUs of a node.
pub fn holds_gpus(pod: &GpuPod) -> bool {
    let asks = !pod.containers.is_empty() || !pod.init_containers.is_empty();
    asks && pod.node.is_some() && pod.phase != PodPhase::Finished
}

impl Projected for OfferingNode {
    /// All labels are kept, since settings may select by any.
    type View = NodeView;

    fn project(self, texts: &mut Interner) -> NodeView {
        let is_ready = self
            .status
            .conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let takes_pods = is_ready
            && !self.spec.unschedulable
            && self.metadata.deletion_timestamp.is_none()
            && !self.spec.taints.iter().any(closes);
        let labels = self.metadata.labels.iter().flatten();
        NodeView {
            labels: labels.map(|(key, value)| (texts.intern(key), texts.intern(value))).collect(),
            allocatable: wholes(&self.status.allocatable, is_gpu, texts),
            uncounted: BTreeSet::new(),
            scheduling: if takes_pods { Scheduling::Open } else { Scheduling::Closed },
        }
    }
}

fn closes(taint: &Taint) -> bool {
    let binds = matches!(&*taint.effect, "NoSchedule" | "NoExecute");
    binds && CLOSING_TAINTS.iter().any(|key| taint.key.starts_with(key))
}

impl Projected for HoldingPod {
    type View = GpuPod;

    fn project(self, texts: &mut Interner) -> GpuPod {
        let (staying, passing): (Vec<_>, Vec<_>) = self
            .spec
            .init_containers
            .into_iter()
            .partition(|container| container.restart_policy.as_deref() == Some("Always"));
        let mut held = |containers: &mut dyn Iterator<Item = &HoldingContainer>| {
            let held = containers.map(|container| requests(&container.resources, texts));
            held.filter(|gpus| !gpus.is_empty()).collect()
        };
        let containers = held(&mut self.spec.containers.iter().chain(&staying));
        let init_containers = held(&mut passing.iter());
        let namespace = namespace_of(&self.metadata, texts);
        GpuPod {
            named: Some((namespace, name(&self.metadata))),
            node: self.spec.node_name.map(|node| texts.intern(&node)),
            phase: match self.status.phase.as_deref() {
                Some("Succeeded" | "Failed") => PodPhase::Finished,
                _ if self.metadata.deletion_timestamp.is_some() => PodPhase::Leaving,
                _ => PodPhase::Active,
            },
            containers,
            init_containers,
        }
    }
}

/// GPUs by resource: what is requested, or else the limit, which Kubernetes makes the request.
pub(super) fn requests(
    resources: &ResourceRequirements,
    texts: &mut Interner,
) -> BTreeMap<Arc<str>, u32> {
    stated(resources, is_gpu, texts)
}

/// The same of devices by the resource of their class.
pub(super) fn devices(
    resources: &ResourceRequirements,
    texts: &mut Interner,
) -> BTreeMap<Arc<str>, u32> {
    stated(resources, |resource| device_class(resource).is_some(), texts)
}

fn stated(
    resources: &ResourceRequirements,
    counts: fn(&str) -> bool,
    texts: &mut Interner,
) -> BTreeMap<Arc<str>, u32> {
    let stated = [&resources.limits, &resources.requests];
    let mut requests = BTreeMap::new();
    for quantities in stated.into_iter().flatten() {
        requests.extend(wholes(quantities, counts, texts));
    }
    requests
}

fn wholes(
    quantities: &BTreeMap<String, Quantity>,
    counts: fn(&str) -> bool,
    texts: &mut Interner,
) -> BTreeMap<Arc<str>, u32> {
    quantities
        .iter()
        .filter(|(resource, _)| counts(resource))
        .map(|(resource, count)| (texts.intern(resource), whole(&count.0)))
        .collect()
}

/// A count like `8` or `1k`; 0 for what is none.
fn whole(text: &str) -> u32 {
    match text.strip_suffix('k') {
        Some(thousands) => {
            thousands.parse().map_or(0, |thousands: u32| thousands.saturating_mul(1_000))
        }
        None => text.parse().unwrap_or(0),
    }
}
