//! The mirrors of all kinds, and the questions that are asked of several of them.

use std::ops::Deref;
use std::sync::Arc;

use crate::cluster::kinds::{WatchCondition, WatchedKind};
use crate::cluster::mirror::{Mirror, MirrorWriter, ObjectKey, SyncState};
use crate::cluster::project::config_map::ConfigMapObject;
use crate::cluster::project::device::{ClaimObject, SliceObject};
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::cluster::project::pool::{InferencePools, PoolObject};
use crate::cluster::project::resource_claim_template::ClaimTemplateObject;
use crate::cluster::project::scaler::ScalerObject;
use crate::cluster::project::service::ServiceObject;
use crate::cluster::project::service_monitor::ServiceMonitorObject;
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::scale::Scales;
use crate::policy::filter::{Admission, NamespaceObject, WatchScope};
use crate::policy::gpu::{GpuPod, NodeView};
use crate::policy::key::{TargetKey, VariantKey};
use crate::policy::object::{
    ControllerRef, Lifecycle, PodObject, ReplicaSetObject, SpecReading, TargetObject,
};
use crate::policy::ownership::Holding;
use crate::policy::scaler::Scalers;
use crate::policy::units::Replicas;
use crate::settings::FeatureSwitch;
use crate::settings::pool_group::PoolGroup;
use wva_base::moment::Moment;
use wva_supervise::Reader;

mod autoscalers;
mod gpus;
mod records;
mod routers;
mod targets;

#[cfg(test)]
pub(crate) mod tests;

pub use targets::TargetLookup;

/// How well one kind is seen.
#[derive(Debug, Clone)]
pub struct SyncStatus {
    /// The kind.
    pub kind: WatchedKind,
    /// Whether its mirror has been complete, or the kind is not served.
    pub sync: SyncState,
    /// When the API server last answered its watcher.
    pub last: Option<Moment>,
    /// Why it has not since.
    pub trouble: Option<Arc<str>>,
}

/// A variant that this controller does not handle.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// The variant.
    pub key: VariantKey,
    /// Why not.
    pub admission: Admission,
    /// Whether another instance has written its status.
    pub is_handled: bool,
}

