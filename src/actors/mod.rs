//! One file per role, and what roles share: the wiring of watchers, actors by object, the status patch, the retry queue,
//! writes in rounds, the reporter of missing rights.

pub mod autoscaler_writer;
pub mod collector;
pub mod config;
pub mod emitter;
pub mod event_recorder;
pub mod external_scaler;
pub mod http;
pub mod leadership;
pub mod metrics_reader;
pub mod optimizer;
mod ordered_actors;
pub mod permission_reporter;
pub mod pod_autoscaler;
pub mod pod_autoscalers;
pub mod pod_marker;
pub mod pod_scraper;
pub mod retry_queue;
pub mod rounds;
pub mod router_scraper;
pub mod sample_plan;
pub mod scale_reader;
pub mod status_patch;
pub mod status_writer;
pub mod target_scaler;
pub mod variant;
pub mod variants;
pub mod watcher;
pub mod watches;

use crate::roles::Role;
use wva_supervise::{Actor, Address, ChildSpec};

/// A pump that fills a role. Every life begins as a copy of `first`; what copies share outlives them.
pub fn pump<A: Actor + Clone + Sync>(
    role: Role,
    address: &Address<A::Msg>,
    first: A,
) -> ChildSpec<Role> {
    wva_supervise::child(role, address, move |_epoch| first.clone())
}
