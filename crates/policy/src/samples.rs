//! What is read of one replica and of one router, raw: every value with its age, nothing judged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One raw value with the age of the newest raw sample behind it when it was collected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The value as read; may be outside its range.
    pub value: f64,
    /// Age at collection, by the clock of Prometheus alone.
    pub age: Duration,
}

/// Samples of one pod for one model. An absent one is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodSamples {
    /// Peak share of KV cache in use, 0 to 1.
    pub kv_usage: Option<Sample>,
    /// Peak number of requests waiting in the engine.
    pub queue_length: Option<Sample>,
    /// Requests that the engine works on.
    pub running: Option<Sample>,
    /// Size of the KV cache in tokens.
    pub kv_capacity: Option<Sample>,
    /// Mean tokens of a prompt.
    pub input_tokens: Option<Sample>,
    /// Mean tokens of an answer.
    pub output_tokens: Option<Sample>,
    /// Share of prompt tokens found in the cache, 0 to 1.
    pub prefix_hit_rate: Option<Sample>,
    /// Mean time to first token, in seconds.
    pub time_to_first_token: Option<Sample>,
    /// Mean time between tokens, in seconds.
    pub inter_token_latency: Option<Sample>,
    /// Tokens generated per second.
    pub generation_rate: Option<Sample>,
    /// Requests completed per second.
    pub completion_rate: Option<Sample>,
    /// Requests that the router sends it per second.
    pub arrival_rate: Option<Sample>,
    /// Share of KV cache in use at the moment of the scrape, 0 to 1.
    pub kv_usage_now: Option<Sample>,
    /// Samples of each data-parallel rank, where one pod runs several engine instances.
    pub ranks: BTreeMap<Arc<str>, RankSamples>,
}

/// Samples of one engine instance of a pod that runs several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankSamples {
    /// Peak share of KV cache in use, 0 to 1.
    pub kv_usage: Option<Sample>,
    /// Peak number of requests waiting.
    pub queue_length: Option<Sample>,
    /// Size of the KV cache in tokens.
    pub kv_capacity: Option<Sample>,
    /// Mean tokens of a prompt.
    pub input_tokens: Option<Sample>,
    /// Mean tokens of an answer.
    pub output_tokens: Option<Sample>,
    /// Share of prompt tokens found in the cache, 0 to 1.
    pub prefix_hit_rate: Option<Sample>,
}

/// Samples of the router in front of one model. An absent one is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterSamples {
    /// Requests that wait in it.
    pub queue_requests: Option<Sample>,
    /// Their size in bytes.
    pub queue_bytes: Option<Sample>,
    /// Requests admitted per second.
    pub arrival_rate: Option<Sample>,
}
