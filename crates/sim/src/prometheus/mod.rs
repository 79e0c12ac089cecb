//! The Prometheus of the embedded world: scrapes, keeps, and answers as a Prometheus 3 would, for
//! the part of PromQL that a controller uses. It has no clock and does nothing by itself; its
//! owner fetches the pages that are due and says what time it is.

mod client;
mod counters;
mod document;
mod eval;
mod labels;
mod number;
mod promql;
mod refusal;
mod scrape;
mod server;
mod store;
mod target;

#[cfg(test)]
mod tests;

pub(crate) use client::InProcess;
pub(crate) use eval::QueryValue;
pub use scrape::Scraped;
pub use server::Prometheus;
pub use target::{Conflicts, ScrapeTarget, TargetId};
