//! Chaos in virtual time: the whole controller lives through every fault that there is a name for,
//! drawn from a seed, while a judge looks whether anything happens that must not.

mod active_faults;
mod api_server_proxy;
mod campaign;
mod check;
mod checker;
mod chronicle;
mod conditions;
mod dice;
mod exhaustive;
mod fault;
mod fleet;
mod injector;
mod liveness;
mod minimise;
mod mutation;
mod outcome;
mod planted;
mod point;
mod process_checker;
mod process_manager;
mod process_state;
mod prometheus_proxy;
mod quiescence;
mod report;
mod run;
mod scale_to_zero;
mod schedule;
mod skew;
mod stream;
mod surroundings;
#[cfg(test)]
mod tests;
mod trace;
mod watches;
mod workload;

pub use campaign::{Done, End, Hunt, Summary, campaign, hunt, survive};
pub use check::InvariantViolation;
pub use checker::Counts;
pub use exhaustive::{
    BrokenInvariant, Course, ExhaustiveScenario, Points, Walked, disturbed, exhaustive,
};
pub use fault::{ChaosFault, Class, ProcessFault};
pub use mutation::Mutation;
pub use outcome::{FaultTally, RunOutcome, Spot};
pub use point::{NoPoint, Point};
pub use quiescence::Quiescence;
pub use report::{FailureReport, Played};
pub use run::play;
pub use scale_to_zero::ScaleToZeroModel;
pub use schedule::{FaultSchedule, Strike};
pub use trace::{Keep, TAIL};
pub use workload::{ChaosWorkload, PLOTS, Probe, plot};
