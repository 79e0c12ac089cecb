//! Queueing-model analyzer: how many requests per second one replica can take and still keep the
//! latency targets of its model.
//!
//! A replica is one server whose speed depends on how many requests it works on ([`service`]), with
//! finite room ([`chain`]). [`performance`] turns a request rate into latencies, [`sizing`] turns
//! latencies into a rate. Three parameters describe a replica; [`tuner`] learns them from observed
//! latencies and [`learned`] keeps them. [`assess`] puts it together for one model.

pub mod assess;
pub mod bisection;
pub mod chain;
pub mod learned;
mod matrix;
pub mod observation;
pub mod performance;
pub mod quantity;
pub mod service;
pub mod sizing;
pub mod targets;
pub mod tuner;

#[cfg(test)]
mod tests;
