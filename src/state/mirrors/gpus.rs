//! What the mirrors know of the GPUs of the cluster.

use std::sync::Arc;
use std::time::Duration;

use self::devices::Devices;
use super::Mirrors;
use crate::cluster::mirror::{Mirror, ObjectKey, SyncState};
use crate::cluster::project::resource_claim_template::{device_class, device_gpus};
use crate::policy::gpu::GpuPod;
use crate::policy::object::Lifecycle;
use crate::policy::params::DynamicSettings;
use crate::policy::snapshot::{GpuInventory, ReplicaTemplate};
use wva_base::moment::Moment;

mod devices;

/// How long the last view serves while the API server gives no other.
const PATIENCE: Duration = Duration::from_mins(1);

impl Mirrors {
    /// The GPUs of the cluster, or why they are not known.
    pub fn inventory(&self, now: Moment) -> GpuInventory {
        let unknown = unseen("nodes", &self.nodes, now)
            .or_else(|| unseen("pods of all namespaces", &self.holding_pods, now))
            .or_else(|| unseen_devices("resource slices", &self.slices, now))
            .or_else(|| unseen_devices("resource claims", &self.claims, now));
        if let Some(why) = unknown {
            return GpuInventory::Unknown { why };
        }
        let nodes = self.nodes.all().into_iter();
        let pods = self.holding_pods.all().into_iter();
        let mut nodes = nodes.map(|(key, node)| (key.name, (*node).clone())).collect();
        let mut pods: Vec<GpuPod> = pods.map(|(_, pod)| (*pod).clone()).collect();
        if self.sees_devices() {
            let values = |(_, slice)| slice;
            let slices: Vec<_> = self.slices.all().into_iter().map(values).collect();
            let devices = Devices::of(&slices, &nodes);
            devices.offer(&mut nodes);
            let claims = self.claims.all().into_iter();
            let claims: Vec<_> = claims.map(|(_, claim)| claim).collect();
            // Of other namespaces than those that are watched nothing is known here.
            let is_leaving = |namespace: &Arc<str>, pod: &Arc<str>| {
                let key = ObjectKey::new(Arc::clone(namespace), Arc::clone(pod));
                let pod = self.pods.get(&key);
                pod.is_some_and(|pod| pod.lifecycle != Lifecycle::Live)
            };
            pods.extend(devices.holders(&claims, is_leaving));
        }
        nodes.retain(|_, node| node.has_gpus());
        GpuInventory::Nodes { nodes, pods }
    }

    /// Whether devices and who holds them are known. Without the right to see them nodes offer what their status
    /// lists, as where the API server does not serve them.
    fn sees_devices(&self) -> bool {
        let slices = (self.slices.sync(), self.slices.is_forbidden());
        let claims = (self.claims.sync(), self.claims.is_forbidden());
        [slices, claims] == [(SyncState::Complete, false); 2]
    }

    /// A replica with what its pods hold by resource claims counted, where growth is limited and all of it can be.
    /// Where nodes limit growth and their devices are not known, that must be no GPU.
    pub fn counted(
        &self,
        namespace: &Arc<str>,
        template: &ReplicaTemplate,
        settings: &DynamicSettings,
    ) -> Option<ReplicaTemplate> {
        if template.gpu_count.is_counted() || !settings.limits_growth() {
            return None;
        }
        let counted = template.counted(|name| {
            if let Some(class) = device_class(name) {
                return device_gpus(class);
            }
            let key = ObjectKey::new(Arc::clone(namespace), name);
            self.claim_templates.get(&key)?.gpus.clone()
        })?;
        let is_offered = !settings.wants_nodes() || self.sees_devices();
        (is_offered || counted.gpus == template.gpus).then_some(counted)
    }
}

/// A right that is missing is no reason to forget what nodes list: installations before it had none to grant.
fn unseen_devices<V>(what: &str, mirror: &Mirror<V>, now: Moment) -> Option<Arc<str>> {
    let seen = || unseen(what, mirror, now);
    (!mirror.is_forbidden()).then(seen).flatten()
}

fn unseen<V>(what: &str, mirror: &Mirror<V>, now: Moment) -> Option<Arc<str>> {
    if mirror.sync() == SyncState::KindAbsent {
        return None;
    }
    let is_old = mirror.last_contact().is_none_or(|last| now.since(last) > PATIENCE);
    match (mirror.sync(), mirror.trouble()) {
        (SyncState::Never, None) => Some(format!("{what} have not been listed yet").into()),
        (SyncState::Never, Some(why)) => Some(
            format!("{what} cannot be listed: {why}; allow the controller to list and watch them everywhere, or turn the limits to GPUs off").into(),
        ),
        (_, Some(why)) if is_old => {
            Some(format!("{what} could not be read for a minute: {why}").into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod device_tests;
#[cfg(test)]
mod tests;
