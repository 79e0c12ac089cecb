//! Scale targets of every kind, and what lies below and above them.

use std::sync::Arc;

use super::{Mirrors, object_key};
use crate::cluster::mirror::{Mirror, ObjectKey, SyncState};
use crate::cluster::scale::ScaleReading;
use crate::policy::attribution::{Controlled, MAX_DEPTH, OwnerIdentity, pods_of};
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::object::{ControllerRef, PodObject, TargetObject};
use crate::policy::snapshot::{PodView, Readiness};
use crate::policy::units::Replicas;
use crate::policy::variant::TargetLookupRef;

/// The outcome of looking a target up.
#[derive(Debug, Clone)]
pub enum TargetLookup {
    /// Here it is.
    Found(Arc<TargetObject>),
    /// There is none.
    Missing,
    /// There was none when the API server was last heard of.
    Unheard,
    /// Nobody has looked yet.
    Unsynced,
    /// Its kind cannot be scaled, for this reason.
    Unscalable(Arc<str>),
}

impl TargetLookup {
    /// The target, if it was found.
    pub fn found(&self) -> Option<&Arc<TargetObject>> {
        match self {
            Self::Found(target) => Some(target),
            Self::Missing | Self::Unheard | Self::Unsynced | Self::Unscalable(_) => None,
        }
    }

    /// The same, as decisions see it.
    pub fn lookup(&self) -> TargetLookupRef<'_> {
        match self {
            Self::Found(target) => TargetLookupRef::Found(target),
            Self::Missing => TargetLookupRef::Missing,
            Self::Unheard => TargetLookupRef::Unheard,
            Self::Unsynced => TargetLookupRef::Unsynced,
            Self::Unscalable(why) => TargetLookupRef::Unscalable(why),
        }
    }
}

impl Mirrors {
    /// Looks a target up.
    pub fn sight(&self, key: &TargetKey) -> TargetLookup {
        match &key.kind {
            TargetKind::Deployment => sight(&self.deployments, key),
            TargetKind::StatefulSet => sight(&self.stateful_sets, key),
            TargetKind::LeaderWorkerSet => sight(&self.leader_worker_sets, key),
            TargetKind::Other(_) => match self.scales.load().get(key) {
                Some(ScaleReading::Found(target)) => self
                    .with_ready(&target.object)
                    .map_or(TargetLookup::Unsynced, |target| {
                        TargetLookup::Found(Arc::new(target))
                    }),
                Some(ScaleReading::Missing) => TargetLookup::Missing,
                Some(ScaleReading::Unheard) => TargetLookup::Unheard,
                Some(ScaleReading::Unscalable(why)) => TargetLookup::Unscalable(Arc::clone(why)),
                None => TargetLookup::Unsynced,
            },
        }
    }

    /// A scale subresource does not say how many replicas are ready; the pods do, once they are known.
    fn with_ready(&self, target: &TargetObject) -> Option<TargetObject> {
        let pods = self.pods(target)?;
        let ready = pods
            .iter()
            .filter(|pod| pod.readiness == Readiness::Ready)
            .count();
        Some(TargetObject {
            ready_replicas: Replicas(u32::try_from(ready).unwrap_or(u32::MAX)),
            ..target.clone()
        })
    }

    /// The live pods of a target; `None` until everything that may stand between has been listed
    /// once.
    pub fn pods(&self, target: &TargetObject) -> Option<Arc<[PodView]>> {
        let sets = self.stateful_sets.synced();
        let complete = match &target.key.kind {
            TargetKind::Deployment => self.replica_sets.synced(),
            TargetKind::StatefulSet => true,
            TargetKind::LeaderWorkerSet => sets,
            TargetKind::Other(_) => sets && self.replica_sets.synced() && self.deployments.synced(),
        };
        (complete && self.pods.synced()).then(|| {
            let target = OwnerIdentity {
                namespace: Arc::clone(&target.key.namespace),
                name: Arc::clone(&target.key.name),
                uid: Arc::clone(&target.uid),
            };
            pods_of(target, |owner| self.controlled(owner))
        })
    }

