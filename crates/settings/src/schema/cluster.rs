//! Rows: which objects are ours, where settings are read, who writes.

use std::time::Duration;

use super::{Reach, SettingGroup, Spec};
use crate::value::ValueKind;

const LEASE_TIME: ValueKind = ValueKind::Duration {
    least: Duration::from_millis(100),
    most: Duration::from_hours(1),
};

/// The one namespace to watch.
pub const WATCH_NAMESPACE: Spec = Spec::fixed(
    SettingGroup::Scope,
    "WATCH_NAMESPACE",
    "Watch namespace",
    ValueKind::Namespace,
)
.flags(&["watch-namespace"])
.means(
    "Watch this namespace only; empty watches all.",
    "other namespaces are neither read nor written, and the exclusion annotation is not asked",
);

/// Our own namespace.
pub const POD_NAMESPACE: Spec = Spec::fixed(
    SettingGroup::Scope,
    "POD_NAMESPACE",
    "System namespace",
    ValueKind::Namespace,
)
.reach(Reach::Process)
.default("workload-variant-autoscaler-system")
.means(
    "Namespace of the controller, its lease and the global ConfigMaps.",
    "global ConfigMaps and the lease are looked for there",
);

/// Name of this controller among several.
pub const CONTROLLER_INSTANCE: Spec = Spec::fixed(
    SettingGroup::Scope,
    "CONTROLLER_INSTANCE",
    "Controller instance",
    ValueKind::LabelValue,
)
.means(
    "Handle only objects labelled wva.llmd.ai/controller-instance with this value.",
    "isolates several controllers; every series carries it as controller_instance",
);

/// Which InferencePools are watched.
pub const POOL_GROUP: Spec = Spec::fixed(
    SettingGroup::Scope,
    "POOL_GROUP",
    "InferencePool API group",
    ValueKind::PoolGroup,
)
.means(
    "API group of the InferencePools to watch; empty watches each that the cluster serves.",
    "pools of other groups are not watched",
);

/// Whether PodAutoscalers are decided on.
pub const POD_AUTOSCALERS_ENABLED: Spec = Spec::fixed(
    SettingGroup::Scope,
    "POD_AUTOSCALERS_ENABLED",
    "Pod autoscalers",
    ValueKind::Bool,
)
.flags(&["pod-autoscalers-enabled"])
.default("true")
.means(
    "Decide on PodAutoscalers of autoscaling.aibrix.ai where their definition is installed.",
    "false neither reads nor writes them, and scrapes no pod for them",
);

/// Whether annotated scalers are variants.
pub const ANNOTATED_SCALERS_ENABLED: Spec = Spec::fixed(
    SettingGroup::Scope,
    "ANNOTATED_SCALERS_ENABLED",
    "Annotated scalers",
    ValueKind::Bool,
)
.flags(&["annotated-scalers-enabled"])
.default("false")
.means(
    "Take HorizontalPodAutoscalers and ScaledObjects that are annotated llm-d.ai/managed as variants.",
    "false reads no annotation of them, and writes none",
);

/// Whether pods that are to go first are annotated.
pub const POD_DELETION_COST_ENABLED: Spec = Spec::fixed(
    SettingGroup::Scope,
    "POD_DELETION_COST_ENABLED",
    "Pod deletion cost",
    ValueKind::Bool,
)
.flags(&["pod-deletion-cost-enabled"])
.default("false")
.means(
    "Before a Deployment shrinks, give its pods with the least requests in flight a pod-deletion-cost of -1.",
    "false writes no pod, and the ReplicaSet controller chooses by age",
);

/// Hosts that metric sources may name.
pub const POD_AUTOSCALER_ENDPOINT_HOSTS: Spec = Spec::fixed(
    SettingGroup::Scope,
    "POD_AUTOSCALER_ENDPOINT_HOSTS",
    "Pod autoscaler endpoint hosts",
    ValueKind::Hosts,
)
.default("*.svc,*.svc.cluster.local")
.means(
    "Hosts that an endpoint of a PodAutoscaler may name: hosts and *.suffix, joined by commas; * for any.",
    "another host is not read; loopback, link-local and metadata addresses never are",
);

