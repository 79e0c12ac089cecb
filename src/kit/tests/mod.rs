//! The kit under failure, in virtual time.

mod chaos;
mod escalation;
mod exits;
mod keyed;
mod nursery;
mod restart;
mod shutdown;
mod stage;
mod stall;
mod tenure;
