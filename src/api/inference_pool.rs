//! The few fields of the gateway API's `InferencePool` that we read, in both of its groups.

use std::collections::BTreeMap;

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// `inference.networking.k8s.io/v1`.
pub mod v1 {
    use super::{BTreeMap, CustomResource, Deserialize, Serialize};

    /// What a pool selects, and who picks endpoints in it.
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
        /// Which pods belong to the pool.
        #[serde(default)]
        pub selector: Selector,
        /// The endpoint picker.
        #[serde(default)]
        pub endpoint_picker_ref: Option<super::PickerRef>,
    }

    /// A label selector without expressions.
    #[derive(Debug, Clone, Default, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Selector {
        /// Labels that a pod must carry.
        #[serde(default)]
        pub match_labels: BTreeMap<String, String>,
    }
}

/// `inference.networking.x-k8s.io/v1alpha2`.
pub mod v1alpha2 {
    use super::{BTreeMap, CustomResource, Deserialize, Serialize};

    /// What a pool selects, and who picks endpoints in it.
    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize)]
    #[kube(
        group = "inference.networking.x-k8s.io",
        version = "v1alpha2",
        kind = "InferencePool",
        plural = "inferencepools",
        namespaced,
        schema = "disabled"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct InferencePoolV1Alpha2Spec {
        /// Labels that a pod of the pool must carry.
        #[serde(default)]
        pub selector: BTreeMap<String, String>,
        /// The endpoint picker.
        #[serde(default)]
        pub extension_ref: Option<super::PickerRef>,
    }
}

/// Names the service of an endpoint picker, in the namespace of its pool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PickerRef {
    /// Name of the service.
    pub name: String,
}
