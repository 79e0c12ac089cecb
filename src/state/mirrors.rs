//! The mirrors of all kinds, and the questions that are asked of several of them.

use std::sync::Arc;

use crate::cluster::mirror::{Mirror, MirrorWriter, ObjectKey, SyncState};
use crate::cluster::project::config_map::ConfigMapObject;
use crate::cluster::project::gpu::{HoldingPodObject, NodeObject};
use crate::cluster::project::pool::{InferencePools, PoolObject};
use crate::cluster::project::scaler::ScalerObject;
use crate::cluster::project::service::ServiceObject;
use crate::cluster::project::service_monitor::ServiceMonitorObject;
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::scale::Scales;
use crate::kit::{Reader, WatchedKind};
use crate::policy::actuation::Scalers;
use crate::policy::filter::{Admission, NamespaceObject, WatchScope};
use crate::policy::key::{TargetKey, VariantKey};
use crate::policy::object::{
    ControllerRef, Lifecycle, PodObject, ReplicaSetObject, SpecReading, TargetObject,
};
use crate::policy::ownership::Holding;
use crate::policy::units::Replicas;
use crate::policy::variant;
use crate::settings::pool_group::PoolGroup;
use wva_base::moment::Moment;

mod gpus;
mod routers;
mod targets;

#[cfg(test)]
pub(crate) mod tests;

pub use routers::NoRouter;
pub use targets::TargetLookup;

/// Kinds that settings depend on.
const SETTINGS: [WatchedKind; 3] = [
    WatchedKind::ConfigMap,
    WatchedKind::SystemConfigMap,
    WatchedKind::Namespace,
];

/// How well one kind is seen.
#[derive(Debug, Clone)]
pub struct SyncStatus {
    /// The kind.
    pub kind: WatchedKind,
    /// Whether its mirror has been complete, or the kind is not served.
    pub sync: SyncState,
    /// When its watcher last heard from the API server.
    pub last: Option<Moment>,
    /// Why it has not since.
    pub trouble: Option<Arc<str>>,
}

/// The halves of all mirrors that their watchers write.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is the field of `Mirrors` of that name")]
pub struct MirrorWriters {
    pub variants: Arc<MirrorWriter<VariantRecord>>,
    pub deployments: Arc<MirrorWriter<TargetObject>>,
    pub stateful_sets: Arc<MirrorWriter<TargetObject>>,
    pub leader_worker_sets: Arc<MirrorWriter<TargetObject>>,
    pub config_maps: Arc<MirrorWriter<ConfigMapObject>>,
    pub system_config_maps: Arc<MirrorWriter<ConfigMapObject>>,
    pub namespaces: Arc<MirrorWriter<NamespaceObject>>,
    pub pods: Arc<MirrorWriter<PodObject>>,
    pub replica_sets: Arc<MirrorWriter<ReplicaSetObject>>,
    pub nodes: Arc<MirrorWriter<NodeObject>>,
    pub holding_pods: Arc<MirrorWriter<HoldingPodObject>>,
    pub pools_v1: Arc<MirrorWriter<PoolObject>>,
    pub pools_v1alpha2: Arc<MirrorWriter<PoolObject>>,
    pub horizontal_pod_autoscalers: Arc<MirrorWriter<ScalerObject>>,
    pub scaled_objects: Arc<MirrorWriter<ScalerObject>>,
    pub services: Arc<MirrorWriter<ServiceObject>>,
    pub service_monitors: Arc<MirrorWriter<ServiceMonitorObject>>,
    pub authentication: Arc<MirrorWriter<ConfigMapObject>>,
}

