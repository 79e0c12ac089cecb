//! What may go wrong with workloads.

use super::Outages;
use super::kubelet::{self, Death};
use super::nodes;
use super::object::{Object, Write};
use wva_base::moment::WallTime;

/// Something that goes wrong at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadFault {
    /// The containers of ready pods die, and are started again.
    Crash(StruckPods),
    /// Running pods are evicted.
    Evict(StruckPods),
    /// A node does not answer any more.
    NodeLost { node: String },
    /// A node answers again.
    NodeBack { node: String },
}

/// So many pods of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StruckPods {
    pub namespace: String,
    pub deployment: String,
    pub pods: usize,
}

wva_base::display_of! { WorkloadFault:
    Self::Crash(struck) => "{struck} crashes";
    Self::Evict(struck) => "{struck} is evicted";
    Self::NodeLost { node } => "node {node} is lost";
    Self::NodeBack { node } => "node {node} is back";
}

impl WorkloadFault {
    pub(super) fn strike(
        &self,
        outages: &Outages,
        nodes: &[Object],
        pods: &[Object],
        now: WallTime,
    ) -> Vec<Write> {
        match self {
            Self::Crash(struck) => {
                let death = Death { code: 137, reason: "OOMKilled" };
                let hit = struck.live(pods).filter(|pod| pod.holds("Ready"));
                hit.take(struck.pods).flat_map(|pod| kubelet::crash(pod, death, now)).collect()
            }
            Self::Evict(struck) => {
                let message = "The node was low on resource: ephemeral-storage.";
                let hit = struck.live(pods);
                hit.filter(|pod| pod.text("/status/phase") == "Running")
                    .take(struck.pods)
                    .flat_map(|pod| kubelet::evict(pod, message, now))
                    .collect()
            }
            Self::NodeLost { node } => {
                outages.change(|nodes| {
                    nodes.entry(node.clone()).or_insert(now);
                });
                Vec::new()
            }
            Self::NodeBack { node } => {
                outages.change(|nodes| {
                    nodes.remove(node);
                });
                let object = nodes.iter().find(|object| object.name() == node);
                object.map_or_else(Vec::new, |object| nodes::answers(object, pods, now))
            }
        }
    }
}

wva_base::display_of! { StruckPods: Self { pods, deployment, .. } => "{pods} pod of {deployment}"; }

impl StruckPods {
    /// The live pods of the deployment, in the order of names.
    fn live<'a>(&'a self, pods: &'a [Object]) -> impl Iterator<Item = &'a Object> {
        pods.iter().filter(move |pod| {
            let owner = pod.text("/metadata/ownerReferences/0/name");
            // A ReplicaSet is called like its deployment, and a hash; one that stands alone as itself.
            let above = owner.rsplit_once('-').map_or(owner, |(name, _)| name);
            pod.namespace() == self.namespace
                && [above, owner].contains(&&*self.deployment)
                && !pod.is_deleted()
                && pod.text("/status/phase") != "Failed"
        })
    }
}
