//! A supply of GPUs that several variants draw from, and its figures in an explanation.

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

const NODES: &str = "nodes";

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

/// What limits, how much it allows, and what of it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolFigures {
    /// The limiter by name; `nodes` for the GPUs that nodes offer.
    pub limiter: Arc<str>,
    /// Over what it counts.
    pub scope: PoolScope,
    /// The namespace of a scope of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Arc<str>>,
    /// The accelerator type.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// GPUs that it allows.
    pub limit: Budget,
    /// GPUs in use, and taken in this cycle; those of resource claims are not counted.
    pub used: Gpus,
    /// What it leaves; unknown where resource claims use some of it.
    pub left: Budget,
    /// The types that nodes have, where none has this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Vec<Arc<str>>>,
}

/// Over what a pool counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolScope {
    /// The nodes.
    Inventory,
    /// Own variants in the cluster.
    Cluster,
    /// Own variants in one namespace.
    Namespace,
}

impl PoolFigures {
    pub(super) fn of(pool: &GpuPool, limit: Budget, used: Gpus, left: Budget) -> Self {
        let (limiter, scope, namespace, kind) = match pool {
            GpuPool::Inventory { accelerator } | GpuPool::NoNode { accelerator, .. } => {
                (NODES.into(), PoolScope::Inventory, None, accelerator)
            }
            GpuPool::ClusterQuota { limiter, accelerator } => {
                (Arc::clone(limiter), PoolScope::Cluster, None, accelerator)
            }
            GpuPool::NamespaceQuota { limiter, namespace, accelerator } => (
                Arc::clone(limiter),
                PoolScope::Namespace,
                Some(Arc::clone(namespace)),
                accelerator,
            ),
        };
        Self {
            limiter,
            scope,
            namespace,
            kind: Arc::clone(kind),
            limit,
            used,
            left,
            known: match pool {
                GpuPool::NoNode { known, .. } => Some(known.clone()),
                _ => None,
            },
        }
    }

    /// The pool.
    pub fn pool(&self) -> GpuPool {
        let (limiter, accelerator) = (Arc::clone(&self.limiter), Arc::clone(&self.kind));
        match (self.scope, &self.namespace) {
            (PoolScope::Inventory, _) => match self.known.clone() {
                Some(known) => GpuPool::NoNode { accelerator, known },
                None => GpuPool::Inventory { accelerator },
            },
            (PoolScope::Namespace, Some(namespace)) => {
                GpuPool::NamespaceQuota { limiter, namespace: Arc::clone(namespace), accelerator }
            }
            (PoolScope::Cluster | PoolScope::Namespace, _) => {
                GpuPool::ClusterQuota { limiter, accelerator }
            }
        }
    }
}

wva_base::display_of! { PoolFigures:
    figures if figures.known.is_some() => "{}", figures.pool();
    figures @ Self { limiter, limit, used, left, .. } =>
        "{} (limiter {limiter}: limit {limit}, used {used}, left {left})", figures.pool();
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
