//! One file per role, and the facts they share.

pub mod board;
pub mod collector;
pub mod config;
pub mod emitter;
pub mod event_recorder;
pub mod http;
pub mod leadership;
pub mod mirrors;
pub(crate) mod mutations;
pub mod optimizer;
pub mod permission_reporter;
pub mod records;
pub mod relist_request;
pub mod requests;
pub mod retry_queue;
pub mod router_scraper;
pub mod scale_reader;
pub mod shared_state;
pub mod status;
pub mod status_writer;
pub mod variant;
pub mod variants;
pub mod watcher;
pub mod watches;
