//! Which variant a pod belongs to: pod, ReplicaSet, Deployment, variant. A pod whose chain is broken
//! anywhere belongs to none, and its series count for nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::key::{TargetKey, TargetKind, VariantKey};
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

/// Which variants name which target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    by_target: BTreeMap<TargetKey, BTreeSet<VariantKey>>,
    by_variant: BTreeMap<VariantKey, TargetKey>,
}

impl Claims {
    /// Notes the target that a variant names now; `None` if it names none that can be scaled or is
    /// gone. Returns the other variants that are concerned: those that shared its old target, and
    /// those that share the new one.
    pub fn set(&mut self, variant: &VariantKey, target: Option<TargetKey>) -> BTreeSet<VariantKey> {
        let old = match &target {
            Some(target) => self.by_variant.insert(variant.clone(), target.clone()),
            None => self.by_variant.remove(variant),
        };
        if old == target {
            return BTreeSet::new();
        }
        let mut concerned = BTreeSet::new();
        if let Some(old) = old
            && let Some(claimants) = self.by_target.get_mut(&old)
        {
            claimants.remove(variant);
            concerned.extend(claimants.iter().cloned());
            if claimants.is_empty() {
                self.by_target.remove(&old);
            }
        }
        if let Some(target) = target {
            let claimants = self.by_target.entry(target).or_default();
            concerned.extend(claimants.iter().cloned());
            claimants.insert(variant.clone());
        }
        concerned
    }

    /// All variants that name a target, sorted.
    pub fn of(&self, target: &TargetKey) -> impl Iterator<Item = &VariantKey> {
        self.by_target.get(target).into_iter().flatten()
    }

    /// The one variant that names a target; `None` if none or several do.
    pub fn sole(&self, target: &TargetKey) -> Option<&VariantKey> {
        let mut claimants = self.of(target);
        claimants.next().filter(|_| claimants.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::Claims;
    use crate::policy::key::{TargetKey, TargetKind, VariantKey};

    #[test]
    fn a_change_of_target_concerns_old_and_new_neighbours() {
        let target = |name: &str| Some(TargetKey::new("ns", TargetKind::Deployment, name));
        let key = |name: &str| VariantKey::new("ns", name);
        let mut claims = Claims::default();
        assert!(claims.set(&key("a"), target("d")).is_empty());
        assert!(claims.set(&key("c"), target("e")).is_empty());
        assert_eq!(claims.set(&key("b"), target("d")), [key("a")].into());
        assert!(claims.set(&key("b"), target("d")).is_empty(), "no change");
        assert_eq!(
            claims.set(&key("b"), target("e")),
            [key("a"), key("c")].into()
        );
        assert_eq!(claims.sole(&target("d").unwrap()), Some(&key("a")));
        assert_eq!(claims.set(&key("b"), None), [key("c")].into());
        claims.set(&key("a"), None);
        claims.set(&key("c"), None);
        assert_eq!(claims, Claims::default(), "nothing is left behind");
    }
}
