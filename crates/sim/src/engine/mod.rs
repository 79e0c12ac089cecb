//! Model servers: continuous batching with chunked prefill, a paged KV cache with a prefix cache,
//! preemption by recomputation, and the series that the server shows.
//!
//! A server is advanced by explicit time and holds no clock and no randomness. All times are counted
//! from the origin of the world. Time inside is whole picoseconds, so that a server advanced in many
//! small parts ends in the very same state as one advanced at once; 213 days can be counted that way.

mod batch;
mod coarse;
mod kv;
mod page;
mod profile;
mod request;
mod server;
mod statistics;
mod step;
#[cfg(test)]
mod tests;
mod timing;

pub(crate) use coarse::CoarseEngine;
pub use coarse::Mix;
pub use page::Dialect;
pub use profile::{Limits, Profile, Sleepers, StartUp};
pub use request::Prefix;
pub(crate) use request::{Completion, EngineRefusal, Request, RequestEnd, RequestId};
pub(crate) use server::{Engine, EngineReading, Phase};
