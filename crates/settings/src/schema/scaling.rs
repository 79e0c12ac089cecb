//! Rows: how often and within which limits decisions are made, and scaling to and from zero.

use std::time::Duration;

use super::{SettingGroup, Spec};
use crate::value::ValueKind;

const CAUSE_LIMIT: ValueKind =
    ValueKind::Duration { least: Duration::from_secs(1), most: Duration::from_hours(24) };

settings! {
    SCALING_ROWS:
    GLOBAL_OPT_INTERVAL = live(Optimization, "GLOBAL_OPT_INTERVAL", "Optimization interval",
        ValueKind::Duration { least: Duration::from_secs(1), most: Duration::from_hours(1) })
        .default("60s").applied("Updated optimization interval"),
        "Time between two optimization cycles, 1s to 1h.";
    PENDING_TIME_LIMIT = live(Optimization, "WVA_PENDING_TIME_LIMIT", "Pending time limit", CAUSE_LIMIT).default("10m"),
        "How long replicas that do not become ready hold their variant back; at least twice its slowest measured \
         start.";
    UNAPPLIED_TIME_LIMIT = live(Optimization, "WVA_UNAPPLIED_TIME_LIMIT", "Unapplied time limit", CAUSE_LIMIT)
        .default("10m"),
        "How long a published count that is not applied holds its variant back; the next step then starts from it.";
    SILENT_TIME_LIMIT = live(Optimization, "WVA_SILENT_TIME_LIMIT", "Silent time limit", CAUSE_LIMIT).default("10m"),
        "How long replicas without metrics hold their variant back; the others may then grow past them.";
    REPLICA_START_TIME = live(Optimization, "WVA_REPLICA_START_TIME", "Replica start time", CAUSE_LIMIT).default("60s"),
        "How long a replica takes to be ready, until a start of its variant was measured; throughput orders that far \
         ahead.";
    LIMITED_MODE = fixed(Optimization, "WVA_LIMITED_MODE", "Limited mode", ValueKind::Bool).default("false"),
        "Limit the growth of all models to free GPUs of the cluster.";
    PROACTIVE_MODEL = fixed(Optimization, "EXPERIMENTAL_PROACTIVE_MODEL", "Experimental proactive model",
        ValueKind::Bool).default("false"),
        "Combine saturation targets with model-based ones (hybrid).";
    NODE_SELECTOR = fixed(Optimization, "WVA_NODE_SELECTOR", "Node selector", ValueKind::Selector),
        "Label selector of the nodes whose GPUs count, like wva.llmd.ai/shard=a.";
    SCALE_TO_ZERO = fixed(Zero, "WVA_SCALE_TO_ZERO", "Scale to zero", ValueKind::Bool).default("false"),
        "Models may go to zero unless a scale-to-zero entry forbids it; an absent minReplicas then means 0 instead of \
         1.";
    SCALE_FROM_ZERO_CONCURRENCY = live(Zero, "SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY",
        "Scale-from-zero max concurrency", ValueKind::Count { least: 1, most: 10_000 }).default("10"),
        "Most routers that are scraped at a time for models at zero or sized by `slo`.";
    EPP_METRIC_READER_BEARER_TOKEN = fixed(Zero, "EPP_METRIC_READER_BEARER_TOKEN", "Endpoint picker bearer token",
        ValueKind::Secret),
        "Bearer token for metrics of endpoint pickers, sent without TLS for models at zero or sized by `slo`; beats \
         the mounted token.";
}
