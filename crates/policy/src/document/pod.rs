//! Pods of a variant, and what they report.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::DocumentReading;
use super::scalar::Span;

/// One live pod of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodDocument {
    /// Its name.
    pub name: Arc<str>,
    /// Whether its Ready condition is true. Left out: true.
    #[serde(default = "yes")]
    pub ready: bool,
    /// How long ago it was created. Left out: just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// How long it has been ready. Left out: nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for: Option<Span>,
    /// Its node. Left out: it has none, or nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// What it reports for the model of its variant.
    #[serde(default)]
    pub signals: SignalsDocument,
}

fn yes() -> bool {
    true
}

/// What one replica reports. What is left out is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignalsDocument {
    /// Peak share of the KV cache in use, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_usage: Option<DocumentReading>,
    /// Peak number of requests waiting in the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<DocumentReading>,
    /// Requests that the engine works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<DocumentReading>,
    /// Size of the KV cache in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_capacity: Option<DocumentReading>,
    /// Mean tokens of a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<DocumentReading>,
    /// Mean tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<DocumentReading>,
    /// Share of prompt tokens found in the cache, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_hit_rate: Option<DocumentReading>,
    /// Mean time to first token in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_to_first_token: Option<DocumentReading>,
    /// Mean time between tokens in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inter_token_latency: Option<DocumentReading>,
    /// Tokens generated per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation_rate: Option<DocumentReading>,
    /// Requests completed per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_rate: Option<DocumentReading>,
    /// Requests that the router sends it per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_rate: Option<DocumentReading>,
    /// Share of the KV cache in use at the moment of the scrape, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_usage_now: Option<DocumentReading>,
    /// Its data-parallel ranks by name, where it runs several engine instances.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranks: BTreeMap<Arc<str>, RankDocument>,
}

/// What one engine instance of a pod with several reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RankDocument {
    /// Peak share of the KV cache in use, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_usage: Option<DocumentReading>,
    /// Peak number of requests waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<DocumentReading>,
    /// Size of the KV cache in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_capacity: Option<DocumentReading>,
    /// Mean tokens of a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<DocumentReading>,
    /// Mean tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<DocumentReading>,
    /// Share of prompt tokens found in the cache, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_hit_rate: Option<DocumentReading>,
}
