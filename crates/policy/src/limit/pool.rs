//! A supply of GPUs that several variants draw from.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use crate::reason::listed;

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

impl fmt::Display for GpuPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inventory { accelerator } => write!(f, "inventory[type={accelerator}]"),
            Self::NoNode { accelerator, known } => {
                write!(
                    f,
                    "inventory[type={accelerator}]: no node offers GPUs of type {accelerator}; known: "
                )?;
                if known.is_empty() {
                    return f.write_str("none");
                }
                listed(f, known)
            }
            Self::ClusterQuota { accelerator, .. } => {
                write!(f, "quota[scope=cluster, type={accelerator}]")
            }
            Self::NamespaceQuota {
                namespace,
                accelerator,
                ..
            } => write!(
                f,
                "quota[scope=namespace, namespace={namespace}, type={accelerator}]"
            ),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Room {
    pub pool: GpuPool,
    pub left: Budget,
}
