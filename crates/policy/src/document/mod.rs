//! The snapshot as a document: everything that one plan is made from, in a form that people write
//! and read. `wva plan` reads it, `/debug/snapshot` writes it, `wva plan --schema` describes it.
//!
//! Times are ages and every quantity has one unit, which its field states. What is left out is not
//! known; 0 is known to be zero.

mod inventory;
mod pod_autoscaler;
mod read;
mod read_learned;
mod read_router;
mod read_variant;
mod reading;
mod scalar;
mod variant;
mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use inventory::{GpuPodDocument, InventoryDocument, TypeDocument, understated_use};
pub use pod_autoscaler::{
    AutoscaledPodDocument, AutoscaledPodState, AutoscalerSituation, PodAutoscalerDocument,
    SourceDocument,
};
pub use read::{DocumentError, DocumentFault, Situation};
pub use reading::{DocumentReading, ReadingFailure, ReadingState};
pub use scalar::{CostText, Span};
pub use variant::{
    ContainerDocument, PodDocument, RouterDocument, SignalsDocument, TargetDocument, TargetState,
    VariantDocument,
};

use super::signal::SignalName;

pub(crate) const DOCUMENT_VERSION: u32 = 1;

/// Largest document that is read, in bytes.
pub const MAX_DOCUMENT: usize = 64 * 1024 * 1024;

/// Everything that one plan is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "Snapshot of a fleet, as `wva plan` reads it")]
pub struct SnapshotDocument {
    /// Version of this layout: 1.
    pub version: u32,
    /// Number of the planning cycle, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<u64>,
    /// When the plan is made.
    #[serde(default)]
    pub time: TimeDocument,
    /// What is known of the last collection of metrics as a whole.
    #[serde(default)]
    pub collection: CollectionDocument,
    /// The variants.
    pub variants: Vec<VariantDocument>,
    /// What is known of models as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelDocument>,
    /// PodAutoscalers, each decided by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_autoscalers: Vec<PodAutoscalerDocument>,
    /// GPUs of the cluster. Left out: they are not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<InventoryDocument>,
    /// What was learned from earlier collections, as `/debug/snapshot` and
    /// `wva plan --explain --format json` write it. Left out: nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub learned: Option<serde_json::Value>,
    /// Anything else for readers; it decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<serde_json::Value>,
}

/// When the plan is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimeDocument {
    /// Wall-clock time, like `2026-03-01T12:00:00Z`. Left out: the start of 1970.
    #[serde(
        default,
        deserialize_with = "scalar::timestamp",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub now: Option<jiff::Timestamp>,
    /// Time since the process started, like `1h`: the clock that `learned` and `state` of a PodAutoscaler count by.
    /// Left out: that of the newest `state`, moved on to `now`; without one, one day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime: Option<Span>,
}

/// The last collection of metrics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CollectionDocument {
    /// Whether anything was collected at all.
    #[serde(default)]
    pub state: CollectionState,
    /// How long ago it ended. Ages of signals count from then. Left out: just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ago: Option<Span>,
    /// Signals of which a query failed, with the error: `kvUsage` and `queueLength` are those that
    /// every model needs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<SignalName, Arc<str>>,
}

/// Whether anything was collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CollectionState {
    /// It was.
    #[default]
    Done,
    /// Not yet.
    Never,
}

/// What is known of one model as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelDocument {
    /// Namespace of its variants.
    #[serde(deserialize_with = "scalar::name")]
    pub namespace: Arc<str>,
    /// Its name, as its variants state it.
    #[serde(deserialize_with = "scalar::name")]
    pub model: Arc<str>,
    /// What Prometheus reports about the router in front of it. Left out: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterDocument>,
    /// What its routers said when they were asked themselves. Left out: they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_queue: Option<DirectQueueDocument>,
}

/// What routers said themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectQueueDocument {
    /// Requests that wait in them. The age counts from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<DocumentReading>,
    /// Why one of them said nothing when it was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Arc<str>>,
}
