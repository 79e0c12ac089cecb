//! HTTP: metrics, probes and the debug page.

pub mod routes;
pub mod server;
