//! Chaos in virtual time: the whole controller lives through every fault that there is a name for,
//! drawn from a seed, while a judge looks whether anything happens that must not.

mod active_faults;
mod api_server_proxy;
mod campaign;
pub(crate) mod check;
mod checker;
mod conditions;
mod deletion_costs;
mod dice;
mod exhaustive;
pub(crate) mod fault;
mod fleet;
mod injector;
mod liveness;
mod mutation;
mod planted;
mod pod_pages_proxy;
mod process_checker;
mod process_manager;
mod process_state;
mod prometheus_proxy;
mod run;
mod scale_to_zero;
mod schedule;
mod stream;
mod surroundings;
#[cfg(test)]
mod tests;
mod trace;
mod workload;

pub(crate) use campaign::{Done, End, Hunt, Summary, campaign, hunt, survive};
pub(crate) use exhaustive::{
    BrokenInvariant, Course, CrashPoint, ExhaustiveScenario, Points, Walked, disturbed, exhaustive,
};
pub(crate) use mutation::Mutation;
pub(crate) use run::{FaultTally, failure_report};
pub(crate) use trace::Keep;
pub(crate) use workload::{PLOTS, plot};
