//! From slices and claims of dynamic resource allocation to what nodes offer and pods hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::project::device::{
    ClaimObject, Device, DeviceKey, DeviceSort, PoolKey, SliceObject,
};
use crate::policy::limit::{GpuPod, NodeView, PodPhase};

/// The GPUs of all pools.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// The node of each.
    gpus: BTreeMap<DeviceKey, Arc<str>>,
    /// The GPUs that each other device is a part of.
    wholes: BTreeMap<DeviceKey, Vec<DeviceKey>>,
    offers: Vec<Offer>,
}

/// What a pool has on one node.
#[derive(Debug)]
struct Offer {
    resource: Arc<str>,
    node: Arc<str>,
    /// GPUs; `None` where the pool is not complete.
    count: Option<u32>,
    product: Option<Arc<str>>,
}

impl Offer {
    fn of(resource: &Arc<str>, node: &Arc<str>) -> Self {
        Self {
            resource: Arc::clone(resource),
            node: Arc::clone(node),
            count: Some(0),
            product: None,
        }
    }
}

impl Devices {
    /// Reads all slices of GPUs; or why that is not known which no node can be charged with.
    pub(super) fn of(slices: &[Arc<SliceObject>]) -> Result<Self, Arc<str>> {
        let mut pools: BTreeMap<&PoolKey, Vec<&SliceObject>> = BTreeMap::new();
        for slice in slices {
            pools.entry(&slice.pool).or_default().push(slice);
        }
        let mut devices = Self::default();
        for (key, mut slices) in pools {
            let newest = slices.iter().map(|slice| slice.generation).max();
            slices.retain(|slice| Some(slice.generation) == newest);
            devices.add(key, &slices)?;
        }
        Ok(devices)
    }

    fn add(&mut self, key: &PoolKey, slices: &[&SliceObject]) -> Result<(), Arc<str>> {
        let of_no_node = || -> Arc<str> {
            let PoolKey { resource, pool } = key;
            format!("devices of {resource} in pool {pool} belong to no single node").into()
        };
        let devices = || slices.iter().flat_map(|slice| &slice.devices);
        let listed = i64::try_from(slices.len()).unwrap_or(i64::MAX);
        let is_known = slices.iter().all(|slice| listed >= slice.slices)
            && devices().all(|device| device.sort != DeviceSort::Unknown);
        let mut offers: BTreeMap<&Arc<str>, Offer> = BTreeMap::new();
        for slice in slices {
            let mut nodes = slice.nodes().peekable();
            if nodes.peek().is_none() && (!is_known || !slice.devices.is_empty()) {
                return Err(of_no_node());
            }
            offers.extend(nodes.map(|node| (node, Offer::of(&key.resource, node))));
        }
        for device in devices() {
            let Some(offer) = device.node.as_ref().and_then(|node| offers.get_mut(node)) else {
                return Err(of_no_node());
            };
            offer.product = offer.product.take().or_else(|| device.product.clone());
            if device.sort == DeviceSort::Gpu {
                offer.count = offer.count.map(|count| count.saturating_add(1));
                self.gpus
                    .insert(key.device(device), Arc::clone(&offer.node));
            }
        }
        let offers = offers.into_values();
        self.offers.extend(offers.map(|offer| Offer {
            count: offer.count.filter(|_| is_known),
            ..offer
        }));
        self.add_parts(key, &devices().collect::<Vec<_>>());
        Ok(())
    }

    /// Parts of a GPU take from its counters, as the whole does.
    fn add_parts(&mut self, key: &PoolKey, devices: &[&Device]) {
        let (gpus, parts): (Vec<&Device>, Vec<&Device>) = devices
            .iter()
            .copied()
            .partition(|one| one.sort == DeviceSort::Gpu);
        let mut counters: BTreeMap<&Arc<str>, Vec<&Device>> = BTreeMap::new();
        for gpu in gpus {
            for counter in &gpu.counters {
                counters.entry(counter).or_default().push(gpu);
            }
        }
        for part in parts {
            let wholes = part.counters.iter();
            let wholes = wholes.filter_map(|counter| counters.get(counter)).flatten();
            let wholes = wholes.map(|gpu| key.device(gpu)).collect();
            self.wholes.insert(key.device(part), wholes);
        }
    }

    /// Adds what nodes offer. One that is not known is left out: nothing says whether it takes pods.
    pub(super) fn offer(&self, nodes: &mut BTreeMap<Arc<str>, NodeView>) {
        for offer in &self.offers {
            if let Some(node) = nodes.get_mut(&offer.node) {
                node.offer(&offer.resource, offer.count, offer.product.as_deref());
            }
        }
    }

    /// The pods that use claims, the first of each with the GPUs of the claim. A GPU that several claims share is held
    /// once. Those of a claim are on their way out once all of its pods are.
    pub(super) fn holders(
        &self,
        claims: &[Arc<ClaimObject>],
        is_leaving: impl Fn(&Arc<str>, &Arc<str>) -> bool,
    ) -> Vec<GpuPod> {
        let mut seen: BTreeSet<&DeviceKey> = BTreeSet::new();
        let mut pods = Vec::new();
        for claim in claims {
            let mut held: BTreeMap<&Arc<str>, BTreeMap<Arc<str>, u32>> = BTreeMap::new();
            for (gpu, node) in claim.devices.iter().flat_map(|device| self.behind(device)) {
                if seen.insert(gpu) {
                    let on_node = held.entry(node).or_default();
                    let count = on_node.entry(Arc::clone(&gpu.pool.resource)).or_default();
                    *count = count.saturating_add(1);
                }
            }
            let named = |pod: &Arc<str>| (Arc::clone(&claim.namespace), Arc::clone(pod));
            let first = claim.pods.first().map(named);
            let mut users = claim.pods.iter();
            let phase = if first.is_some() && users.all(|pod| is_leaving(&claim.namespace, pod)) {
                PodPhase::Leaving
            } else {
                PodPhase::Active
            };
            let others = claim.pods.iter().skip(usize::from(!held.is_empty()));
            let others = others.map(|pod| (Some(named(pod)), None, Vec::new()));
            let holding = held.into_iter();
            let holding =
                holding.map(|(node, gpus)| (first.clone(), Some(Arc::clone(node)), vec![gpus]));
            let all = others.chain(holding);
            pods.extend(all.map(|(named, node, containers)| GpuPod {
                named,
                node,
                phase,
                containers,
                init_containers: Vec::new(),
            }));
        }
        pods
    }

    /// The GPUs that cannot be had by another while a device is held, each with its node.
    fn behind<'a>(
        &'a self,
        device: &'a DeviceKey,
    ) -> impl Iterator<Item = (&'a DeviceKey, &'a Arc<str>)> {
        let wholes = self.wholes.get(device).into_iter().flatten();
        let gpus = std::iter::once(device).chain(wholes);
        gpus.filter_map(|gpu| self.gpus.get_key_value(gpu))
    }
}
