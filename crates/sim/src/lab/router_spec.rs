//! The router of a model as a scenario states it.

use std::time::Duration;

use serde::Deserialize;

use super::schema::TimeSpan;
use crate::router::{Binding, QueueOrder};

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct RouterSpec {
    pub(super) binding: Binding,
    pub(super) order: QueueOrder,
    pub(super) max_requests: usize,
    pub(super) ttl: TimeSpan,
    pub(super) queue_depth: f64,
    pub(super) kv_usage: f64,
    pub(super) transfer: TimeSpan,
}

impl Default for RouterSpec {
    fn default() -> Self {
        Self {
            binding: Binding::Late,
            order: QueueOrder::Fcfs,
            max_requests: 10_000,
            ttl: TimeSpan::seconds(600),
            queue_depth: 5.0,
            kv_usage: 0.8,
            transfer: TimeSpan(Duration::from_millis(10)),
        }
    }
}
