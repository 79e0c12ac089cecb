//! What a scale target says about one replica: its part of a request, its GPUs and its engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::capacity::ServingRole;
use super::engine_args::Containers;
use super::gpu::{GpuCount, GpuPod, NodeView, Physical, leaving, physical};
use super::units::Gpus;
use crate::params::LabelSelector;

/// One replica of a variant, as its scale target describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaTemplate {
    /// The part of a request that it serves.
    pub role: ServingRole,
    /// GPUs of one replica by resource, like `nvidia.com/gpu`; empty where none are stated.
    pub gpus: BTreeMap<Arc<str>, Gpus>,
    /// Whether these are all.
    #[serde(default, skip_serializing_if = "GpuCount::is_counted")]
    pub gpu_count: GpuCount,
    /// Containers of its pod template; empty where they are not known.
    pub containers: Containers,
    /// The service class that the object names.
    pub service_class: Option<Arc<str>>,
}

impl ReplicaTemplate {
    /// GPUs of one replica, of all vendors; one where none are stated, since it takes a place.
    pub fn gpus_per_replica(&self) -> Gpus {
        self.requested().at_least_one()
    }

    /// GPUs that one replica takes of limited pools: none where all that it holds are those of claims.
    pub fn gpus_taken(&self) -> Gpus {
        self.gpu_count.taken(self.requested())
    }

    /// The same with the GPUs of its claims counted; `None` where one of them cannot be. `claimed` says what a claim that
    /// is made from a template holds, by resource.
    pub fn counted(
        &self,
        claimed: impl Fn(&str) -> Option<BTreeMap<Arc<str>, Gpus>>,
    ) -> Option<Self> {
        if self.gpu_count == GpuCount::Unknown {
            return None;
        }
        let mut gpus = self.gpus.clone();
        for claim in self.gpu_count.claims() {
            for (resource, count) in claimed(claim.template.as_deref()?)? {
                let sum = gpus.entry(resource).or_default();
                *sum = sum.plus(count.times(claim.pods));
            }
        }
        Some(Self { gpus, gpu_count: GpuCount::Counted, ..self.clone() })
    }

    fn requested(&self) -> Gpus {
        self.gpus.values().copied().sum()
    }
}

/// What is known about the GPUs of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuInventory {
    /// Not all of it could be read.
    Unknown {
        /// Why.
        why: Arc<str>,
    },
    /// Every node, and every pod that holds GPUs.
    Nodes {
        /// Nodes by name.
        nodes: BTreeMap<Arc<str>, NodeView>,
        /// All pods that request GPUs.
        pods: Vec<GpuPod>,
    },
    /// Sums by accelerator type.
    Types {
        /// GPUs that schedulable nodes offer.
        limits: BTreeMap<Arc<str>, Gpus>,
        /// GPUs that pods hold.
        used: BTreeMap<Arc<str>, Gpus>,
    },
}

impl GpuInventory {
    /// Limits and use by accelerator type, over the nodes that `selector` chooses. Sums by type are
    /// taken as they are.
    pub fn physical(&self, selector: &LabelSelector) -> Physical {
        match self {
            Self::Unknown { .. } => Physical::Unknown,
            Self::Nodes { nodes, pods } => physical(Some(nodes), Some(pods), selector),
            Self::Types { limits, used } => Physical::Known {
                limits: limits.clone(),
                used: used.clone(),
                unlisted: BTreeSet::new(),
            },
        }
    }

    /// GPUs by accelerator type that pods hold which are deleted and not gone.
    pub fn leaving(&self, selector: &LabelSelector) -> BTreeMap<Arc<str>, Gpus> {
        match self {
            Self::Nodes { nodes, pods } => leaving(nodes, pods, selector),
            Self::Unknown { .. } | Self::Types { .. } => BTreeMap::new(),
        }
    }
}