    fn controlled(&self, owner: &OwnerIdentity) -> Controlled {
        let key = ObjectKey::new(Arc::clone(&owner.namespace), Arc::clone(&owner.name));
        let is_its = |controller: Option<&ControllerRef>| {
            controller.is_some_and(|controller| controller.uid == owner.uid)
        };
        let pods = self.pods.naming(&key).into_iter().map(|(_, pod)| pod);
        let sets = self.replica_sets.naming(&key).into_iter();
        let sets = sets
            .filter(|(_, set)| is_its(set.controller.as_ref()))
            .map(|(key, set)| owned(&key, &set.uid));
        let workloads = [
            &self.deployments,
            &self.stateful_sets,
            &self.leader_worker_sets,
        ];
        let workloads = workloads.into_iter().flat_map(|mirror| mirror.naming(&key));
        let workloads = workloads
            .filter(|(_, workload)| is_its(workload.controller.as_ref()))
            .map(|(key, workload)| owned(&key, &workload.uid));
        Controlled {
            pods: pods
                .filter(|pod| is_its(pod.controller.as_ref()))
                .map(|pod| self.with_those_it_leads(pod))
                .collect(),
            owners: sets.chain(workloads).collect(),
        }
    }

    /// A pod that leads others is ready when they are: an engine on several hosts needs all of them.
    pub(super) fn with_those_it_leads(&self, pod: Arc<PodObject>) -> Arc<PodObject> {
        let key = ObjectKey::new(Arc::clone(&pod.namespace), Arc::clone(&pod.name));
        let is_led = |set: &TargetObject| set.controller.as_ref().is_some_and(is_pod);
        let lacks = |set: &TargetObject| {
            let wanted = set.spec_replicas.unwrap_or(Replicas::ONE);
            set.ready_replicas < wanted
        };
        let mut sets = self.stateful_sets.naming(&key).into_iter();
        if !sets.any(|(_, set)| is_led(&set) && lacks(&set)) {
            return pod;
        }
        Arc::new(PodObject {
            readiness: Readiness::NotReady,
            ready_since: None,
            ..(*pod).clone()
        })
    }

    /// Everything from a controller upwards that a variant may name.
    pub fn targets_above(
        &self,
        namespace: &Arc<str>,
        controller: &ControllerRef,
    ) -> Vec<TargetKey> {
        let mut targets = Vec::new();
        let mut next = Some(controller.clone());
        while let Some(owner) = next.filter(|_| targets.len() < MAX_DEPTH) {
            let kind = TargetKind::of(&owner.group, &owner.kind);
            let target = TargetKey::new(Arc::clone(namespace), kind, Arc::clone(&owner.name));
            next = self.controller_of(&target);
            targets.push(target);
        }
        targets
    }

    fn controller_of(&self, object: &TargetKey) -> Option<ControllerRef> {
        let key = object_key(object);
        let workload = |mirror: &Mirror<TargetObject>| mirror.get(&key)?.controller.clone();
        match &object.kind {
            TargetKind::Deployment => workload(&self.deployments),
            TargetKind::StatefulSet => workload(&self.stateful_sets),
            TargetKind::LeaderWorkerSet => workload(&self.leader_worker_sets),
            TargetKind::Other(other) if &*other.kind == "ReplicaSet" => {
                self.replica_sets.get(&key)?.controller.clone()
            }
            // The leader of a group, from its workers.
            TargetKind::Other(other) if other.group.is_empty() && &*other.kind == "Pod" => {
                self.pods.get(&key)?.controller.clone()
            }
            TargetKind::Other(_) => None,
        }
    }
}

fn is_pod(controller: &ControllerRef) -> bool {
    controller.group.is_empty() && &*controller.kind == "Pod"
}

fn owned(key: &ObjectKey, uid: &Arc<str>) -> OwnerIdentity {
    OwnerIdentity {
        namespace: Arc::clone(&key.namespace),
        name: Arc::clone(&key.name),
        uid: Arc::clone(uid),
    }
}

fn sight(mirror: &Mirror<TargetObject>, key: &TargetKey) -> TargetLookup {
    match (mirror.get(&object_key(key)), mirror.sync()) {
        (Some(target), _) => TargetLookup::Found(target),
        (None, SyncState::Never) => TargetLookup::Unsynced,
        // It may have been made since the API server was last heard of.
        (None, _) if mirror.trouble().is_some() => TargetLookup::Unheard,
        (None, SyncState::Complete) => TargetLookup::Missing,
        (None, SyncState::KindAbsent) => TargetLookup::Unscalable(
            format!(
                "the API server does not serve {}; install the definition of that kind, which is looked for until it is there, or correct scaleTargetRef",
                key.kind
            )
            .into(),
        ),
    }
}

#[cfg(test)]
mod tests;