/// Certificates that may sign those of pods and endpoints.
pub const POD_AUTOSCALER_CA_CERT_PATH: Spec = Spec::fixed(
    SettingGroup::Scope,
    "POD_AUTOSCALER_CA_CERT_PATH",
    "Pod autoscaler CA certificate path",
    ValueKind::Path,
)
.means(
    "PEM file with certificate authorities for https pages that PodAutoscalers read.",
    "of endpoints besides the system's, of pods they alone, whatever a certificate names; read at start",
);

/// Controllers of AIBrix that run.
pub const CONTROLLERS: Spec = Spec::fixed(
    SettingGroup::Scope,
    "CONTROLLERS",
    "Controllers",
    ValueKind::Controllers,
)
.flags(&["controllers"])
.reach(Reach::Flag)
.default("*")
.means(
    "Flag of AIBrix: *, pod-autoscaler-controller or -pod-autoscaler-controller, joined by commas.",
    "without that controller it is as with POD_AUTOSCALERS_ENABLED=false; VariantAutoscalings stay",
);

/// Switch of AIBrix for its webhooks.
pub const DISABLE_WEBHOOK: Spec = Spec::fixed(
    SettingGroup::Scope,
    "DISABLE_WEBHOOK",
    "Webhook switch",
    ValueKind::Bool,
)
.flags(&["disable-webhook"])
.reach(Reach::Flag)
.default("false")
.means(
    "Flag of AIBrix: serve no webhooks, whatever WEBHOOK_BIND_ADDRESS is.",
    "the controller checks objects itself",
);

/// A YAML file in place of the main ConfigMap.
pub const CONFIG_FILE: Spec = Spec::fixed(
    SettingGroup::Configuration,
    "CONFIG_FILE",
    "Configuration file",
    ValueKind::Path,
)
.flags(&["config-file"])
.reach(Reach::Flag)
.means(
    "YAML file with keys of this table; it takes the place of the main ConfigMap.",
    "settings are read from it once, so that nothing in it changes live",
);

/// Name of the main ConfigMap.
pub const CONFIG_MAP_NAME: Spec = Spec::fixed(
    SettingGroup::Configuration,
    "CONFIG_MAP_NAME",
    "Main ConfigMap name",
    ValueKind::ObjectName,
)
.reach(Reach::Process)
.default("wva-variantautoscaling-config")
.means(
    "Name of the main ConfigMap, whose data are keys of this table.",
    "settings are read from it, live where they may",
);

/// Name of the saturation ConfigMaps.
pub const SATURATION_CONFIG_MAP_NAME: Spec = Spec::fixed(
    SettingGroup::Configuration,
    "SATURATION_CONFIG_MAP_NAME",
    "Saturation ConfigMap name",
    ValueKind::ObjectName,
)
.default("wva-saturation-scaling-config")
.means(
    "Name of the ConfigMaps with saturation thresholds, global and per namespace.",
    "thresholds are read from them",
);

/// Name of the queueing-model ConfigMaps.
pub const QUEUEING_MODEL_CONFIG_MAP_NAME: Spec = Spec::fixed(
    SettingGroup::Configuration,
    "QUEUEING_MODEL_CONFIG_MAP_NAME",
    "Queueing model ConfigMap name",
    ValueKind::ObjectName,
)
.default("wva-queueing-model-config")
.means(
    "Name of the ConfigMaps of the queueing model, global and per namespace.",
    "latency targets are read from them",
);

/// Name of the service-class ConfigMap.
pub const SERVICE_CLASSES_CONFIG_MAP_NAME: Spec = Spec::fixed(
    SettingGroup::Configuration,
    "SERVICE_CLASSES_CONFIG_MAP_NAME",
    "Service class ConfigMap name",
    ValueKind::ObjectName,
)
.default("service-classes-config")
.means(
    "Name of the global ConfigMap with service classes.",
    "latency targets per class are read from it",
);

