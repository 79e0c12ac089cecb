//! Chaos in virtual time: the whole controller lives through every fault that there is a name for,
//! drawn from a seed, while a judge looks whether anything happens that must not.

mod campaign;
mod cast;
mod check;
mod chronicle;
mod conditions;
mod dice;
mod everywhere;
mod fault;
mod fleet;
mod ills;
mod injector;
mod judge;
mod lens;
mod life;
mod line;
mod liveness;
mod minimise;
mod outcome;
mod plot;
mod point;
mod report;
mod rest;
mod run;
mod schedule;
mod seat;
mod skew;
mod sleep;
mod stream;
mod surroundings;
#[cfg(test)]
mod tests;
mod trace;
mod watches;

pub use campaign::{Done, End, Hunt, Summary, campaign, hunt, survive};
pub use check::Violation;
pub use everywhere::{Broken, Course, Points, Scene, Walked, disturbed, everywhere};
pub use fault::{Class, Fault, Process};
pub use judge::Counts;
pub use outcome::{Outcome, Spot, Tally};
pub use plot::{PLOTS, Plot, Probe, plot};
pub use point::{NoPoint, Point};
pub use report::{Played, Report};
pub use rest::Rest;
pub use run::play;
pub use schedule::{Schedule, Strike};
pub use sleep::Sleeper;
pub use trace::{Keep, TAIL};
