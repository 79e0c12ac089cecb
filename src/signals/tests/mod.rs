//! Tests of this module: test vectors, and a small HTTP server that plays Prometheus well and badly.

mod client;
mod collect;
mod decode;
mod fields;
mod history;
mod http;
mod pki;
mod pod_client;
mod promql;
mod router_client;
mod routers;
mod settings;
mod stub;
mod tls;
mod unlabelled;
mod vectors;
