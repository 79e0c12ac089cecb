//! Variants with their scale targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::DocumentReading;
use super::scalar::{self, CostText, Span};
use crate::capacity::ServingRole;
use crate::samples::{PodSamples, RouterSamples};
use crate::snapshot::{DeclaredBounds, VariantPolicy};

/// One variant: the object, its scale target and its pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VariantDocument {
    /// Namespace of the object.
    #[serde(deserialize_with = "scalar::name")]
    pub namespace: Arc<str>,
    /// Name of the object.
    #[serde(deserialize_with = "scalar::name")]
    pub name: Arc<str>,
    /// The model that it serves.
    #[serde(deserialize_with = "scalar::name")]
    pub model: Arc<str>,
    /// Cost of one replica. Left out: 10.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostText>,
    /// Accelerator of one replica. Left out: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<Arc<str>>,
    /// The part of a request that it serves: `prefill`, `decode` or `both`. Left out: `both`.
    #[serde(default)]
    pub role: ServingRole,
    /// GPUs of one replica by resource, like `nvidia.com/gpu: 2`. Left out: one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus: BTreeMap<Arc<str>, u32>,
    /// Resource claims of one replica, by the names that its pod template gives them. GPUs that they hold are not
    /// counted: no limit on GPUs grows it above its minimum. Left out: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_claims: Vec<Arc<str>>,
    /// Whether nothing shows what GPUs one replica holds, as of a kind without a watcher whose pods were never seen: no
    /// limit on GPUs grows it above its minimum. Left out: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpus_unknown: bool,
    /// The service class that the object names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_class: Option<Arc<str>>,
    /// Bounds as the object states them.
    #[serde(default)]
    pub bounds: DeclaredBounds,
    /// What the object states for its own policy.
    #[serde(default, skip_serializing_if = "VariantPolicy::is_empty")]
    pub policy: VariantPolicy,
    /// The replica count published last. Left out: none ever was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<u32>,
    /// The scale target.
    pub target: TargetDocument,
    /// How long replicas have been on their way up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_for: Option<Span>,
    /// How long the published count has differed from the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unapplied_for: Option<Span>,
    /// Containers of the target's pod template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<ContainerDocument>,
    /// Live pods of the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodDocument>,
    /// Whether an `InferencePool` selects its pods, so that a router may hold requests that nothing counts. Left
    /// out: true.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub routed: bool,
    /// Generation of the object, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// What had to be read differently from how the object says it; for readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Arc<str>>,
}

/// A scale target and what is known of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetDocument {
    /// Whether this variant can scale it. Left out: `resolved`.
    #[serde(default)]
    pub state: TargetState,
    /// Group and version of its kind. Left out: those of `kind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Arc<str>>,
    /// Its kind. Left out: `Deployment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// Its name. Left out: that of the variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Replicas that exist. Needed where it is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<u32>,
    /// Those among them that a rollout has beyond what is asked for. Left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surge: Option<u32>,
    /// Replicas that are ready. Left out: all that exist, less the pods that are not. It may exceed `current`,
    /// which is then taken as nothing pending: both are copied from the status, where another controller writes them, and
    /// `current` from the specification where the status says 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<u32>,
    /// Whether its status is older than its specification. Left out: false.
    #[serde(default)]
    pub lagging: bool,
    /// Variants that name it, as `namespace/name`, where it is contested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claimants: Vec<String>,
    /// The older object of another kind that scales it, like `PodAutoscaler ns/name`, where it is contested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    /// What is wrong with the object, where it is malformed, or with its kind, where that cannot be
    /// scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
}

/// Whether a variant can scale its target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TargetState {
    /// It can.
    #[default]
    Resolved,
    /// The target does not exist.
    NotFound,
    /// The target has not been seen yet.
    Unknown,
    /// Several variants name it.
    Contested,
    /// Its kind cannot be scaled.
    UnsupportedKind,
    /// The object itself breaks its schema.
    Malformed,
}

/// What is needed of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerDocument {
    /// Its name, for readers; it decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// `image`.
    #[serde(default)]
    pub image: Arc<str>,
    /// `command`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<Arc<str>>,
    /// `args`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arc<str>>,
    /// `env`, as far as values are written there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<Arc<str>, Arc<str>>,
}

/// One live pod of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodDocument {
    /// Its name.
    #[serde(deserialize_with = "scalar::name")]
    pub name: Arc<str>,
    /// Whether its Ready condition is true. Left out: true.
    #[serde(default = "yes")]
    pub ready: bool,
    /// Whether it waits behind a scheduling gate. Left out: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    /// How long ago it was created. Left out: just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// How long it has been ready. Left out: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for: Option<Span>,
    /// Its node. Left out: it has none, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// What it reports for the model of its variant.
    #[serde(default)]
    pub signals: SignalsDocument,
}

fn yes() -> bool {
    true
}

/// What one replica reports.
pub type SignalsDocument = PodSamples<DocumentReading>;

/// The router in front of a model.
pub type RouterDocument = RouterSamples<DocumentReading>;
