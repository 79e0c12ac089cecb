//! The parameters of decisions: types, lookups by model, and what holds where nothing is stated. The
//! settings read them from texts.

mod analyzers;
mod band;
mod dynamic;
mod effective;
mod entries;
mod limiters;
mod queueing_model;
mod saturation;
mod scale_to_zero;
mod selector;
mod service_class;
mod slo_term;

pub use analyzers::{AnalyzerSettings, SATURATION, SLO, SaturationMethod};
pub(crate) use band::SLO_RELEASE;
pub use band::{StatedBand, UtilizationBand};
pub use dynamic::{CacheSettings, DynamicSettings, LatencyGoal, RequiredSignals, TransitionLimits};
pub use effective::{PolicyValue, SCALE_TO_ZERO_SETTING};
pub use entries::{
    DEFAULT_KEY, EntryLayer, EntrySet, Identity, LayerScope, NamedModel, ScopedEntries,
};
pub use limiters::{Limiter, LimiterScope, Quota, Quotas};
pub use queueing_model::{
    ANALYZER_NAME, DEFAULT_SLO_MULTIPLIER, LatencyTargets, QueueingModelEntry, QueueingModelLayers,
    QueueingModelPolicy,
};
pub use saturation::{
    ActuationMode, BurstReserve, SaturationEntry, SaturationLayers, SaturationPolicy,
    SaturationThresholds, kv_fault, queue_fault,
};
pub use scale_to_zero::{DEFAULT_RETENTION, ScaleToZeroEntry, ScaleToZeroLayers};
pub use selector::{InvalidSelector, LabelRequirement, LabelSelector, Requirement};
pub use service_class::{ANY_MODEL, CLASS_LABEL, ClassTargets, ServiceClass, ServiceClasses};
pub use slo_term::SloTerm;
