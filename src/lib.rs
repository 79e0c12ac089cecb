//! Autoscaler for LLM inference on Kubernetes. See `actors.md` for the structure.

pub mod actors;
pub mod api;
pub mod app;
pub mod claim;
pub mod cli;
pub mod cluster;
#[cfg(test)]
mod docs;
pub mod env;
pub mod kit;
pub mod metrics;
pub mod policy;
pub mod serve;
pub mod settings;
pub mod signals;
#[cfg(feature = "sim")]
pub mod sim;
pub mod telemetry;
pub mod version;

/// Chaos asks what each controller holds, also where it is played by tests.
#[cfg(all(test, feature = "sim"))]
#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting(std::alloc::System);
