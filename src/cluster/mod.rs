//! Conversations with the Kubernetes API server, and what is kept of its answers.

pub mod autoscaler;
pub mod client;
pub mod event;
pub mod fingerprint;
pub mod kinds;
pub mod lease;
pub mod metrics_apis;
pub mod mirror;
pub mod permit;
pub mod project;
pub mod review;
pub mod scale;
pub mod status;
pub mod watch;

#[cfg(test)]
pub(crate) mod fake;
