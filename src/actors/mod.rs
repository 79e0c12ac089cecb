//! One file per role, and what roles share: mailboxes, the wiring of watchers, actors by object, the status patch, the
//! retry queue, writes in rounds.

pub(crate) mod autoscaler_writer;
pub mod collector;
pub(crate) mod config;
pub mod emitter;
pub mod event_recorder;
pub(crate) mod external_scaler;
pub(crate) mod http;
pub(crate) mod leadership;
pub mod mailboxes;
pub(crate) mod metrics_reader;
pub mod optimizer;
mod ordered_actors;
pub(crate) mod pod_autoscaler;
pub(crate) mod pod_autoscalers;
pub(crate) mod pod_marker;
pub(crate) mod pod_scraper;
pub mod retry_queue;
pub(crate) mod rounds;
pub(crate) mod router_scraper;
pub(crate) mod sample_plan;
pub(crate) mod scale_reader;
pub(crate) mod status_patch;
pub(crate) mod status_writer;
pub(crate) mod target_scaler;
pub(crate) mod variant;
pub(crate) mod variants;
pub(crate) mod watcher;
pub(crate) mod watches;

use std::sync::Arc;

use self::mailboxes::Mailboxes;
use crate::cluster::permit::WriteApi;
use crate::roles::Role;
use crate::state::Readers;
use crate::state::permission_reporter::PermissionReporter;
use crate::state::requests::RequestReporter;
use wva_supervise::{Actor, Address, ChildSpec};

/// What the writers of decisions share. None changes it.
#[derive(Debug, Clone)]
pub(crate) struct WriterContext {
    pub(crate) shared: Readers,
    pub(crate) requests: Arc<RequestReporter>,
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) permissions: PermissionReporter,
    pub(crate) api: WriteApi,
}

/// A pump that fills a role. Every life begins as a copy of `first`; what copies share outlives them.
pub fn pump<A: Actor + Clone + Sync>(
    role: Role,
    address: &Address<A::Msg>,
    first: A,
) -> ChildSpec<Role> {
    wva_supervise::child(role, address, move |_epoch| first.clone())
}
