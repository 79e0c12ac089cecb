//! What is kept of Kubernetes objects: the few fields that a decision rests on.

use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;

use super::accelerator::Placement;
use super::key::{ObjectLabels, TargetKey, TargetKind, VariantKey};
use super::snapshot::{Readiness, VariantPolicy};
use super::units::Replicas;
use super::workload::ReplicaTemplate;
use wva_base::moment::WallTime;

/// Whether an object is on its way out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Lifecycle {
    /// It is not.
    #[default]
    Live,
    /// It carries a deletion timestamp.
    Deleting,
    /// A pod that has come to its end, evicted or failed or done. It stays as a record, and never
    /// serves again.
    Ended,
}

/// A `VariantAutoscaling`.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What it states for its own policy.
    pub policy: VariantPolicy,
}

/// `scaleTargetRef` as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetReference {
    /// `apiVersion`; absent means that of the kind.
    pub api_version: Option<Arc<str>>,
    /// `kind`; empty, as in old objects, means `Deployment`.
    pub kind: Arc<str>,
    /// `name`, in the namespace of the object.
    pub name: Arc<str>,
}

impl TargetReference {
    /// The target in `namespace`; `None` if the kind needs an `apiVersion` to be known by, or what is
    /// written is none.
    pub fn resolve(&self, namespace: &Arc<str>) -> Option<TargetKey> {
        let kind = if self.kind.is_empty() { "Deployment" } else { &self.kind };
        let group = match self.group_version() {
            Some((group, _)) => group,
            None if self.is_versioned() => return None,
            None if kind == "LeaderWorkerSet" => TargetKind::LEADER_WORKER_SET,
            None if matches!(kind, "Deployment" | "StatefulSet") => TargetKind::APPS,
            None => return None,
        };
        is_kind(kind).then(|| {
            let kind = TargetKind::of(&Arc::from(group), &Arc::from(kind));
            TargetKey::new(Arc::clone(namespace), kind, Arc::clone(&self.name))
        })
    }

    fn is_versioned(&self) -> bool {
        self.api_version.as_deref().is_some_and(|version| !version.is_empty())
    }

    /// API group, empty for the core, and version, where `apiVersion` states them.
    pub fn group_version(&self) -> Option<(&str, &str)> {
        group_version(self.api_version.as_deref()?)
    }
}

/// API group, empty for the core, and version of an `apiVersion`. They become part of a path, so that nothing but names
/// passes.
pub fn group_version(text: &str) -> Option<(&str, &str)> {
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    let is_name = |text: &str, signs: &[u8]| {
        text.len() <= MAX_NAME
            && text.bytes().all(|letter| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || signs.contains(&letter)
            })
    };
    let fits = !version.is_empty() && is_name(version, b"") && is_name(group, b".-");
    (fits && !group.starts_with('.')).then_some((group, version))
}

/// Longest API group or kind, by the rules of Kubernetes.
const MAX_NAME: usize = 253;

fn is_kind(text: &str) -> bool {
    text.len() <= MAX_NAME && text.bytes().all(|letter| letter.is_ascii_alphanumeric())
}

/// `status.desiredOptimizedAlloc` as stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredAllocation {
    /// `numReplicas`; `None` if nothing was ever decided.
    pub desired: Option<Replicas>,
    /// `accelerator`.
    pub accelerator: Option<Arc<str>>,
}

/// A scale target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetObject {
    /// Namespace, kind and name.
    pub key: TargetKey,
    /// `metadata.uid`: differs between a re-created target and the one before.
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
    /// Those of `status.replicas` that still run an older template; all for kinds that may have them and do
    /// not report them, zero for kinds that never do.
    pub outdated_replicas: Replicas,
    /// `status.readyReplicas`.
    pub ready_replicas: Replicas,
    /// Where its pods may run.
    pub placement: Placement,
    /// One replica, as its pod template describes it.
    pub template: ReplicaTemplate,
    /// Labels of the pods that answer requests; `None` where not known.
    pub pod_labels: Option<Arc<ObjectLabels>>,
    /// Who controls it: a custom kind may stand above.
    pub controller: Option<ControllerRef>,
}

/// The owner of an object that has the controller flag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControllerRef {
    /// API group of the owner.
    pub group: Arc<str>,
    /// Kind of the owner.
    pub kind: Arc<str>,
    /// Name of the owner, in the same namespace.
    pub name: Arc<str>,
    /// `uid` of the owner.
    pub uid: Arc<str>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodObject {
    /// Kubernetes namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Unique id: another pod may have the name later.
    pub uid: Arc<str>,
    /// Who controls it.
    pub controller: Option<ControllerRef>,
    /// Whether its Ready condition is true.
    pub readiness: Readiness,
    /// `metadata.creationTimestamp`.
    pub created: WallTime,
    /// When its Ready condition became true; `None` while it is not.
    pub ready_since: Option<WallTime>,
    /// The node that it is bound to.
    pub node: Option<Arc<str>>,
    /// Its labels; pods of one template share them.
    pub labels: Arc<ObjectLabels>,
    /// Its address in the cluster; `None` until it has one.
    pub address: Option<IpAddr>,
    /// Whether it is being deleted.
    pub lifecycle: Lifecycle,
    /// The annotation `aibrix.ai/draining`.
    pub drain: Drain,
    /// The annotation `controller.kubernetes.io/pod-deletion-cost`.
    pub deletion_cost: DeletionCost,
    /// A replica that is this pod; `None` where it holds neither GPUs nor claims.
    pub replica: Option<Arc<ReplicaTemplate>>,
}

/// What says how early a pod goes when its `ReplicaSet` has too many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DeletionCost {
    /// Nothing does.
    #[default]
    None,
    /// The controller of this field manager has chosen it.
    Chosen(Arc<str>),
    /// Something else has given it a cost.
    Foreign,
}

/// Whether the controller above a pod lets it finish its requests before it deletes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Drain {
    /// It does not.
    #[default]
    None,
    /// It does: routers no longer choose the pod.
    Draining,
}

/// A `ReplicaSet`, which stands between a Deployment and its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaSetObject {
    /// Kubernetes namespace.
    pub namespace: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Who controls it.
    pub controller: Option<ControllerRef>,
}
