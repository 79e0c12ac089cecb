//! Autoscaler for LLM inference on Kubernetes. See `actors.md` for the structure.

pub mod actors;
pub mod api;
pub mod app;
pub mod cli;
pub mod cluster;
#[cfg(test)]
mod docs;
pub mod doctor;
pub mod hooks;
pub mod metrics;
pub mod page;
pub mod roles;
#[cfg(test)]
mod scratch;
pub mod serve;
pub mod signals;
pub mod state;
pub mod telemetry;
pub mod version;

pub use wva_policy as policy;
pub use wva_settings as settings;

#[cfg(test)]
#[path = "../crates/policy/src/tests/vectors.rs"]
mod vectors;