impl Default for MirrorWriters {
    fn default() -> Self {
        Self {
            variants: Arc::new(MirrorWriter::indexed(|record| {
                Some(object_key(&target_of(record)?))
            })),
            deployments: Arc::new(MirrorWriter::indexed(workload_owner)),
            stateful_sets: Arc::new(MirrorWriter::indexed(workload_owner)),
            leader_worker_sets: Arc::new(MirrorWriter::indexed(workload_owner)),
            config_maps: Arc::default(),
            system_config_maps: Arc::default(),
            namespaces: Arc::default(),
            pods: Arc::new(MirrorWriter::indexed(|pod| {
                owner(&pod.namespace, pod.controller.as_ref())
            })),
            replica_sets: Arc::new(MirrorWriter::indexed(|set| {
                owner(&set.namespace, set.controller.as_ref())
            })),
            nodes: Arc::default(),
            holding_pods: Arc::default(),
            pools_v1: Arc::default(),
            pools_v1alpha2: Arc::default(),
            horizontal_pod_autoscalers: Arc::new(MirrorWriter::indexed(scaled)),
            scaled_objects: Arc::new(MirrorWriter::indexed(scaled)),
            services: Arc::default(),
            service_monitors: Arc::default(),
            authentication: Arc::default(),
        }
    }
}

/// One mirror per kind.
#[derive(Debug, Clone)]
pub struct Mirrors {
    /// VariantAutoscalings, found by the target they name.
    pub variants: Mirror<VariantRecord>,
    /// Deployments, found by what controls them.
    pub deployments: Mirror<TargetObject>,
    /// StatefulSets, found by what controls them.
    pub stateful_sets: Mirror<TargetObject>,
    /// LeaderWorkerSets, found by what controls them.
    pub leader_worker_sets: Mirror<TargetObject>,
    /// What the scale subresources of targets of other kinds said last.
    pub scales: Reader<Scales>,
    /// ConfigMaps with settings.
    pub config_maps: Mirror<ConfigMapObject>,
    /// Those of the controller's own namespace, where another one is watched.
    pub system_config_maps: Mirror<ConfigMapObject>,
    /// Namespaces.
    pub namespaces: Mirror<NamespaceObject>,
    /// Pods, found by what controls them.
    pub pods: Mirror<PodObject>,
    /// ReplicaSets, found by what controls them.
    pub replica_sets: Mirror<ReplicaSetObject>,
    /// Nodes with GPUs, where somebody must know them.
    pub nodes: Mirror<NodeObject>,
    /// Pods of all namespaces that hold GPUs, where somebody must know them.
    pub holding_pods: Mirror<HoldingPodObject>,
    /// InferencePools of both groups.
    pub pools: InferencePools,
    /// HorizontalPodAutoscalers, found by the target they scale.
    pub horizontal_pod_autoscalers: Mirror<ScalerObject>,
    /// KEDA's ScaledObjects, found by the target they scale.
    pub scaled_objects: Mirror<ScalerObject>,
    /// Services with a port for metrics.
    pub services: Mirror<ServiceObject>,
    /// ServiceMonitors.
    pub service_monitors: Mirror<ServiceMonitorObject>,
    /// The ConfigMap that says how the API server vouches for others, where external metrics are
    /// served.
    pub authentication: Mirror<ConfigMapObject>,
    scope: WatchScope,
    door: ExternalMetricsDoor,
}

/// Whether external metrics are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExternalMetricsDoor {
    /// They are not.
    Closed,
    /// They are, so it matters whom the API server vouches for.
    Open,
}

impl Mirrors {
    /// The mirrors of these writers; `scope` says which variants are ours.
    pub fn new(
        writers: &MirrorWriters,
        scales: Reader<Scales>,
        scope: WatchScope,
        group: PoolGroup,
        door: ExternalMetricsDoor,
    ) -> Self {
        Self {
            variants: writers.variants.reader(),
            deployments: writers.deployments.reader(),
            stateful_sets: writers.stateful_sets.reader(),
            leader_worker_sets: writers.leader_worker_sets.reader(),
            scales,
            config_maps: writers.config_maps.reader(),
            system_config_maps: writers.system_config_maps.reader(),
            namespaces: writers.namespaces.reader(),
            pods: writers.pods.reader(),
            replica_sets: writers.replica_sets.reader(),
            nodes: writers.nodes.reader(),
            holding_pods: writers.holding_pods.reader(),
            pools: InferencePools {
                group,
                v1: writers.pools_v1.reader(),
                v1alpha2: writers.pools_v1alpha2.reader(),
            },
            horizontal_pod_autoscalers: writers.horizontal_pod_autoscalers.reader(),
            scaled_objects: writers.scaled_objects.reader(),
            services: writers.services.reader(),
            service_monitors: writers.service_monitors.reader(),
            authentication: writers.authentication.reader(),
            scope,
            door,
        }
    }

