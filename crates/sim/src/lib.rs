//! The simulated cluster: what surrounds a controller, in virtual or real time.

pub mod apiserver;
mod chaos;
pub mod cli;
pub mod engine;
pub mod exposition;
pub mod hpa;
mod kill_route;
mod lab;
pub mod load;
pub mod milli;
mod number;
mod pace;
mod page;
pub mod prometheus;
mod real_clock;
pub mod router;
pub mod socket;
mod threads;
pub mod workloads;
pub mod world;

#[cfg(test)]
mod documents;

/// Chaos asks what each controller holds, also where it is played by tests.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting(std::alloc::System);
