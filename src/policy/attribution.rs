//! Which variant a pod belongs to: pod, ReplicaSet, Deployment, variant. A pod whose chain is broken
//! anywhere belongs to none, and its series count for nobody.

use std::sync::Arc;

use super::key::{TargetKey, TargetKind};
use super::object::{Lifecycle, PodObject, ReplicaSetObject, TargetObject};
use super::snapshot::PodView;

/// The target that a pod belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attributed {
    /// The target.
    pub target: TargetKey,
    /// Its uid, as its ReplicaSet knows it.
    pub uid: Arc<str>,
}

/// Why a pod belongs to no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unattributed {
    /// Nothing controls it.
    NoController,
    /// It is not controlled by a ReplicaSet.
    ForeignController,
    /// Its ReplicaSet is not known, or is another one of the same name.
    UnknownReplicaSet,
    /// Its ReplicaSet is not controlled by a Deployment.
    NoDeployment,
}

impl Unattributed {
    /// The value of a `reason` label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoController => "no_controller",
            Self::ForeignController => "foreign_controller",
            Self::UnknownReplicaSet => "unknown_replica_set",
            Self::NoDeployment => "no_deployment",
        }
    }
}

/// Follows the controllers of a pod up to its target. `replica_set` looks one up by namespace and
/// name; identities are compared, so that a re-created owner does not inherit foreign pods.
///
/// # Errors
/// Where the chain breaks.
pub fn attribute<'a>(
    pod: &PodObject,
    replica_set: impl FnOnce(&str, &str) -> Option<&'a ReplicaSetObject>,
) -> Result<Attributed, Unattributed> {
    let owner = pod.controller.as_ref().ok_or(Unattributed::NoController)?;
    if &*owner.kind != "ReplicaSet" {
        return Err(Unattributed::ForeignController);
    }
    let set = replica_set(&pod.namespace, &owner.name)
        .filter(|set| set.uid == owner.uid)
        .ok_or(Unattributed::UnknownReplicaSet)?;
    set.controller
        .as_ref()
        .filter(|controller| &*controller.kind == "Deployment")
        .map(|controller| Attributed {
            target: TargetKey::new(
                Arc::clone(&pod.namespace),
                TargetKind::Deployment,
                Arc::clone(&controller.name),
            ),
            uid: Arc::clone(&controller.uid),
        })
        .ok_or(Unattributed::NoDeployment)
}

/// The live pods among `candidates` that belong to a target, sorted by name.
pub fn pods_of<'a>(
    target: &TargetObject,
    candidates: impl IntoIterator<Item = &'a PodObject>,
    replica_set: impl Fn(&str, &str) -> Option<&'a ReplicaSetObject>,
) -> Arc<[PodView]> {
    let mut pods: Vec<PodView> = candidates
        .into_iter()
        .filter(|pod| pod.lifecycle == Lifecycle::Live)
        .filter(|pod| {
            attribute(pod, &replica_set)
                .is_ok_and(|owner| owner.target == target.key && owner.uid == target.uid)
        })
        .map(|pod| PodView {
            name: Arc::clone(&pod.name),
            readiness: pod.readiness,
            created: pod.created,
        })
        .collect();
    pods.sort_unstable();
    pods.into()
}
