//! Scale targets of every kind, and what lies below and above them.

use std::sync::Arc;

use super::{Mirrors, label_key, object_key};
use crate::cluster::mirror::{Mirror, ObjectKey, SyncState};
use crate::cluster::scale::{ReadTarget, ScaleReading};
use crate::policy::accelerator::Placement;
use crate::policy::attribution::{Controlled, MAX_DEPTH, OwnerIdentity, live, pods_of};
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::object::{ControllerRef, PodObject, TargetObject};
use crate::policy::params::{LabelRequirement, LabelSelector};
use crate::policy::pod_template::role_of;
use crate::policy::snapshot::{PodView, Readiness};
use crate::policy::units::Replicas;
use crate::policy::variant::TargetLookupRef;
use crate::policy::workload::ReplicaTemplate;

/// The outcome of looking a target up.
#[derive(Debug, Clone)]
pub enum TargetLookup {
    /// Here it is.
    Found(Arc<TargetObject>),
    /// There is none.
    Missing,
    /// There was none when the API server last answered.
    Unanswered,
    /// There was no look yet.
    Unsynced,
    /// Its kind cannot be scaled, for this reason.
    Unscalable(Arc<str>),
}

impl TargetLookup {
    /// The target, if it was found.
    pub fn found(&self) -> Option<&Arc<TargetObject>> {
        match self {
            Self::Found(target) => Some(target),
            Self::Missing | Self::Unanswered | Self::Unsynced | Self::Unscalable(_) => None,
        }
    }

