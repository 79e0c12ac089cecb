//! Which pods belong to a target: those that it controls, by itself or through what it controls. A pod
//! whose chain is broken anywhere belongs to no target, and its series count for none.
//!
//! The leader pod of a group controls the other pods of it, so that of a group its leader alone is
//! found.

use std::sync::Arc;

use super::object::{Lifecycle, PodObject};
use super::snapshot::PodView;

/// Longest chain from a target to its pods.
pub const MAX_DEPTH: usize = 8;

/// One object by name and identity: a re-created one does not inherit what the one before left.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerIdentity {
    /// Kubernetes namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
}

/// What an object controls directly.
#[derive(Debug, Clone, Default)]
pub struct Controlled {
    /// Pods.
    pub pods: Vec<Arc<PodObject>>,
    /// Objects that may control pods.
    pub owners: Vec<OwnerIdentity>,
}

/// The live pods of a target, sorted by name. `controlled` answers what an object controls.
pub fn pods_of(
    target: OwnerIdentity,
    controlled: impl Fn(&OwnerIdentity) -> Controlled,
) -> Arc<[PodView]> {
    let mut pods = Vec::new();
    let mut owners = vec![target];
    for _ in 0..MAX_DEPTH {
        let mut next = Vec::new();
        for owner in &owners {
            let found = controlled(owner);
            pods.extend(found.pods.iter().filter_map(|pod| live(pod)));
            next.extend(found.owners);
        }
        owners = next;
    }
    pods.sort_unstable();
    pods.into()
}

/// A pod as decisions see it, while it lives.
pub fn live(pod: &PodObject) -> Option<PodView> {
    (pod.lifecycle == Lifecycle::Live).then(|| PodView {
        name: Arc::clone(&pod.name),
        readiness: pod.readiness,
        created: pod.created,
        ready_since: pod.ready_since,
        node: pod.node.clone(),
    })
}