    /// The same, where external metrics are served.
    #[cfg(test)]
    pub(crate) fn with_door(mut self, door: ExternalMetricsDoor) -> Self {
        self.door = door;
        self
    }

    /// The part of the cluster that is mirrored.
    pub fn scope(&self) -> &WatchScope {
        &self.scope
    }

    /// The count that the status of an object holds. The board may be behind it.
    pub fn stored(&self, key: &VariantKey) -> Option<Replicas> {
        self.managed(key)?.object.stored.desired
    }

    /// The object of a variant, if this controller manages it.
    pub fn managed(&self, key: &VariantKey) -> Option<Arc<VariantRecord>> {
        let record = self.variants.get(&variant_object_key(key))?;
        self.admits(&record).then_some(record)
    }

    fn admits(&self, record: &VariantRecord) -> bool {
        self.admission(record) == Some(Admission::Ours)
    }

    /// `None` for what is nobody's, or not known yet: whether its namespace is excluded must be known
    /// first, and what is going is not ours.
    fn admission(&self, record: &VariantRecord) -> Option<Admission> {
        let undecided = self.scope.watch_namespace.is_none() && !self.namespaces.synced();
        if undecided || record.object.lifecycle == Lifecycle::Deleting {
            return None;
        }
        let key = &record.object.key;
        let namespace = self
            .namespaces
            .get(&ObjectKey::new("", Arc::clone(&key.namespace)));
        let instance = record.instance.as_deref();
        let namespace = namespace.as_deref();
        Some(self.scope.admits(&key.namespace, instance, namespace))
    }

    /// Whether somebody scales the target that an object names: we do, or another instance that has
    /// written its status.
    fn is_handled(&self, record: &VariantRecord) -> bool {
        let mut owners = record.owners.iter();
        match self.admission(record) {
            Some(Admission::Ours) => true,
            Some(Admission::ForeignInstance) => owners.any(|owner| owner.holds == Holding::Status),
            Some(Admission::OutsideScope | Admission::Excluded) | None => false,
        }
    }

    /// All variants of this controller and of other instances that name a target and make sense,
    /// sorted: one that does not scales nothing, and takes nothing from others.
    pub fn claimants(&self, target: &TargetKey) -> Vec<VariantKey> {
        let naming = self.variants.naming(&object_key(target));
        naming
            .into_iter()
            // An object of another kind may have the same name.
            .filter(|(_, record)| target_of(record).as_ref() == Some(target))
            .filter(|(_, record)| self.is_handled(record) && variant::read(&record.object).is_ok())
            .map(|(_, record)| record.object.key.clone())
            .collect()
    }

    /// The target that a variant names, if its kind can be scaled.
    pub fn target_of(&self, record: &VariantRecord) -> Option<TargetKey> {
        target_of(record)
    }

    /// What scales a target, sorted. Not known until both kinds have been listed once; a kind that the
    /// cluster does not serve has no objects.
    pub fn scalers(&self, target: &TargetKey) -> Scalers {
        let mirrors = [&self.horizontal_pod_autoscalers, &self.scaled_objects];
        if mirrors
            .iter()
            .any(|mirror| mirror.sync() == SyncState::Never)
        {
            return Scalers::Unknown;
        }
        let naming = mirrors.map(|mirror| mirror.naming(&object_key(target)));
        let objects = naming.iter().flatten().map(|(_, object)| object);
        let ours = objects.filter(|object| {
            object.target.as_ref() == Some(target) && object.lifecycle == Lifecycle::Live
        });
        Scalers::Known(ours.map(|object| object.scaler.clone()).collect())
    }

    /// A ConfigMap with settings.
    pub fn config_map(&self, key: &ObjectKey) -> Option<Arc<ConfigMapObject>> {
        self.config_maps
            .get(key)
            .or_else(|| self.system_config_maps.get(key))
    }