    /// The same, as decisions see it.
    pub fn lookup(&self) -> TargetLookupRef<'_> {
        match self {
            Self::Found(target) => TargetLookupRef::Found(target),
            Self::Missing => TargetLookupRef::Missing,
            Self::Unanswered => TargetLookupRef::Unanswered,
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
                    .with_pods(target)
                    .map_or(TargetLookup::Unsynced, |target| TargetLookup::Found(Arc::new(target))),
                Some(ScaleReading::Missing) => TargetLookup::Missing,
                Some(ScaleReading::Unanswered) => TargetLookup::Unanswered,
                Some(ScaleReading::Unscalable(why)) => TargetLookup::Unscalable(Arc::clone(why)),
                None => TargetLookup::Unsynced,
            },
        }
    }

    /// A scale subresource says neither how many replicas are ready nor what one of them is; the pods do, once they
    /// are known. The newest shows what the next replica will be.
    fn with_pods(&self, read: &ReadTarget) -> Option<TargetObject> {
        let target = &read.object;
        let pods = self.pods(target)?;
        let ready = pods.iter().filter(|pod| pod.readiness == Readiness::Ready).count();
        let newest = pods.iter().max_by_key(|pod| (pod.created, &pod.name));
        let newest = newest.filter(|_| read.service.is_none());
        let newest = newest.and_then(|pod| {
            let key = ObjectKey::new(Arc::clone(&target.key.namespace), Arc::clone(&pod.name));
            self.pods.get(&key)
        });
        let mut target = TargetObject {
            ready_replicas: Replicas(u32::try_from(ready).unwrap_or(u32::MAX)),
            ..target.clone()
        };
        if let Some(pod) = newest {
            (target.template, target.placement) = self.replica_of(&target, &pod);
        }
        Some(target)
    }

    /// One replica, by its pod that answers requests: as the watched workload above it describes it, or else that pod.
    /// What another kind controls may be one of several.
    fn replica_of(&self, target: &TargetObject, pod: &PodObject) -> (ReplicaTemplate, Placement) {
        let above = (pod.controller.iter())
            .flat_map(|controller| self.targets_above(&pod.namespace, controller))
            .filter(|target| !matches!(target.kind, TargetKind::Other(_)));
        let workload = above.last().and_then(|key| self.sight(&key).found().cloned());
        let role = role_of(&pod.labels);
        if let Some(workload) = workload {
            let template = ReplicaTemplate { role, ..workload.template.clone() };
            return (template, workload.placement.clone());
        }
        let is_whole = pod.controller.as_ref().is_some_and(|controller| {
            controller.uid == target.uid
                || matches!(&*controller.kind, "ReplicaSet" | "ReplicationController")
        });
        let template = if is_whole {
            pod.replica.as_deref().cloned().unwrap_or_default()
        } else {
            target.template.clone()
        };
        let template = ReplicaTemplate { role, ..template };
        (template, Placement::default())
    }

    /// The targets that a change below a controller concerns.
    pub fn concerned(&self, namespace: &Arc<str>, controller: &ControllerRef) -> Vec<TargetKey> {
        let mut targets = self.targets_above(namespace, controller);
        // A leader is ready with its workers.
        let leaders = targets.iter().filter(|key| is_pod_key(key));
        let leaders = leaders.filter_map(|key| self.pods.get(&object_key(key)));
        let selecting: Vec<TargetKey> = leaders.flat_map(|pod| self.selecting(&pod)).collect();
        targets.extend(selecting);
        targets
    }

    /// The targets without a watcher whose scale subresource selects a pod.
    pub fn selecting(&self, pod: &PodObject) -> Vec<TargetKey> {
        let scales = self.scales.load();
        let near = scales.iter().filter(|(key, _)| key.namespace == pod.namespace);
        let selecting = near.filter(|(_, reading)| match reading {
            ScaleReading::Found(read) => {
                let selector = read.selector.as_ref().and_then(|stated| stated.as_ref().ok());
                selector.is_some_and(|selector| selects(selector, pod))
            }
            ScaleReading::Missing | ScaleReading::Unanswered | ScaleReading::Unscalable(_) => false,
        });
        selecting.map(|(key, _)| key.clone()).collect()
    }

    /// The live pods that a selector chooses, of a group its leader alone.
    fn selected(&self, namespace: &Arc<str>, selector: &LabelSelector) -> Arc<[PodView]> {
        let required = selector.requirements.iter();
        let required = required.filter_map(|one| match &one.holds {
            LabelRequirement::OneOf(values) if values.len() == 1 => {
                values.first().map(|value| label_key(namespace, &one.label, value))
            }
            _ => None,
        });
        // Of many targets in one namespace each would go over the pods of all.
        let rarest = required.min_by_key(|key| self.pods.count_naming(key));
        let pods =
            rarest.map_or_else(|| self.pods.in_namespace(namespace), |key| self.pods.naming(&key));
        let chosen =
            pods.into_iter().filter(|(_, pod)| selects(selector, pod) && !self.is_led(pod));
        let live = chosen.filter_map(|(_, pod)| live(&self.with_those_it_leads(pod)));
        let mut pods: Vec<PodView> = live.collect();
        pods.sort_unstable();
        pods.into()
    }

    /// Whether another pod controls it, as a leader its workers.
    fn is_led(&self, pod: &PodObject) -> bool {
        (pod.controller.iter())
            .flat_map(|controller| self.targets_above(&pod.namespace, controller))
            .any(|key| is_pod_key(&key))
    }

    /// The live pods of a target: those that its scale subresource selects, where it states how, or else those that it
    /// controls. `None` until everything that may stand between has been listed once.
    pub fn pods(&self, target: &TargetObject) -> Option<Arc<[PodView]>> {
        let sets = self.stateful_sets.synced();
        let complete = match &target.key.kind {
            TargetKind::Deployment => self.replica_sets.synced(),
            TargetKind::StatefulSet => true,
            TargetKind::LeaderWorkerSet => sets,
            TargetKind::Other(_) => sets && self.replica_sets.synced() && self.deployments.synced(),
        };
        (complete && self.pods.synced()).then(|| {
            let read = self.read_target(&target.key);
            let stated = read.as_deref().and_then(ReadTarget::reporting);
            if let Some(Ok(selector)) = stated {
                return self.selected(&target.key.namespace, &selector);
            }
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
        let workloads = [&self.deployments, &self.stateful_sets, &self.leader_worker_sets];
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
        Arc::new(PodObject { readiness: Readiness::NotReady, ready_since: None, ..(*pod).clone() })
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
            TargetKind::Other(other) if is_core_pod(&other.group, &other.kind) => {
                self.pods.get(&key)?.controller.clone()
            }
            TargetKind::Other(_) => None,
        }
    }
}

fn is_pod(controller: &ControllerRef) -> bool {
    is_core_pod(&controller.group, &controller.kind)
}

fn is_core_pod(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Pod"
}

fn is_pod_key(key: &TargetKey) -> bool {
    matches!(&key.kind, TargetKind::Other(kind) if is_core_pod(&kind.group, &kind.kind))
}

fn selects(selector: &LabelSelector, pod: &PodObject) -> bool {
    selector.matches(|label| pod.labels.get(label).map(|value| &**value))
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
        // It may have been made since the API server last answered.
        (None, _) if mirror.trouble().is_some() => TargetLookup::Unanswered,
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
