//! Queueing-model analyzer: how many requests per second one replica can take and still keep the
//! latency targets of its model.
//!
//! A replica is one server whose speed depends on how many requests it works on (`service`), with
//! finite room (`chain`). `performance` turns a request rate into latencies, `sizing` turns
//! latencies into a rate. Three parameters describe a replica; `tuner` learns them from observed
//! latencies and `learned` keeps them. `assess` puts it together for one model.

pub(crate) mod assess;
pub(crate) mod bisection;
pub(crate) mod chain;
pub(crate) mod learned;
mod matrix;
pub(crate) mod observation;
pub(crate) mod performance;
pub(crate) mod quantity;
pub(crate) mod service;
pub(crate) mod sizing;
pub(crate) mod targets;
pub(crate) mod tuner;

pub use learned::LearnedParameters;
pub use performance::ReplicaModel;
pub use quantity::RequestRate;
pub use service::{ReplicaRoom, ServiceParameters, Workload};

#[cfg(test)]
mod tests;
