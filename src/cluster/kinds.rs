//! The kinds of object that are watched: one table. Names, roles, labels and readiness follow from it. A new kind
//! also needs its projection (`project`), its mirror (`crate::state`), its watcher (`crate::actors`), and its rights
//! in `config/rbac` and the chart.

use crate::settings::pool_group::PoolGroup;

/// What is known of a watched kind before anything is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindSpec {
    /// The kind, with a suffix where it is watched twice.
    pub name: &'static str,
    /// Its API group; empty for the core.
    pub group: &'static str,
    /// Its resource, which must be allowed to be listed and watched.
    pub resource: &'static str,
    /// When it is watched.
    pub condition: WatchCondition,
    /// Whether nothing can be decided before it is read. Others make a difference only when they are there.
    pub is_required: bool,
    /// Whether settings depend on it.
    pub is_for_settings: bool,
    /// Objects of a page of a list.
    pub page_size: u32,
    /// Versions of its group that are asked for where the server lacks that of its type, newest first.
    pub older_versions: &'static [&'static str],
    /// Whether it is watched in any version in which its group serves it, which discovery shows.
    pub is_discovered: bool,
}

/// When a kind is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchCondition {
    /// In every cluster.
    Always,
    /// Where all namespaces are watched. Rights in one of them do not suffice to list it.
    AllNamespaces,
    /// Where the namespace of the controller is not watched anyway.
    SystemOutside,
    /// Where external metrics are served.
    ExternalMetrics,
    /// Where PodAutoscalers are decided on.
    PodAutoscalers,
    /// Where InferencePools of its group count.
    Pools,
    /// While growth is limited to GPUs of nodes.
    GpuLimits,
    /// While growth is limited to GPUs, of nodes or by quotas.
    AnyLimits,
}

/// Kinds with large objects have small pages.
const LARGE_OBJECT_PAGE: u32 = 100;

const fn kind(name: &'static str, group: &'static str, resource: &'static str) -> KindSpec {
    KindSpec {
        name,
        group,
        resource,
        condition: WatchCondition::Always,
        is_required: false,
        is_for_settings: false,
        page_size: 500,
        older_versions: &[],
        is_discovered: false,
    }
}

/// InferencePools of one group.
const fn pools(name: &'static str, group: &'static str) -> KindSpec {
    kind(name, group, "inferencepools").when(WatchCondition::Pools)
}

impl KindSpec {
    const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    const fn for_settings(self) -> Self {
        Self { is_for_settings: true, ..self }
    }

    const fn large(self) -> Self {
        let page_size = LARGE_OBJECT_PAGE;
        Self { page_size, ..self }
    }

    /// Dynamic resource allocation is served as v1 from Kubernetes 1.34 on, before it only in these, if at all.
    const fn of_devices(self) -> Self {
        Self { older_versions: &["v1beta2", "v1beta1"], ..self }
    }

    /// No version of it is published.
    const fn discovered(self) -> Self {
        Self { is_discovered: true, ..self }
    }

    const fn when(self, condition: WatchCondition) -> Self {
        Self { condition, ..self }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $spec:expr;)*) => {
        /// Kinds of object that have a watcher.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each is the Kubernetes kind of that name")]
        pub enum WatchedKind {
            $($(#[$doc])* $kind,)*
        }

        impl WatchedKind {
            /// Every kind, in order.
            pub const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];

            /// Its row of the table.
            pub const fn spec(self) -> KindSpec {
                match self {
                    $(Self::$kind => $spec,)*
                }
            }
        }
    };
}

kinds! {
    VariantAutoscaling: kind("VariantAutoscaling", "llmd.ai", "variantautoscalings").required();
    PodAutoscaler: kind("PodAutoscaler", "autoscaling.aibrix.ai", "podautoscalers")
        .when(WatchCondition::PodAutoscalers);
    Deployment: kind("Deployment", "apps", "deployments").required();
    StatefulSet: kind("StatefulSet", "apps", "statefulsets");
    LeaderWorkerSet: kind("LeaderWorkerSet", "leaderworkerset.x-k8s.io", "leaderworkersets");
    ConfigMap: kind("ConfigMap", "", "configmaps").required().for_settings().large();
    /// ConfigMaps of the controller's own namespace, where another one is watched.
    SystemConfigMap: kind("ConfigMap.system", "", "configmaps").required().for_settings().large()
        .when(WatchCondition::SystemOutside);
    /// The ConfigMap that says how the API server vouches for others. Before it is read, the API server itself would be
    /// refused.
    AuthenticationConfigMap: kind("ConfigMap.authentication", "", "configmaps").required()
        .when(WatchCondition::ExternalMetrics);
    Namespace: kind("Namespace", "", "namespaces").required().for_settings()
        .when(WatchCondition::AllNamespaces);
    InferencePoolV1: pools("InferencePool.v1", PoolGroup::STABLE);
    InferencePoolV1Alpha2: pools("InferencePool.v1alpha2", PoolGroup::ALPHA);
    InferencePoolGateway: pools("InferencePool.gateway", PoolGroup::GATEWAY).discovered();
    InferencePoolLlmD: pools("InferencePool.llm-d", PoolGroup::LLM_D).discovered();
    HorizontalPodAutoscaler: kind("HorizontalPodAutoscaler", "autoscaling", "horizontalpodautoscalers");
    ScaledObject: kind("ScaledObject", "keda.sh", "scaledobjects");
    ServiceMonitor: kind("ServiceMonitor", "monitoring.coreos.com", "servicemonitors");
    Service: kind("Service", "", "services");
    Pod: kind("Pod", "", "pods").required().large();
    ReplicaSet: kind("ReplicaSet", "apps", "replicasets").required();
    Node: kind("Node", "", "nodes").large().when(WatchCondition::GpuLimits);
    /// Pods of all namespaces that are bound to a node.
    HoldingPod: kind("Pod.bound", "", "pods").large().when(WatchCondition::GpuLimits);
    ResourceClaimTemplate: kind("ResourceClaimTemplate", "resource.k8s.io", "resourceclaimtemplates")
        .of_devices().when(WatchCondition::AnyLimits);
    ResourceSlice: kind("ResourceSlice", "resource.k8s.io", "resourceslices").large().of_devices()
        .when(WatchCondition::GpuLimits);
    /// Claims of all namespaces.
    ResourceClaim: kind("ResourceClaim", "resource.k8s.io", "resourceclaims")
        .of_devices().when(WatchCondition::GpuLimits);
}

impl WatchedKind {
    /// Name of the kind, with a suffix where it is watched twice.
    pub fn as_str(self) -> &'static str {
        self.spec().name
    }
}
