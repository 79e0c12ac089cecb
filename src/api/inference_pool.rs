//! The few fields of an `InferencePool` that we read, in every group that defines it.

use std::collections::BTreeMap;

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What a pool selects, and who picks endpoints in it. Its groups differ in the form of both fields.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize)]
#[kube(
    group = "inference.networking.k8s.io",
    version = "v1",
    kind = "InferencePool",
    plural = "inferencepools",
    namespaced,
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct InferencePoolSpec {
    #[serde(default)]
    pub selector: Selector,
    #[serde(default, alias = "extensionRef")]
    pub endpoint_picker_ref: Option<PickerRef>,
}

/// A label selector without expressions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Selector {
    /// As `v1` has it.
    #[serde(rename_all = "camelCase")]
    Stable { match_labels: BTreeMap<String, String> },
    /// As `v1alpha2` has it: labels that a pod must carry.
    Alpha(BTreeMap<String, String>),
}

impl Default for Selector {
    fn default() -> Self {
        Self::Alpha(BTreeMap::new())
    }
}

impl Selector {
    pub fn labels(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Stable { match_labels } => match_labels,
            Self::Alpha(labels) => labels,
        }
    }
}

/// Names the service of an endpoint picker, in the namespace of its pool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PickerRef {
    pub name: String,
}
