//! Conversations with the Kubernetes API server, and what is kept of its answers.

pub(crate) mod autoscaler;
pub(crate) mod client;
pub(crate) mod event;
pub mod fingerprint;
pub mod kinds;
pub mod lease;
pub(crate) mod metrics_apis;
pub(crate) mod mirror;
pub mod permit;
pub mod project;
pub(crate) mod review;
pub mod scale;
pub mod status;
pub mod watch;

#[cfg(test)]
pub(crate) mod fake;

pub use self::client::{KubeconfigSource, connect};
pub use self::mirror::{Mirror, MirrorWriter, ObjectKey};
