//! HTTP: metrics, probes, the debug page, and external metrics.

pub mod access;
pub mod answer;
pub mod connection;
mod connection_limiter;
pub mod external;
pub mod routes;
pub mod server;
pub mod tls;

#[cfg(test)]
mod tests;
