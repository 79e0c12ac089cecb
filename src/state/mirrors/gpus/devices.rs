//! From slices and claims of dynamic resource allocation to what nodes offer and pods hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::project::device::{
    ClaimObject, Device, DeviceKey, DevicePlace, DeviceSort, PoolKey, SliceObject,
};
use crate::policy::gpu::{GpuPod, NodeView, PodPhase};

#[derive(Debug, Default)]
pub(super) struct Devices {
    /// The node of each.
    gpus: BTreeMap<DeviceKey, Arc<str>>,
    /// The GPUs that each other device is a part of.
    wholes: BTreeMap<DeviceKey, Vec<DeviceKey>>,
    offers: Vec<Offer>,
    /// Of GPUs that several nodes reach, on each of them or under a name of their own.
    lost: BTreeSet<Offer>,
}

/// The nodes that reach a device.
#[derive(Debug)]
enum Reach {
    One(Arc<str>),
    /// Or none of those that there are.
    Several(Vec<Arc<str>>),
}

impl Reach {
    fn of(place: Option<&DevicePlace>, nodes: &BTreeMap<Arc<str>, NodeView>) -> Self {
        if let Some(DevicePlace::Node(node)) = place {
            return Self::One(Arc::clone(node));
        }
        let is_reached = |(name, node): &(&Arc<str>, &NodeView)| {
            place.is_none_or(|place| place.reaches(name, &node.labels))
        };
        let reached = nodes.iter().filter(is_reached);
        let mut reached: Vec<Arc<str>> = reached.map(|(name, _)| Arc::clone(name)).collect();
        match (reached.pop(), reached.is_empty()) {
            (Some(node), true) => Self::One(node),
            (last, _) => Self::Several(reached.into_iter().chain(last).collect()),
        }
    }
}

/// What a pool has on one node.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Reads all slices of GPUs, by the nodes that there are.
    pub(super) fn of(slices: &[Arc<SliceObject>], nodes: &BTreeMap<Arc<str>, NodeView>) -> Self {
        let mut pools: BTreeMap<&PoolKey, Vec<&SliceObject>> = BTreeMap::new();
        for slice in slices {
            pools.entry(&slice.pool).or_default().push(slice);
        }
        let mut devices = Self::default();
        for (key, mut slices) in pools {
            let newest = slices.iter().map(|slice| slice.generation).max();
            slices.retain(|slice| Some(slice.generation) == newest);
            devices.add(key, &slices, nodes);
        }
        devices
    }

    fn add(
        &mut self,
        key: &PoolKey,
        slices: &[&SliceObject],
        nodes: &BTreeMap<Arc<str>, NodeView>,
    ) {
        let devices = || slices.iter().flat_map(|slice| &slice.devices);
        let listed = i64::try_from(slices.len()).unwrap_or(i64::MAX);
        let is_known = slices.iter().all(|slice| listed >= slice.slices)
            && devices().all(|device| device.sort != DeviceSort::Unknown);
        let mut offers: BTreeMap<Arc<str>, Offer> = BTreeMap::new();
        for slice in slices {
            let shared = Reach::of(slice.place.as_ref(), nodes);
            if let Reach::One(node) = &shared {
                let offer = || Offer::of(&key.resource, node);
                offers.entry(Arc::clone(node)).or_insert_with(offer);
            }
            // What other slices have of the pool may be anywhere.
            if !is_known && slice.devices.is_empty() {
                self.lose(key, &shared, None);
            }
            for device in &slice.devices {
                let own = device.place.as_ref();
                let own = own.map(|place| Reach::of(Some(place), nodes));
                let reach = own.as_ref().unwrap_or(&shared);
                let Reach::One(node) = reach else {
                    if device.sort != DeviceSort::Other {
                        self.lose(key, reach, device.product.as_ref());
                    }
                    continue;
                };
                let offer = || Offer::of(&key.resource, node);
                let offer = offers.entry(Arc::clone(node)).or_insert_with(offer);
                offer.product = offer.product.take().or_else(|| device.product.clone());
                if device.sort == DeviceSort::Gpu {
                    offer.count = offer.count.map(|count| count.saturating_add(1));
                    self.gpus.insert(key.device(device), Arc::clone(node));
                }
            }
        }
        let offers = offers.into_values();
        self.offers
            .extend(offers.map(|offer| Offer { count: offer.count.filter(|_| is_known), ..offer }));
        self.add_parts(key, &devices().collect::<Vec<_>>());
    }

    /// Notes a GPU that several nodes reach: which of them it counts for is not known. What it is leaves its type
    /// unknown, under the name of its pool; without that each of the nodes lacks a number.
    fn lose(&mut self, key: &PoolKey, reach: &Reach, product: Option<&Arc<str>>) {
        let Reach::Several(nodes) = reach else {
            return;
        };
        if nodes.is_empty() {
            return;
        }
        let PoolKey { resource, pool } = key;
        let name = || product.map(|product| format!("{product} of pool {pool}").into());
        let places = name().map_or_else(|| nodes.clone(), |name| vec![name]);
        let lost = places.into_iter().map(|node| Offer {
            node,
            resource: Arc::clone(resource),
            count: None,
            product: product.cloned(),
        });
        self.lost.extend(lost);
    }

    /// Parts of a GPU take from its counters, as the whole does.
    fn add_parts(&mut self, key: &PoolKey, devices: &[&Device]) {
        let (gpus, parts): (Vec<&Device>, Vec<&Device>) =
            devices.iter().copied().partition(|one| one.sort == DeviceSort::Gpu);
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
        for lost in &self.lost {
            let place = nodes.entry(Arc::clone(&lost.node)).or_default();
            place.offer(&lost.resource, None, lost.product.as_deref());
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
