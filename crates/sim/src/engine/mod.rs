//! Model servers: continuous batching with chunked prefill, a paged KV cache with a prefix cache,
//! preemption by recomputation, and the series that such a server shows.
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
mod sglang;
mod statistics;
mod step;
#[cfg(test)]
mod tests;
mod timing;

pub use coarse::{CoarseEngine, Mix};
pub use kv::KvPool;
pub use page::Dialect;
pub use profile::{Limits, Profile, StartUp};
pub use request::{Completion, EngineRefusal, Prefix, Request, RequestEnd, RequestId};
pub use server::{Engine, EngineReading, Phase};
pub use statistics::Statistics;
pub use timing::{Picoseconds, Timing};