macro_rules! mirrors {
    ($($(#[$doc:meta])* $field:ident: $view:ty = $kind:ident $(by $index:expr)?;)*) => {
        /// The halves that watchers write.
        #[derive(Debug)]
        pub struct MirrorWriters {
            $($(#[$doc])* pub $field: Arc<MirrorWriter<$view>>,)*
        }

        impl Default for MirrorWriters {
            fn default() -> Self {
                Self {
                    $($field: Arc::new(mirrors!(@writer $($index)?)),)*
                }
            }
        }

        /// One mirror per kind.
        #[derive(Debug, Clone)]
        pub struct MirrorReaders {
            $($(#[$doc])* pub $field: Mirror<$view>,)*
        }

        impl MirrorReaders {
            fn of(writers: &MirrorWriters) -> Self {
                Self {
                    $($field: writers.$field.reader(),)*
                }
            }

            fn sync(&self) -> [SyncStatus; WatchedKind::ALL.len()] {
                [$(SyncStatus::of(WatchedKind::$kind, &self.$field),)*]
            }
        }
    };
    (@writer) => {
        MirrorWriter::default()
    };
    (@writer $index:expr) => {
        MirrorWriter::indexed($index)
    };
}

mirrors! {
    /// VariantAutoscalings, found by the target they name.
    variants: VariantRecord = VariantAutoscaling by |record| target_of(record).iter().map(object_key).collect();
    /// PodAutoscalers, found by the name of the target that they scale.
    pod_autoscalers: StoredAutoscaler = PodAutoscaler by |stored| stored.target().iter().map(object_key).collect();
    /// Deployments, found by what controls them.
    deployments: TargetObject = Deployment by workload_owner;
    /// StatefulSets, found by what controls them.
    stateful_sets: TargetObject = StatefulSet by workload_owner;
    /// LeaderWorkerSets, found by what controls them.
    leader_worker_sets: TargetObject = LeaderWorkerSet by workload_owner;
    /// ConfigMaps with settings.
    config_maps: ConfigMapObject = ConfigMap;
    /// Those of the controller's own namespace, where another one is watched.
    system_config_maps: ConfigMapObject = SystemConfigMap;
    /// Namespaces.
    namespaces: NamespaceObject = Namespace;
    /// Pods, found by what controls them, and by each of their labels.
    pods: PodObject = Pod by names_of_pod;
    /// ReplicaSets, found by what controls them.
    replica_sets: ReplicaSetObject = ReplicaSet by |set| owner(&set.namespace, set.controller.as_ref()).into_iter().collect();
    /// Nodes, while growth is limited to their GPUs. Which have any, slices say too.
    nodes: NodeView = Node;
    /// Pods of all namespaces that hold GPUs, while growth is limited to free ones.
    holding_pods: GpuPod = HoldingPod;
    /// ResourceClaimTemplates, while growth is limited to GPUs.
    claim_templates: ClaimTemplateObject = ResourceClaimTemplate;
    /// Slices of pools of GPUs, while growth is limited to those of nodes.
    slices: SliceObject = ResourceSlice;
    /// ResourceClaims of all namespaces that hold GPUs, likewise.
    claims: ClaimObject = ResourceClaim;
    /// InferencePools of the stable group.
    pools_v1: PoolObject = InferencePoolV1;
    /// InferencePools of the alpha group.
    pools_v1alpha2: PoolObject = InferencePoolV1Alpha2;
    /// InferencePools of the Gateway API.
    pools_gateway: PoolObject = InferencePoolGateway;
    /// InferencePools of llm-d.
    pools_llm_d: PoolObject = InferencePoolLlmD;
    /// HorizontalPodAutoscalers, found by the target they scale.
    horizontal_pod_autoscalers: ScalerObject = HorizontalPodAutoscaler by scaled;
    /// KEDA's ScaledObjects, found by the target they scale.
    scaled_objects: ScalerObject = ScaledObject by scaled;
    /// Services with a port for metrics.
    services: ServiceObject = Service;
    /// ServiceMonitors.
    service_monitors: ServiceMonitorObject = ServiceMonitor;
    /// The ConfigMap that says how the API server vouches for others, where external metrics are served.
    authentication: ConfigMapObject = AuthenticationConfigMap;
}

impl SyncStatus {
    fn of<V>(kind: WatchedKind, mirror: &Mirror<V>) -> Self {
        Self { kind, sync: mirror.sync(), last: mirror.last_contact(), trouble: mirror.trouble() }
    }
}

/// The mirrors, with what several of them mean together.
#[derive(Debug, Clone)]
pub struct Mirrors {
    kinds: MirrorReaders,
    /// What the scale subresources of targets of kinds without a watcher said last.
    pub scales: Reader<Scales>,
    /// InferencePools of all groups.
    pub pools: InferencePools,
    scope: WatchScope,
    /// Whether external metrics are served, so that it matters whom the API server vouches for.
    external_metrics: FeatureSwitch,
    autoscalers: FeatureSwitch,
    annotated: FeatureSwitch,
}

impl Deref for Mirrors {
    type Target = MirrorReaders;

    fn deref(&self) -> &MirrorReaders {
        &self.kinds
    }
}

impl Mirrors {
    /// The mirrors of these writers; `scope` says which variants are ours.
    pub fn new(
        writers: &MirrorWriters,
        scales: Reader<Scales>,
        scope: WatchScope,
        group: PoolGroup,
        external_metrics: FeatureSwitch,
        autoscalers: FeatureSwitch,
        annotated: FeatureSwitch,
    ) -> Self {
        let kinds = MirrorReaders::of(writers);
        Self {
            pools: InferencePools {
                group,
                mirrors: [
                    &kinds.pools_v1,
                    &kinds.pools_gateway,
                    &kinds.pools_llm_d,
                    &kinds.pools_v1alpha2,
                ]
                .map(Mirror::clone),
            },
            kinds,
            scales,
            scope,
            external_metrics,
            autoscalers,
            annotated,
        }
    }

    /// The same, where external metrics are served.
    #[cfg(test)]
    pub(crate) fn with_external_metrics(mut self) -> Self {
        self.external_metrics = FeatureSwitch::Enabled;
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

    fn admits(&self, record: &VariantRecord) -> bool {
        self.admission(record) == Some(Admission::Ours)
    }

    /// `None` for what is not ours, or not known yet: whether its namespace is excluded must be known
    /// first, and what is going is not ours.
    fn admission(&self, record: &VariantRecord) -> Option<Admission> {
        let is_live = record.object.lifecycle == Lifecycle::Live;
        is_live
            .then(|| self.admission_of(&record.object.key.namespace, record.instance.as_deref()))
            .flatten()
    }

    /// Live variants that this controller does not handle, with the reason and whether another instance does.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let all = self.all_records().into_iter();
        let left_out = all.filter_map(|record| {
            let admission = self.admission(&record);
            Some(LeftOut {
                key: record.object.key.clone(),
                admission: admission.filter(|one| *one != Admission::Ours)?,
                is_handled: self.is_handled(&record),
            })
        });
        left_out.collect()
    }

    /// Whether objects of a namespace with this label are ours; `None` while that is not known.
    fn admission_of(&self, namespace: &Arc<str>, instance: Option<&str>) -> Option<Admission> {
        if self.scope.watch_namespace.is_none() && !self.namespaces.synced() {
            return None;
        }
        let object = self.namespaces.get(&ObjectKey::new("", Arc::clone(namespace)));
        Some(self.scope.admits(namespace, instance, object.as_deref()))
    }

    /// Whether an instance scales the target that an object names: we do, or another one that has written
    /// its status.
    fn is_handled(&self, record: &VariantRecord) -> bool {
        let mut owners = record.owners.iter();
        match self.admission(record) {
            Some(Admission::Ours) => true,
            Some(Admission::ForeignInstance) => owners.any(|owner| owner.holds == Holding::Status),
            Some(Admission::OutsideScope | Admission::Excluded) | None => false,
        }
    }

    /// What scales a target, sorted. Not known until both kinds have been listed once; a kind that the
    /// cluster does not serve has no objects.
    pub fn scalers(&self, target: &TargetKey) -> Scalers {
        let mirrors = [&self.horizontal_pod_autoscalers, &self.scaled_objects];
        if mirrors.iter().any(|mirror| mirror.sync() == SyncState::Never) {
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
        self.config_maps.get(key).or_else(|| self.system_config_maps.get(key))
    }

    /// All ConfigMaps with settings, or `None` until they and what says which of them count have
    /// been listed once: what is missing then may exist.
    pub fn all_config_maps(&self) -> Option<Vec<Arc<ConfigMapObject>>> {
        let complete = self
            .contacts()
            .filter(|contact| contact.kind.spec().is_for_settings)
            .all(|contact| contact.sync != SyncState::Never);
        let listed = [&self.config_maps, &self.system_config_maps].map(Mirror::all);
        let objects = listed.into_iter().flatten().map(|(_, object)| object);
        complete.then(|| objects.collect())
    }

    /// Whether objects of a kind are asked for in this scope.
    pub fn is_watched(&self, kind: WatchedKind) -> bool {
        match kind.spec().condition {
            WatchCondition::AllNamespaces => self.scope.watch_namespace.is_none(),
            WatchCondition::SystemOutside => self.scope.system_lies_outside(),
            WatchCondition::PodAutoscalers => self.autoscalers == FeatureSwitch::Enabled,
            WatchCondition::ExternalMetrics => self.external_metrics == FeatureSwitch::Enabled,
            WatchCondition::Pools => self.pools.group.includes(kind.spec().group),
            WatchCondition::Always | WatchCondition::GpuLimits | WatchCondition::AnyLimits => true,
        }
    }

    /// Every kind that is watched in this scope.
    pub fn contacts(&self) -> impl Iterator<Item = SyncStatus> {
        let all = self.kinds.sync().into_iter();
        all.filter(|contact| self.is_watched(contact.kind))
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

fn workload_owner(workload: &TargetObject) -> Vec<ObjectKey> {
    let owner = owner(&workload.key.namespace, workload.controller.as_ref());
    owner.into_iter().collect()
}

fn names_of_pod(pod: &PodObject) -> Vec<ObjectKey> {
    let labels = pod.labels.iter();
    let labels = labels.map(|(label, value)| label_key(&pod.namespace, label, value));
    let owner = owner(&pod.namespace, pod.controller.as_ref());
    labels.chain(owner).collect()
}

/// Key of the pods with a label. It is no valid name of an object.
fn label_key(namespace: &Arc<str>, label: &str, value: &str) -> ObjectKey {
    ObjectKey::new(Arc::clone(namespace), format!("{label}={value}"))
}

fn scaled(scaler: &ScalerObject) -> Vec<ObjectKey> {
    scaler.target.iter().map(object_key).collect()
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
