//! Every decision, as pure functions and plain state machines. Nothing below this module waits,
//! asks for the time, draws a random number or depends on the order of a hash map.

pub mod accelerator;
pub mod actuation;
mod analyzers;
pub mod attribution;
pub mod backoff;
pub mod bounds;
pub mod capacity;
pub mod change;
pub mod combine;
pub mod condition;
pub mod coupling;
pub mod document;
mod draft;
pub mod engine_args;
pub mod filter;
mod group;
pub mod hybrid;
pub mod invariant;
pub mod key;
pub mod learned;
mod learner;
pub mod lease;
pub mod ledger;
mod lesson;
pub mod limit;
pub mod moment;
pub mod object;
pub mod optimize;
pub mod plan;
mod planner;
pub mod pod_template;
pub mod queueing;
pub mod readiness;
pub mod record;
mod refit;
pub mod relapse;
pub mod reuse;
pub mod rival;
pub mod router_queue;
pub mod safety_net;
pub mod samples;
mod saturation;
pub mod schedule;
pub mod series;
pub mod signal;
pub mod snapshot;
mod spare;
pub mod startup;
mod target_problem;
pub mod throughput;
pub mod tokens;
mod transition;
pub mod units;
pub mod variant;
pub mod whole;
mod why;
pub mod workload;
pub mod zero;

#[cfg(test)]
pub(crate) mod tests;

pub use invariant::check_plan;
pub use learner::learn;
pub use planner::plan;
pub use refit::refit;
