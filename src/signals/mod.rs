//! What the model servers report, by way of Prometheus: the queries, the client that sends them, the
//! parser of the answers, and the choice among the names that a signal has had over time.

mod ages;
pub mod client;
pub mod collect;
mod credentials;
pub mod decode;
mod endpoint_guard;
mod error;
mod evaluations;
pub mod exposition;
mod history;
mod join;
pub mod metrics_page;
pub(crate) mod page_lines;
pub(crate) mod pod_client;
pub(crate) mod promql;
pub(crate) mod published;
pub mod query;
mod reading;
mod recipe;
mod resolver;
mod result;
pub mod router_client;
pub mod router_page;
mod routers;
mod settings;
pub(crate) mod small_file;
pub(crate) mod sources;
mod splitter;

#[cfg(test)]
mod tests;

pub use client::{HttpPrometheus, PromAnswer, PromApi};
pub use collect::{Collection, CollectionReport, CollectionSettings, QueryReport, collect};
pub use error::QueryError;
pub use evaluations::{Evaluated, Evaluations};
pub use history::history;
pub use join::Ignored;
pub use metrics_page::MetricFamilies;
pub use pod_client::{HttpPods, PageAnswer, PageReadError, PageUrl, PodPages};
pub use promql::Namespace;
pub use result::{QueryResult, SampleRef};
pub use router_client::{HttpRouters, RouterAnswer, RouterApi, RouterError};
pub use router_page::HeldRequests;
pub use settings::{DEFAULT_RESPONSE_LIMIT, PrometheusClientSettings, without_user};
pub(crate) use settings::{InvalidPrometheusSettings, prometheus_settings};
