//! Rows: how often and within which limits decisions are made, and scaling to and from zero.

use std::time::Duration;

use super::{SettingGroup, Spec};
use crate::value::ValueKind;

const CAUSE_LIMIT: ValueKind = ValueKind::Duration {
    least: Duration::from_secs(1),
    most: Duration::from_hours(24),
};

/// Time between two optimization cycles.
pub const GLOBAL_OPT_INTERVAL: Spec = Spec::live(
    SettingGroup::Optimization,
    "GLOBAL_OPT_INTERVAL",
    "Optimization interval",
    ValueKind::Duration {
        least: Duration::from_secs(1),
        most: Duration::from_hours(1),
    },
)
.default("60s")
.applied("Updated optimization interval")
.means(
    "Time between two optimization cycles, 1s to 1h.",
    "drives the loop; a shorter one acts at once, a longer one after the tick that is due",
);

/// How long replicas that do not become ready hold their variant.
pub const PENDING_TIME_LIMIT: Spec = Spec::live(
    SettingGroup::Optimization,
    "WVA_PENDING_TIME_LIMIT",
    "Pending time limit",
    CAUSE_LIMIT,
)
.default("10m")
.means(
    "How long replicas that do not become ready hold their variant back; twice its slowest measured start where that is longer.",
    "after it they no longer do, and a condition says so",
);

/// How long a published count that is not applied holds its variant.
pub const UNAPPLIED_TIME_LIMIT: Spec = Spec::live(
    SettingGroup::Optimization,
    "WVA_UNAPPLIED_TIME_LIMIT",
    "Unapplied time limit",
    CAUSE_LIMIT,
)
.default("10m")
.means(
    "How long a published replica count that is not applied holds its variant back.",
    "after it the next step starts from the published count, and a condition says so",
);

/// How long replicas without metrics hold their variant.
pub const SILENT_TIME_LIMIT: Spec = Spec::live(
    SettingGroup::Optimization,
    "WVA_SILENT_TIME_LIMIT",
    "Silent time limit",
    CAUSE_LIMIT,
)
.default("10m")
.means(
    "How long replicas that report no metrics hold their variant back.",
    "after it the others may grow past them, and a condition says so",
);

/// How long a new replica takes to be ready, until one was seen.
pub const REPLICA_START_TIME: Spec = Spec::live(
    SettingGroup::Optimization,
    "WVA_REPLICA_START_TIME",
    "Replica start time",
    CAUSE_LIMIT,
)
.default("60s")
.means(
    "How long a new replica of a variant takes to be ready, until its first start was measured.",
    "the throughput analyzer orders replicas for the load that far ahead",
);

/// GPU limits for every model.
pub const LIMITED_MODE: Spec = Spec::fixed(
    SettingGroup::Optimization,
    "WVA_LIMITED_MODE",
    "Limited mode",
    ValueKind::Bool,
)
.default("false")
.means(
    "Respect the GPUs that the cluster has, for all models.",
    "growth is limited to free GPUs",
);

/// The hybrid of saturation and model-based targets.
pub const PROACTIVE_MODEL: Spec = Spec::fixed(
    SettingGroup::Optimization,
    "EXPERIMENTAL_PROACTIVE_MODEL",
    "Experimental proactive model",
    ValueKind::Bool,
)
.default("false")
.means(
    "Combine saturation targets with model-based ones.",
    "selects the hybrid arbitration",
);

/// Nodes whose GPUs count.
pub const NODE_SELECTOR: Spec = Spec::fixed(
    SettingGroup::Optimization,
    "WVA_NODE_SELECTOR",
    "Node selector",
    ValueKind::Selector,
)
.means(
    "Label selector of the nodes whose GPUs count, such as wva.llmd.ai/shard=a.",
    "restricts the GPU inventory",
);

/// Whether models may go to zero when no ConfigMap says otherwise.
pub const SCALE_TO_ZERO: Spec = Spec::fixed(
    SettingGroup::Zero,
    "WVA_SCALE_TO_ZERO",
    "Scale to zero",
    ValueKind::Bool,
)
.default("false")
.means(
    "Models may go to zero when no scale-to-zero entry says otherwise.",
    "an absent minReplicas then means 0 instead of 1",
);

/// Inactive variants that are looked at in parallel.
pub const SCALE_FROM_ZERO_CONCURRENCY: Spec = Spec::live(
    SettingGroup::Zero,
    "SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY",
    "Scale-from-zero max concurrency",
    ValueKind::Count {
        least: 1,
        most: 10_000,
    },
)
.default("10")
.means(
    "Most routers that are asked at a time for the requests that they hold for models at zero.",
    "bounds the scrapes of scale from zero",
);

/// Bearer token for the endpoint pickers' metrics.
pub const EPP_METRIC_READER_BEARER_TOKEN: Spec = Spec::fixed(
    SettingGroup::Zero,
    "EPP_METRIC_READER_BEARER_TOKEN",
    "Endpoint picker bearer token",
    ValueKind::Secret,
)
.means(
    "Bearer token for the metrics of endpoint pickers; beats the mounted token.",
    "sent, without TLS, when their queues are read while a model is at zero",
);

pub(super) const SCALING_ROWS: &[Spec] = &[
    GLOBAL_OPT_INTERVAL,
    PENDING_TIME_LIMIT,
    UNAPPLIED_TIME_LIMIT,
    SILENT_TIME_LIMIT,
    REPLICA_START_TIME,
    LIMITED_MODE,
    PROACTIVE_MODEL,
    NODE_SELECTOR,
    SCALE_TO_ZERO,
    SCALE_FROM_ZERO_CONCURRENCY,
    EPP_METRIC_READER_BEARER_TOKEN,
];
