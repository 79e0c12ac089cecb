//! Every decision, as pure functions and plain state machines. Nothing below this module waits,
//! asks for the time, draws a random number or depends on the order of a hash map.

pub mod key;
pub mod learned;
pub mod moment;
pub mod plan;
pub mod signal;
pub mod snapshot;
pub mod units;
