//! Why a budget that is to be shared by priority is not.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::gap::MissingSignal;
use super::hold::BlockReason;
use super::inputs::MetricsState;
use crate::key::{ModelKey, VariantKey};
use wva_base::text::listed;

/// A budget is not shared by priority, since a model holds GPUs of it whose demand is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Withheld {
    /// The model; of several the one that reports this, if it is among them, else the first by name.
    pub model: ModelKey,
    /// Why its demand is not known.
    pub because: DemandGap,
}

/// Why the demand of a model is not known in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DemandGap {
    /// No sample is usable.
    NoUsableMetrics { state: MetricsState },
    /// Some of its variants may have unseen replicas.
    Unseen { variants: Arc<[VariantKey]> },
    /// Some samples are too old.
    Stale { replicas: u32 },
    /// Those of its router are.
    StaleRouter,
    /// A ready replica does not report.
    Silent {
        /// The first variant with one.
        variant: VariantKey,
    },
    /// A voter that might want more has no result, or no analyzer can size the model.
    Held { hold: BlockReason },
    /// Only a part of it is known.
    Partial {
        /// What instances do not say, as far as known; at most 5.
        missing: Vec<MissingSignal>,
    },
}

wva_base::display_of! { Withheld:
    Self { model: ModelKey { namespace, model }, because } =>
        "rescale withheld, the demand of {namespace}/{model} is not known: {because}";
}

wva_base::display_of! { DemandGap:
    Self::NoUsableMetrics { state } => "{state}";
    Self::Unseen { variants } => "there may be unseen replicas of {}", listed(variants);
    Self::Stale { replicas } => "replicas with old samples: {replicas}";
    Self::StaleRouter => "the samples of its router are old";
    Self::Silent { variant } => "not every ready replica of {variant} reports";
    Self::Held { hold } => "{hold}";
    Self::Partial { missing } if missing.is_empty() => "a part of it is hidden";
    Self::Partial { missing } => "missing: {}", listed(missing);
}
