//! An API server in this process: what a controller, `kubectl` and tests need of Kubernetes.
//!
//! It answers in the order of requests, takes its time from [`Clock`](wva_supervise::Clock) and its
//! unique ids from a seed, so that a world in virtual time runs the same way each time.

#![expect(
    clippy::indexing_slicing,
    reason = "documents are read by name, which yields null for what is absent; written by name \
              only below what was found to be an object"
)]

mod builtin;
mod dates;
mod delete;
mod discovery;
mod fields;
mod insider;
mod kind;
mod managers;
mod openapi;
mod overlay;
mod patch;
mod prepare;
mod read;
mod refusal;
mod request;
mod rules;
mod scale;
mod schema;
mod selector;
mod server;
mod state;
mod store;
mod table;
mod typed;
mod validate;
mod versions;
mod view;
mod watch;
mod write;

#[cfg(test)]
mod tests;

pub use insider::Insider;
pub use server::{ApiServer, Wire, kubeconfig};
pub(crate) use server::{RequestFault, injected};

/// The elements of a list; none where there is no list.
pub(crate) fn list(value: &serde_json::Value) -> &[serde_json::Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
