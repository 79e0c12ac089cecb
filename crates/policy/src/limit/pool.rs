//! A supply of GPUs that several variants draw from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use crate::key::ModelKey;
use crate::units::Gpus;
use wva_base::text::listed;

/// A supply of GPUs that several variants draw from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GpuPool {
    /// GPUs of one type on the nodes.
    Inventory {
        /// The type.
        accelerator: Arc<str>,
    },
    /// GPUs of a type that no node has.
    NoNode {
        /// The type, as the variant states it.
        accelerator: Arc<str>,
        /// The types that nodes have.
        known: Vec<Arc<str>>,
    },
    /// A quota of one type over the cluster.
    ClusterQuota {
        /// The limiter that states it.
        limiter: Arc<str>,
        /// The type.
        accelerator: Arc<str>,
    },
    /// A quota of one type in one namespace.
    NamespaceQuota {
        /// The limiter that states it.
        limiter: Arc<str>,
        /// The namespace.
        namespace: Arc<str>,
        /// The type.
        accelerator: Arc<str>,
    },
}

pub(super) const NODES: &str = "nodes";

impl GpuPool {
    /// The limiter that it belongs to by name; `nodes` for the GPUs that nodes offer.
    pub fn limiter(&self) -> &str {
        match self {
            Self::Inventory { .. } | Self::NoNode { .. } => NODES,
            Self::ClusterQuota { limiter, .. } | Self::NamespaceQuota { limiter, .. } => limiter,
        }
    }
}

wva_base::display_of! { GpuPool:
    Self::Inventory { accelerator } => "inventory[type={accelerator}]";
    Self::NoNode { accelerator, known } if known.is_empty() =>
        "inventory[type={accelerator}]: no node offers GPUs of type {accelerator}; known: none";
    Self::NoNode { accelerator, known } =>
        "inventory[type={accelerator}]: no node offers GPUs of type {accelerator}; known: {}", listed(known);
    Self::ClusterQuota { accelerator, .. } => "quota[scope=cluster, type={accelerator}]";
    Self::NamespaceQuota { namespace, accelerator, .. } =>
        "quota[scope=namespace, namespace={namespace}, type={accelerator}]";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Room {
    pub pool: GpuPool,
    pub left: Budget,
}

/// GPUs of one pool that the growth of other models does not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldGpus {
    /// The model that starts, or will once there are enough.
    pub model: ModelKey,
    pub pool: GpuPool,
    pub gpus: Gpus,
}

wva_base::display_of! { HeldGpus:
    Self { model: ModelKey { namespace, model }, pool, gpus } => "{gpus} in {pool} for {namespace}/{model}";
}
