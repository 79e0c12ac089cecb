//! The kit under failure, in virtual time.

mod chaos;
mod defects;
mod dynamic_supervisor;
mod epoch;
mod escalation;
mod exits;
mod nursery;
mod restart;
mod role;
mod shutdown;
mod stage;
mod stall;
