//! The router of a model as a scenario states it.

use std::time::Duration;

use serde::Deserialize;

use super::schema::TimeSpan;

/// Where a request waits for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BindingSpec {
    /// In the router, until a server has room.
    Late,
    /// In a server with the fewest requests on arrival.
    Early,
    /// In the servers in turn.
    EarlyRoundRobin,
}

/// The router of a model.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct RouterSpec {
    /// When a request gets its server.
    pub(super) binding: BindingSpec,
    /// Requests that are held at most.
    pub(super) max_requests: usize,
    /// How long one is held at most.
    pub(super) ttl: TimeSpan,
    /// The queue of a server that counts as full.
    pub(super) queue_depth: f64,
    /// The KV usage of a server that counts as full, 0 to 1.
    pub(super) kv_usage: f64,
    /// How long the KV cache of a thousand tokens takes from a prefill to a decode server.
    pub(super) transfer: TimeSpan,
}

impl Default for RouterSpec {
    fn default() -> Self {
        Self {
            binding: BindingSpec::Late,
            max_requests: 10_000,
            ttl: TimeSpan::seconds(600),
            queue_depth: 5.0,
            kv_usage: 0.8,
            transfer: TimeSpan(Duration::from_millis(10)),
        }
    }
}
