//! Names of the things a decision is about. All are cheap to clone and have a total order, so that
//! every collection of them is walked in one and the same order.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Most variants that are remembered: as many as are ever scaled.
pub const MAX_VARIANTS: usize = 50_000;

/// Names one object of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Its namespace; empty for kinds that have none.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

wva_base::display_of! { ObjectKey:
    Self { namespace, name } if namespace.is_empty() => "{name}";
    Self { namespace, name } => "{namespace}/{name}";
}

/// One `VariantAutoscaling` object, which is one variant.
///
/// Serialised as `namespace/name`, so that it can be the key of a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct VariantKey {
    /// Kubernetes namespace of the object.
    pub namespace: Arc<str>,
    /// Name of the object; also the value of the `variant_name` label.
    pub name: Arc<str>,
}

wva_base::display_of! { VariantKey: Self { namespace, name } => "{namespace}/{name}"; }

/// One model in one namespace: the unit that every analyzer decides on.
///
/// Serialised as `namespace/model`; a namespace holds no slash, a model name may.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ModelKey {
    /// Kubernetes namespace.
    pub namespace: Arc<str>,
    /// `spec.modelID`, which equals the `model_name` label of the engine's series.
    pub model: Arc<str>,
}

wva_base::display_of! { ModelKey: Self { namespace, model } => "{model}|{namespace}"; }

/// Implements a name within a namespace: its constructor, and with `text` its form as text.
macro_rules! within_namespace {
    ($key:ident, $name:ident) => {
        impl $key {
            /// Names one within a namespace.
            pub fn new(namespace: impl Into<Arc<str>>, $name: impl Into<Arc<str>>) -> Self {
                Self { namespace: namespace.into(), $name: $name.into() }
            }
        }
    };
    (text $key:ident, $name:ident) => {
        within_namespace!($key, $name);

        impl From<$key> for String {
            fn from(key: $key) -> Self {
                format!("{}/{}", key.namespace, key.$name)
            }
        }

        impl TryFrom<String> for $key {
            type Error = InvalidKey;

            fn try_from(text: String) -> Result<Self, InvalidKey> {
                match text.split_once('/') {
                    Some((namespace, name)) => Ok(Self::new(namespace, name)),
                    None => Err(InvalidKey { text }),
                }
            }
        }
    };
}

within_namespace!(ObjectKey, name);
within_namespace!(text VariantKey, name);
within_namespace!(text ModelKey, model);

/// A text that names neither a variant nor a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not of the form namespace/name")]
pub struct InvalidKey {
    /// What was written.
    pub text: String,
}

/// One object with replicas that a variant scales.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TargetKey {
    /// Kubernetes namespace.
    pub namespace: Arc<str>,
    /// Kind of the object.
    pub kind: TargetKind,
    /// Name of the object.
    pub name: Arc<str>,
}

impl TargetKey {
    /// Names a scale target.
    pub fn new(
        namespace: impl Into<Arc<str>>,
        kind: TargetKind,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self { namespace: namespace.into(), kind, name: name.into() }
    }
}

wva_base::display_of! { TargetKey: Self { namespace, kind, name } => "{kind} {namespace}/{name}"; }

/// Kinds of scale target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TargetKind {
    /// `apps/v1` Deployment: one replica is one pod.
    Deployment,
    /// `apps/v1` StatefulSet: one replica is one pod.
    StatefulSet,
    /// `leaderworkerset.x-k8s.io` LeaderWorkerSet: one replica is a group of pods.
    LeaderWorkerSet,
    /// Any other kind; what it has is known by its scale subresource alone.
    Other(Arc<GroupKind>),
}

impl TargetKind {
    /// API group of workloads.
    pub const APPS: &str = "apps";
    pub(crate) const LEADER_WORKER_SET: &str = "leaderworkerset.x-k8s.io";

    /// The kind of this group and name.
    pub fn of(group: &Arc<str>, kind: &Arc<str>) -> Self {
        match (&**group, &**kind) {
            (Self::APPS, "Deployment") => Self::Deployment,
            (Self::APPS, "StatefulSet") => Self::StatefulSet,
            (Self::LEADER_WORKER_SET, "LeaderWorkerSet") => Self::LeaderWorkerSet,
            _ => Self::Other(Arc::new(GroupKind {
                group: Arc::clone(group),
                kind: Arc::clone(kind),
            })),
        }
    }
}

/// A kind with its API group. The version says how an object is written, not which one it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core.
    pub group: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
}

wva_base::display_of! { TargetKind:
    Self::Deployment => "Deployment";
    Self::StatefulSet => "StatefulSet";
    Self::LeaderWorkerSet => "LeaderWorkerSet";
    Self::Other(other) => "{}", other.kind;
}

/// Labels of an object.
pub type ObjectLabels = BTreeMap<Arc<str>, Arc<str>>;
