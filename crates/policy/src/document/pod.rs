//! Pods of a variant, and what they report.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::DocumentReading;
use super::scalar::{self, Span};
use crate::samples::{PodSamples, RouterSamples};

/// One live pod of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodDocument {
    /// Its name.
    #[serde(deserialize_with = "scalar::name")]
    pub name: Arc<str>,
    /// Whether its Ready condition is true. Left out: true.
    #[serde(default = "yes")]
    pub ready: bool,
    /// Whether it waits behind a scheduling gate. Left out: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    /// How long ago it was created. Left out: just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// How long it has been ready. Left out: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for: Option<Span>,
    /// Its node. Left out: it has none, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// What it reports for the model of its variant.
    #[serde(default)]
    pub signals: SignalsDocument,
}

pub(super) fn yes() -> bool {
    true
}

/// What one replica reports.
pub type SignalsDocument = PodSamples<DocumentReading>;

/// The router in front of a model.
pub type RouterDocument = RouterSamples<DocumentReading>;
