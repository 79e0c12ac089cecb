//! HTTP: metrics, probes, the debug page, external metrics, the external scaler, and admission webhooks.

pub mod access;
pub mod admission;
pub mod answer;
pub(crate) mod body;
pub mod connection;
mod connection_limiter;
pub mod external;
pub mod external_scaler;
mod page;
pub mod routes;
pub mod server;
pub mod tls;
mod visibility;

#[cfg(test)]
mod tests;
