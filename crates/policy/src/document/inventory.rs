//! GPUs of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::NodeView;

/// GPUs of the cluster: sums by type, or every node with every pod that holds GPUs, or the reason
/// why they are not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InventoryDocument {
    /// Why it is not known. Nothing grows by an inventory that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Arc<str>>,
    /// Sums by short accelerator type, such as `H100`. A type that is left out does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<BTreeMap<Arc<str>, TypeDocument>>,
    /// Nodes by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<BTreeMap<Arc<str>, NodeView>>,
    /// Pods that ask for GPUs, whoever they belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Vec<GpuPodDocument>>,
}

/// GPUs of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TypeDocument {
    /// GPUs that schedulable nodes offer.
    pub total: u32,
    /// GPUs that pods hold. Left out: none.
    #[serde(default)]
    pub used: u32,
}

/// One pod that asks for GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuPodDocument {
    /// Its namespace and name, such as `default/llama-0`. Left out: nobody says, so that no pod of a
    /// variant is missed among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The node that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// Whether it has succeeded or failed. Left out: false.
    #[serde(default)]
    pub finished: bool,
    /// Whether it is deleted and not gone: it holds its GPUs until it is. Left out: false.
    #[serde(default)]
    pub terminating: bool,
    /// Requests of each container by resource.
    #[serde(default)]
    pub containers: Vec<BTreeMap<Arc<str>, u32>>,
    /// Requests of each init container by resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<BTreeMap<Arc<str>, u32>>,
}
