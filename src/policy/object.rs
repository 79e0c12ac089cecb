//! What is kept of Kubernetes objects: the few fields that a decision rests on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::key::{TargetKey, TargetKind, VariantKey};
use super::moment::WallTime;
use super::snapshot::Readiness;
use super::units::Replicas;

/// Whether an object is on its way out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lifecycle {
    /// It is not.
    #[default]
    Live,
    /// It carries a deletion timestamp.
    Deleting,
}

/// A `VariantAutoscaling`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantObject {
    /// Namespace and name.
    pub key: VariantKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether it is being deleted.
    pub lifecycle: Lifecycle,
    /// The label `inference.optimization/acceleratorName`.
    pub accelerator_label: Option<Arc<str>>,
    /// `spec`, if it could be read.
    pub spec: SpecReading,
    /// `status.desiredOptimizedAlloc`.
    pub stored: StoredAllocation,
}

/// The outcome of reading `spec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpecReading {
    /// It has the shape of the schema.
    Read(VariantSpec),
    /// It has not.
    Malformed {
        /// The field, its value and what it should be.
        why: Arc<str>,
    },
}

/// `spec` as written: nothing is judged yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantSpec {
    /// `modelID`.
    pub model_id: Arc<str>,
    /// `scaleTargetRef`.
    pub target: TargetReference,
    /// `variantCost`.
    pub cost: Option<Arc<str>>,
    /// `minReplicas`.
    pub min: Option<i32>,
    /// `maxReplicas`.
    pub max: Option<i32>,
}

/// `scaleTargetRef` as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetReference {
    /// `apiVersion`; absent means that of the kind.
    pub api_version: Option<Arc<str>>,
    /// `kind`; empty, as in old objects, means `Deployment`.
    pub kind: Arc<str>,
    /// `name`, in the namespace of the object.
    pub name: Arc<str>,
}

impl TargetReference {
    /// The target in `namespace`; `None` if the kind cannot be scaled.
    pub fn resolve(&self, namespace: &Arc<str>) -> Option<TargetKey> {
        let group_fits = self
            .api_version
            .as_deref()
            .is_none_or(|version| version.is_empty() || version.starts_with("apps/"));
        let kind_fits = self.kind.is_empty() || &*self.kind == "Deployment";
        (group_fits && kind_fits).then(|| {
            TargetKey::new(
                Arc::clone(namespace),
                TargetKind::Deployment,
                Arc::clone(&self.name),
            )
        })
    }
}

/// `status.desiredOptimizedAlloc` as stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAllocation {
    /// `numReplicas`; `None` if nothing was ever decided.
    pub desired: Option<Replicas>,
    /// `accelerator`.
    pub accelerator: Option<Arc<str>>,
}

/// A scale target, today a `Deployment`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetObject {
    /// Namespace, kind and name.
    pub key: TargetKey,
    /// `metadata.uid`: tells a re-created target from the one before.
    pub uid: Arc<str>,
    /// Whether it is being deleted.
    pub lifecycle: Lifecycle,
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`; 0 until the workload controller has seen it.
    pub observed_generation: i64,
    /// `spec.replicas`; absent means one.
    pub spec_replicas: Option<Replicas>,
    /// `status.replicas`.
    pub status_replicas: Replicas,
    /// `status.readyReplicas`.
    pub ready_replicas: Replicas,
    /// Where its pods may run.
    pub placement: Placement,
}

/// The part of a pod template's placement that can name an accelerator. Keys that
/// [`names_accelerator`](super::accelerator::names_accelerator) does not know need not be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// `nodeSelector`.
    pub selector: BTreeMap<Arc<str>, Arc<str>>,
    /// Expressions of the required node affinity, in order.
    pub required: Vec<NodeExpression>,
    /// Expressions of the preferred node affinity, in order.
    pub preferred: Vec<NodeExpression>,
}

/// One `matchExpressions` entry of a node affinity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeExpression {
    /// Label of the node.
    pub key: Arc<str>,
    /// `In`, `Exists` and so on.
    pub operator: Arc<str>,
    /// Values, in order.
    pub values: Vec<Arc<str>>,
}

/// The owner of an object that has the controller flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    /// Kind of the owner.
    pub kind: Arc<str>,
    /// Name of the owner, in the same namespace.
    pub name: Arc<str>,
    /// `uid` of the owner.
    pub uid: Arc<str>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodObject {
    /// Kubernetes namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Who controls it.
    pub controller: Option<Controller>,
    /// Whether its Ready condition is true.
    pub readiness: Readiness,
    /// `metadata.creationTimestamp`.
    pub created: WallTime,
    /// Whether it is being deleted.
    pub lifecycle: Lifecycle,
}

/// A `ReplicaSet`, which stands between a Deployment and its pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaSetObject {
    /// Kubernetes namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Who controls it.
    pub controller: Option<Controller>,
}
