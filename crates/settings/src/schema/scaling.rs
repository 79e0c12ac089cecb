//! Rows: how often and within which limits decisions are made, and scaling to and from zero.

use std::time::Duration;

use super::{SettingGroup, Spec};
use crate::value::ValueKind;

const CAUSE_LIMIT: ValueKind = ValueKind::Duration {
    least: Duration::from_secs(1),
    most: Duration::from_hours(24),
};

settings! {
    SCALING_ROWS:
    GLOBAL_OPT_INTERVAL = live(Optimization, "GLOBAL_OPT_INTERVAL", "Optimization interval",
        ValueKind::Duration { least: Duration::from_secs(1), most: Duration::from_hours(1) })
        .default("60s").applied("Updated optimization interval"),
        "Time between two optimization cycles, 1s to 1h.",
        "drives the loop; a shorter one acts at once, a longer one after the tick that is due";
    PENDING_TIME_LIMIT = live(Optimization, "WVA_PENDING_TIME_LIMIT", "Pending time limit", CAUSE_LIMIT).default("10m"),
        "How long replicas that do not become ready hold their variant back; twice its slowest measured start where \
         that is longer.",
        "after it they no longer do, and a condition says so";
    UNAPPLIED_TIME_LIMIT = live(Optimization, "WVA_UNAPPLIED_TIME_LIMIT", "Unapplied time limit", CAUSE_LIMIT)
        .default("10m"),
        "How long a published replica count that is not applied holds its variant back.",
        "after it the next step starts from the published count, and a condition says so";
    SILENT_TIME_LIMIT = live(Optimization, "WVA_SILENT_TIME_LIMIT", "Silent time limit", CAUSE_LIMIT).default("10m"),
        "How long replicas that report no metrics hold their variant back.",
        "after it the others may grow past them, and a condition says so";
    REPLICA_START_TIME = live(Optimization, "WVA_REPLICA_START_TIME", "Replica start time", CAUSE_LIMIT).default("60s"),
        "How long a new replica of a variant takes to be ready, until its first start was measured.",
        "the throughput analyzer orders replicas for the load that far ahead";
    LIMITED_MODE = fixed(Optimization, "WVA_LIMITED_MODE", "Limited mode", ValueKind::Bool).default("false"),
        "Respect the GPUs that the cluster has, for all models.", "growth is limited to free GPUs";
    PROACTIVE_MODEL = fixed(Optimization, "EXPERIMENTAL_PROACTIVE_MODEL", "Experimental proactive model",
        ValueKind::Bool).default("false"),
        "Combine saturation targets with model-based ones.", "selects the hybrid arbitration";
    NODE_SELECTOR = fixed(Optimization, "WVA_NODE_SELECTOR", "Node selector", ValueKind::Selector),
        "Label selector of the nodes whose GPUs count, like wva.llmd.ai/shard=a.", "restricts the GPU inventory";
    SCALE_TO_ZERO = fixed(Zero, "WVA_SCALE_TO_ZERO", "Scale to zero", ValueKind::Bool).default("false"),
        "Models may go to zero when no scale-to-zero entry says otherwise.",
        "an absent minReplicas then means 0 instead of 1";
    SCALE_FROM_ZERO_CONCURRENCY = live(Zero, "SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY",
        "Scale-from-zero max concurrency", ValueKind::Count { least: 1, most: 10_000 }).default("10"),
        "Most routers that are asked at a time for the requests that they hold for models at zero.",
        "bounds the scrapes of scale from zero";
    EPP_METRIC_READER_BEARER_TOKEN = fixed(Zero, "EPP_METRIC_READER_BEARER_TOKEN", "Endpoint picker bearer token",
        ValueKind::Secret),
        "Bearer token for the metrics of endpoint pickers; beats the mounted token.",
        "sent, without TLS, when their queues are read while a model is at zero";
}
