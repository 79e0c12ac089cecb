//! The embedded world: what surrounds a controller, in virtual or real time.

pub mod apiserver;
pub mod chaos;
pub mod engine;
pub mod exposition;
pub mod hpa;
pub mod kill_route;
pub mod load;
mod number;
pub mod page;
pub mod prometheus;
pub mod router;
pub mod socket;
pub mod workloads;
pub mod world;
