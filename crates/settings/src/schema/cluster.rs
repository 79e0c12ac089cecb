//! Rows: which objects are ours, where settings are read, who writes.

use std::time::Duration;

use super::{Reach, SettingGroup, Spec};
use crate::value::ValueKind;

const LEASE_TIME: ValueKind =
    ValueKind::Duration { least: Duration::from_millis(100), most: Duration::from_hours(1) };

settings! {
    CLUSTER_ROWS:
    WATCH_NAMESPACE = fixed(Scope, "WATCH_NAMESPACE", "Watch namespace", ValueKind::Namespace)
        .flags(&["watch-namespace"]),
        "Watch this namespace only, without looking at its exclusion annotation; empty watches all.";
    POD_NAMESPACE = fixed(Scope, "POD_NAMESPACE", "System namespace", ValueKind::Namespace)
        .reach(Reach::Process).default("workload-variant-autoscaler-system"),
        "Namespace of the controller, its lease and the global ConfigMaps.";
    CONTROLLER_INSTANCE = fixed(Scope, "CONTROLLER_INSTANCE", "Controller instance", ValueKind::LabelValue),
        "Handle only objects labelled wva.llmd.ai/controller-instance with this value; a label of every series.";
    POOL_GROUP = fixed(Scope, "POOL_GROUP", "InferencePool API group", ValueKind::PoolGroup),
        "API group of the InferencePools to watch; empty watches all that are served.";
    POD_AUTOSCALERS_ENABLED = fixed(Scope, "POD_AUTOSCALERS_ENABLED", "Pod autoscalers", ValueKind::Bool)
        .flags(&["pod-autoscalers-enabled"]).default("true"),
        "Decide on PodAutoscalers of autoscaling.aibrix.ai where their definition is installed.";
    ANNOTATED_SCALERS_ENABLED = fixed(Scope, "ANNOTATED_SCALERS_ENABLED", "Annotated scalers", ValueKind::Bool)
        .flags(&["annotated-scalers-enabled"]).default("false"),
        "Take HorizontalPodAutoscalers and ScaledObjects that are annotated llm-d.ai/managed as variants.";
    POD_DELETION_COST_ENABLED = fixed(Scope, "POD_DELETION_COST_ENABLED", "Pod deletion cost", ValueKind::Bool)
        .flags(&["pod-deletion-cost-enabled"]).default("false"),
        "Before a Deployment shrinks, give its pods with the least requests in flight a pod-deletion-cost of -1.";
    POD_AUTOSCALER_ENDPOINT_HOSTS = fixed(Scope, "POD_AUTOSCALER_ENDPOINT_HOSTS", "Pod autoscaler endpoint hosts",
        ValueKind::Hosts).default("*.svc,*.svc.cluster.local"),
        "Hosts that an endpoint of a PodAutoscaler may name: hosts and *.suffix, joined by commas; * for any but \
         loopback, link-local and metadata addresses.";
    POD_AUTOSCALER_CA_CERT_PATH = fixed(Scope, "POD_AUTOSCALER_CA_CERT_PATH", "Pod autoscaler CA certificate path",
        ValueKind::Path),
        "PEM file with certificate authorities for https of PodAutoscalers: for endpoints besides the system's, for \
         pods in their place; read at start.";
    CONTROLLERS = fixed(Scope, "CONTROLLERS", "Controllers", ValueKind::Controllers)
        .flags(&["controllers"]).reach(Reach::Flag).default("*"),
        "Flag of AIBrix: *, pod-autoscaler-controller or -pod-autoscaler-controller, joined by commas; without \
         that controller PodAutoscalers are off.";
    DISABLE_WEBHOOK = fixed(Scope, "DISABLE_WEBHOOK", "Webhook switch", ValueKind::Bool)
        .flags(&["disable-webhook"]).reach(Reach::Flag).default("false"),
        "Flag of AIBrix: serve no webhooks, whatever WEBHOOK_BIND_ADDRESS is.";
    CONFIG_FILE = fixed(Configuration, "CONFIG_FILE", "Configuration file", ValueKind::Path)
        .flags(&["config-file"]).reach(Reach::Flag),
        "YAML file with these keys in place of the main ConfigMap; nothing in it changes live.";
    CONFIG_MAP_NAME = fixed(Configuration, "CONFIG_MAP_NAME", "Main ConfigMap name", ValueKind::ObjectName)
        .reach(Reach::Process).default("wva-variantautoscaling-config"),
        "Name of the main ConfigMap, whose data are these keys.";
    SATURATION_CONFIG_MAP_NAME = fixed(Configuration, "SATURATION_CONFIG_MAP_NAME", "Saturation ConfigMap name",
        ValueKind::ObjectName).default("wva-saturation-scaling-config"),
        "Name of the ConfigMaps with saturation thresholds, global and per namespace.";
    QUEUEING_MODEL_CONFIG_MAP_NAME = fixed(Configuration, "QUEUEING_MODEL_CONFIG_MAP_NAME",
        "Queueing model ConfigMap name", ValueKind::ObjectName).default("wva-queueing-model-config"),
        "Name of the ConfigMaps of the queueing model, global and per namespace.";
    SERVICE_CLASSES_CONFIG_MAP_NAME = fixed(Configuration, "SERVICE_CLASSES_CONFIG_MAP_NAME",
        "Service class ConfigMap name", ValueKind::ObjectName).default("service-classes-config"),
        "Name of the global ConfigMap with service classes.";
    LEADER_ELECT = fixed(Cluster, "LEADER_ELECT", "Leader election", ValueKind::Bool)
        .flags(&["leader-elect", "enable-leader-election"]).default("false"),
        "Elect one of several replicas, which alone writes and publishes.";
    LEADER_ELECTION_ID = fixed(Cluster, "LEADER_ELECTION_ID", "Leader election ID", ValueKind::ObjectName)
        .flags(&["leader-election-id"]).default("72dd1cf1.llm-d.ai"),
        "Name of the Lease in the system namespace; a CONTROLLER_INSTANCE is appended.";
    LEASE_DURATION = fixed(Cluster, "LEADER_ELECTION_LEASE_DURATION", "Leader election lease duration", LEASE_TIME)
        .flags(&["leader-election-lease-duration"]).default("60s"),
        "How long followers wait for a silent leader.";
    RENEW_DEADLINE = fixed(Cluster, "LEADER_ELECTION_RENEW_DEADLINE", "Leader election renew deadline", LEASE_TIME)
        .flags(&["leader-election-renew-deadline"]).default("50s"),
        "How long a leader tries to renew before it stops writing.";
    RETRY_PERIOD = fixed(Cluster, "LEADER_ELECTION_RETRY_PERIOD", "Leader election retry period", LEASE_TIME)
        .flags(&["leader-election-retry-period"]).default("10s"),
        "Time between two attempts to take or renew the lease.";
    REST_CLIENT_TIMEOUT = fixed(Cluster, "REST_CLIENT_TIMEOUT", "REST client timeout",
        ValueKind::Duration { least: Duration::from_millis(100), most: Duration::from_hours(1) })
        .flags(&["rest-client-timeout"]).default("60s"),
        "Longest request to the API server; a slower one fails and is tried again.";
}
