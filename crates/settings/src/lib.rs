//! Every setting: where it may come from, what it means, and what may change while running.
//!
//! Everything here is pure. `schema` is the one table of settings; `layers` resolves it from
//! [`Sources`]; `generation` decides what a change of the sources leads to; `saturation`,
//! `scale_to_zero`, `queueing_model` and `service_class` read the policy ConfigMaps.

pub mod address;
pub mod bundle;
pub mod config_maps;
mod controllers;
#[cfg(test)]
mod docs;
mod dynamic;
pub mod endpoint_hosts;
mod entries;
#[cfg(test)]
mod fixtures;
pub mod generation;
pub mod help;
pub mod layers;
mod lints;
pub mod locate;
pub mod logging;
pub mod pool_group;
pub mod print;
pub mod problem;
pub mod purpose;
pub mod queueing_model;
pub mod rejection;
pub mod saturation;
pub mod scale_to_zero;
pub mod schema;
pub mod secret;
pub mod service_class;
pub mod sources;
pub mod statics;
pub mod url;
pub mod value;
pub mod values;

pub use controllers::FeatureSwitch;
pub use generation::{
    FirstGeneration, Generation, GenerationTransition, SettingChange, start, transition,
};
pub use lints::{unused_entries, unused_quotas};
pub use locate::{MainLocation, locate_main};
pub use problem::{Diagnostics, EntryProblem, Problem, SettingError, Warning};
pub use rejection::{REJECTION_LOG, Rejected, rejection_error, rejection_event};
pub use sources::{FlagValues, GivenFlag, MainConfigMap, PolicySources, Sources};
pub use statics::{PrometheusConnection, PrometheusTls, StaticSettings, TokenSource};

#[cfg(test)]
mod vectors;