/// Whether replicas of the controller elect a leader.
pub const LEADER_ELECT: Spec = Spec::fixed(
    SettingGroup::Cluster,
    "LEADER_ELECT",
    "Leader election",
    ValueKind::Bool,
)
.flags(&["leader-elect", "enable-leader-election"])
.default("false")
.means(
    "Elect one writer among several replicas.",
    "only the leader writes and publishes",
);

/// Name of the lease.
pub const LEADER_ELECTION_ID: Spec = Spec::fixed(
    SettingGroup::Cluster,
    "LEADER_ELECTION_ID",
    "Leader election ID",
    ValueKind::ObjectName,
)
.flags(&["leader-election-id"])
.default("72dd1cf1.llm-d.ai")
.means(
    "Name of the Lease in the system namespace; a CONTROLLER_INSTANCE is appended.",
    "replicas with the same name elect one leader",
);

/// How long a lease is valid.
pub const LEASE_DURATION: Spec = Spec::fixed(
    SettingGroup::Cluster,
    "LEADER_ELECTION_LEASE_DURATION",
    "Leader election lease duration",
    LEASE_TIME,
)
.flags(&["leader-election-lease-duration"])
.default("60s")
.means(
    "How long followers wait for a silent leader.",
    "bounds the takeover",
);

/// How long a leader may fail to renew.
pub const RENEW_DEADLINE: Spec = Spec::fixed(
    SettingGroup::Cluster,
    "LEADER_ELECTION_RENEW_DEADLINE",
    "Leader election renew deadline",
    LEASE_TIME,
)
.flags(&["leader-election-renew-deadline"])
.default("50s")
.means(
    "How long a leader tries to renew before it falls silent.",
    "ends the right to write",
);

/// Time between two attempts on the lease.
pub const RETRY_PERIOD: Spec = Spec::fixed(
    SettingGroup::Cluster,
    "LEADER_ELECTION_RETRY_PERIOD",
    "Leader election retry period",
    LEASE_TIME,
)
.flags(&["leader-election-retry-period"])
.default("10s")
.means(
    "Time between two attempts to take or renew the lease.",
    "paces requests on the lease",
);

/// Longest request to the API server.
pub const REST_CLIENT_TIMEOUT: Spec = Spec::fixed(
    SettingGroup::Cluster,
    "REST_CLIENT_TIMEOUT",
    "REST client timeout",
    ValueKind::Duration {
        least: Duration::from_millis(100),
        most: Duration::from_hours(1),
    },
)
.flags(&["rest-client-timeout"])
.default("60s")
.means(
    "Longest request to the API server.",
    "slower requests fail and are tried again",
);

pub(super) const CLUSTER_ROWS: &[Spec] = &[
    WATCH_NAMESPACE,
    POD_NAMESPACE,
    CONTROLLER_INSTANCE,
    POOL_GROUP,
    POD_AUTOSCALERS_ENABLED,
    ANNOTATED_SCALERS_ENABLED,
    POD_DELETION_COST_ENABLED,
    POD_AUTOSCALER_ENDPOINT_HOSTS,
    POD_AUTOSCALER_CA_CERT_PATH,
    CONTROLLERS,
    DISABLE_WEBHOOK,
    CONFIG_FILE,
    CONFIG_MAP_NAME,
    SATURATION_CONFIG_MAP_NAME,
    QUEUEING_MODEL_CONFIG_MAP_NAME,
    SERVICE_CLASSES_CONFIG_MAP_NAME,
    LEADER_ELECT,
    LEADER_ELECTION_ID,
    LEASE_DURATION,
    RENEW_DEADLINE,
    RETRY_PERIOD,
    REST_CLIENT_TIMEOUT,
];
