//! What the mirrors know of the GPUs of the cluster.

use std::sync::Arc;
use std::time::Duration;

use super::Mirrors;
use crate::cluster::mirror::{Mirror, ObjectKey, SyncState};
use crate::cluster::project::resource_claim_template::{device_class, device_gpus};
use crate::policy::params::DynamicSettings;
use crate::policy::snapshot::{GpuInventory, ReplicaTemplate};
use wva_base::moment::Moment;

/// How long the last view serves while the API server gives no other.
const PATIENCE: Duration = Duration::from_mins(1);

impl Mirrors {
    /// The GPUs of the cluster, or why they are not known.
    pub fn inventory(&self, now: Moment) -> GpuInventory {
        let unknown = unseen("nodes", &self.nodes, now)
            .or_else(|| unseen("pods of all namespaces", &self.holding_pods, now));
        if let Some(why) = unknown {
            return GpuInventory::Unknown { why };
        }
        let nodes = self.nodes.all().into_iter();
        let pods = self.holding_pods.all().into_iter();
        GpuInventory::Nodes {
            nodes: nodes
                .map(|(_, node)| (Arc::clone(&node.name), node.node.clone()))
                .collect(),
            pods: pods.map(|(_, holding)| holding.pod.clone()).collect(),
        }
    }

    /// A replica with what its pods hold by resource claims counted, where growth is limited and all of it can be. Where
    /// nodes limit growth that must be no GPU, since they do not list what they offer to claims.
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
        (!settings.wants_nodes() || counted.gpus == template.gpus).then_some(counted)
    }
}

fn unseen<V>(what: &str, mirror: &Mirror<V>, now: Moment) -> Option<Arc<str>> {
    let is_old = mirror
        .last_contact()
        .is_none_or(|last| now.since(last) > PATIENCE);
    match (mirror.sync(), mirror.trouble()) {
        (SyncState::Never, None) => Some(format!("{what} have not been listed yet").into()),
        (SyncState::Never, Some(why)) => Some(
            format!("{what} cannot be listed: {why}; allow the controller to list and watch them everywhere, or turn the limits to GPUs off").into(),
        ),
        (_, Some(why)) if is_old => {
            Some(format!("{what} have not been heard of for a minute: {why}").into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