    /// All ConfigMaps with settings, or `None` until they and what says which of them count have
    /// been listed once: what is missing then may exist.
    pub fn all_config_maps(&self) -> Option<Vec<Arc<ConfigMapObject>>> {
        let complete = self
            .contacts()
            .filter(|contact| SETTINGS.contains(&contact.kind))
            .all(|contact| contact.sync != SyncState::Never);
        let listed = [&self.config_maps, &self.system_config_maps].map(Mirror::all);
        let objects = listed.into_iter().flatten().map(|(_, object)| object);
        complete.then(|| objects.collect())
    }

    /// Whether objects of a kind are asked for in this scope.
    pub fn is_watched(&self, kind: WatchedKind) -> bool {
        match kind {
            // Namespaces cannot be listed with rights in one of them.
            WatchedKind::Namespace => self.scope.watch_namespace.is_none(),
            WatchedKind::SystemConfigMap => self.scope.system_lies_outside(),
            WatchedKind::AuthenticationConfigMap => self.door == ExternalMetricsDoor::Open,
            WatchedKind::InferencePoolV1 => self.pools.group.includes_stable(),
            WatchedKind::InferencePoolV1Alpha2 => self.pools.group.includes_alpha(),
            _ => true,
        }
    }

    /// Every kind that is watched in this scope.
    pub fn contacts(&self) -> impl Iterator<Item = SyncStatus> {
        fn contact<V>(kind: WatchedKind, mirror: &Mirror<V>) -> SyncStatus {
            SyncStatus {
                kind,
                sync: mirror.sync(),
                last: mirror.last_contact(),
                trouble: mirror.trouble(),
            }
        }
        [
            contact(WatchedKind::VariantAutoscaling, &self.variants),
            contact(WatchedKind::Deployment, &self.deployments),
            contact(WatchedKind::StatefulSet, &self.stateful_sets),
            contact(WatchedKind::LeaderWorkerSet, &self.leader_worker_sets),
            contact(WatchedKind::ConfigMap, &self.config_maps),
            contact(WatchedKind::SystemConfigMap, &self.system_config_maps),
            contact(WatchedKind::Namespace, &self.namespaces),
            contact(WatchedKind::Pod, &self.pods),
            contact(WatchedKind::ReplicaSet, &self.replica_sets),
            contact(WatchedKind::Node, &self.nodes),
            contact(WatchedKind::HoldingPod, &self.holding_pods),
            contact(WatchedKind::InferencePoolV1, &self.pools.v1),
            contact(WatchedKind::InferencePoolV1Alpha2, &self.pools.v1alpha2),
            contact(
                WatchedKind::HorizontalPodAutoscaler,
                &self.horizontal_pod_autoscalers,
            ),
            contact(WatchedKind::ScaledObject, &self.scaled_objects),
            contact(WatchedKind::Service, &self.services),
            contact(WatchedKind::ServiceMonitor, &self.service_monitors),
            contact(WatchedKind::AuthenticationConfigMap, &self.authentication),
        ]
        .into_iter()
        .filter(|contact| self.is_watched(contact.kind))
    }
}

/// Key of a variant's object in its mirror.
pub fn variant_object_key(key: &VariantKey) -> ObjectKey {
    ObjectKey::new(Arc::clone(&key.namespace), Arc::clone(&key.name))
}

/// Key of what controls an object, in the mirror of its kind.
fn owner(namespace: &Arc<str>, controller: Option<&ControllerRef>) -> Option<ObjectKey> {
    controller.map(|owner| ObjectKey::new(Arc::clone(namespace), Arc::clone(&owner.name)))
}

fn workload_owner(workload: &TargetObject) -> Option<ObjectKey> {
    owner(&workload.key.namespace, workload.controller.as_ref())
}

fn scaled(scaler: &ScalerObject) -> Option<ObjectKey> {
    scaler.target.as_ref().map(object_key)
}

fn object_key(target: &TargetKey) -> ObjectKey {
    ObjectKey::new(Arc::clone(&target.namespace), Arc::clone(&target.name))
}

/// The target that an object names, if its kind can be scaled.
pub fn target_of(record: &VariantRecord) -> Option<TargetKey> {
    match &record.object.spec {
        SpecReading::Read(spec) => spec.target.resolve(&record.object.key.namespace),
        SpecReading::Malformed { .. } => None,
    }
}
