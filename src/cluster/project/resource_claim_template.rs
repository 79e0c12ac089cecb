//! `ResourceClaimTemplate`: how many GPUs the claim of a pod holds that is made from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Interner, Projected};
use crate::api::resource_claim_template::{ClaimRequest, DeviceRequest, ResourceClaimTemplate};
use crate::policy::gpu::is_gpu_device;
use crate::policy::units::Gpus;

/// Classes of what is no GPU: channels between the GPUs of several nodes, and network interfaces, as DRANET and GKE
/// install them.
const OTHER_CLASSES: [&str; 5] = [
    "compute-domain-daemon.nvidia.com",
    "compute-domain-default-channel.nvidia.com",
    "dranet",
    "mrdma.google.com",
    "netdev.google.com",
];
/// Kubernetes names devices of a class so where a container requests them as a resource.
const CLASS_RESOURCE: &str = "deviceclass.resource.kubernetes.io";

/// The resource by which a container requests devices of a class.
pub(super) fn class_resource(class: &str) -> String {
    format!("{CLASS_RESOURCE}/{class}")
}

/// The class whose devices a container requests by this resource.
pub(crate) fn device_class(resource: &str) -> Option<&str> {
    resource.strip_prefix(CLASS_RESOURCE)?.strip_prefix('/')
}

/// GPUs of one device of a class by resource; `None` where they cannot be counted.
pub(crate) fn device_gpus(class: &str) -> Option<BTreeMap<Arc<str>, Gpus>> {
    let resource = Arc::from(class_resource(class));
    let mut gpus = BTreeMap::from([(resource, gpus_of(class)?)]);
    gpus.retain(|_, gpus| *gpus > Gpus::ZERO);
    Some(gpus)
}

/// GPUs of one whole device.
fn gpus_of(class: &str) -> Option<Gpus> {
    if OTHER_CLASSES.contains(&class) {
        return Some(Gpus::ZERO);
    }
    is_gpu_device(&class_resource(class)).then_some(Gpus(1))
}

/// What is kept of a `ResourceClaimTemplate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimTemplateObject {
    /// GPUs of one claim by resource; `None` where they cannot be counted.
    pub gpus: Option<BTreeMap<Arc<str>, Gpus>>,
}

impl Projected for ResourceClaimTemplate {
    type View = ClaimTemplateObject;

    fn project(self, texts: &mut Interner) -> ClaimTemplateObject {
        ClaimTemplateObject { gpus: claimed(&self.spec.spec.devices.requests, texts) }
    }
}

/// GPUs of all requests together; `None` where any of them cannot be counted.
fn claimed(requests: &[ClaimRequest], texts: &mut Interner) -> Option<BTreeMap<Arc<str>, Gpus>> {
    let mut sums = BTreeMap::new();
    for request in requests {
        let (class, gpus) = most(request)?;
        let resource = texts.intern(&class_resource(class));
        let sum: &mut Gpus = sums.entry(resource).or_default();
        *sum = sum.plus(gpus);
    }
    sums.retain(|_, gpus| *gpus > Gpus::ZERO);
    Some(sums)
}

/// The class and the GPUs of a request, of alternatives those of the largest. None of a form that is not known.
fn most(request: &ClaimRequest) -> Option<(&str, Gpus)> {
    let direct = Some(&request.direct).filter(|direct| !direct.device_class_name.is_empty());
    let alternatives = request.exactly.iter().chain(&request.first_available);
    let alternatives = alternatives.chain(direct);
    let counts: Option<Vec<(&str, Gpus)>> = alternatives.map(count).collect();
    counts?.into_iter().max_by_key(|(_, gpus)| *gpus)
}

fn count(request: &DeviceRequest) -> Option<(&str, Gpus)> {
    let DeviceRequest {
        device_class_name: class,
        allocation_mode: mode,
        count,
        admin_access,
        capacity,
    } = request;
    let class = class.as_str();
    // Who looks at devices as an administrator holds none of them.
    if *admin_access == Some(true) || gpus_of(class)? == Gpus::ZERO {
        return Some((class, Gpus::ZERO));
    }
    let is_exact = matches!(mode.as_deref(), None | Some("" | "ExactCount"));
    let is_whole = is_exact && capacity.is_none();
    if !is_whole {
        return None;
    }
    let gpus = u32::try_from(count.unwrap_or(1)).ok()?;
    Some((class, Gpus(gpus)))
}
