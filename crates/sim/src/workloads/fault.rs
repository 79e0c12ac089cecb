//! What may go wrong with workloads.

use std::fmt;

use super::Outages;
use super::kubelet::{self, Death};
use super::nodes;
use super::object::{Object, Write};
use wva_base::moment::WallTime;

/// Something that goes wrong at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadFault {
    /// The containers of so many ready pods of a deployment die, and are started again.
    Crash {
        /// Namespace of the deployment.
        namespace: String,
        /// Its name.
        deployment: String,
        /// How many pods.
        pods: usize,
    },
    /// So many running pods of a deployment are evicted.
    Evict {
        /// Namespace of the deployment.
        namespace: String,
        /// Its name.
        deployment: String,
        /// How many pods.
        pods: usize,
    },
    /// A node does not answer any more.
    NodeLost {
        /// Its name.
        node: String,
    },
    /// A node answers again.
    NodeBack {
        /// Its name.
        node: String,
    },
}

impl fmt::Display for WorkloadFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash {
                deployment, pods, ..
            } => write!(formatter, "{pods} pod of {deployment} crashes"),
            Self::Evict {
                deployment, pods, ..
            } => write!(formatter, "{pods} pod of {deployment} is evicted"),
            Self::NodeLost { node } => write!(formatter, "node {node} is lost"),
            Self::NodeBack { node } => write!(formatter, "node {node} is back"),
        }
    }
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
            Self::Crash {
                namespace,
                deployment,
                pods: most,
            } => {
                let death = Death {
                    code: 137,
                    reason: "OOMKilled",
                };
                let hit = of(pods, namespace, deployment).filter(|pod| pod.holds("Ready"));
                hit.take(*most)
                    .flat_map(|pod| kubelet::crash(pod, death, now))
                    .collect()
            }
            Self::Evict {
                namespace,
                deployment,
                pods: most,
            } => {
                let message = "The node was low on resource: ephemeral-storage.";
                let hit = of(pods, namespace, deployment)
                    .filter(|pod| pod.text("/status/phase") == "Running");
                hit.take(*most)
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

/// The live pods of a deployment, in the order of names.
fn of<'a>(
    pods: &'a [Object],
    namespace: &'a str,
    deployment: &'a str,
) -> impl Iterator<Item = &'a Object> {
    pods.iter().filter(move |pod| {
        let owner = pod.at("/metadata/ownerReferences/0/name");
        let owner = owner.as_str().unwrap_or_default();
        // A ReplicaSet is called like its deployment, and a hash; one that stands alone as itself.
        let above = owner.rsplit_once('-').map(|(name, _)| name);
        pod.namespace() == namespace
            && (above == Some(deployment) || owner == deployment)
            && !pod.is_deleted()
            && pod.text("/status/phase") != "Failed"
    })
}
