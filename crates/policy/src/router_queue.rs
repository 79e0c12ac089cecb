//! What routers themselves report about the requests that they hold, apart from Prometheus.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::ModelKey;
use super::units::Replicas;
use wva_base::moment::Moment;

/// What routers said, by model. A model without an entry was not asked about.
pub type DirectQueues = BTreeMap<ModelKey, DirectQueue>;

/// What the routers of one model said when they were asked themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectQueue {
    /// The last count; `None` before the first one.
    pub counted: Option<CountedQueue>,
    /// Why a router said nothing when it was asked last; `None` where all did.
    pub failure: Option<Arc<str>>,
}

/// Requests that wait in the routers of a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CountedQueue {
    /// As read; may be no number.
    pub requests: f64,
    /// When they were counted; the oldest count where there are several routers.
    pub at: Moment,
}

wva_base::named! {
    shown
    /// Who reported how many requests wait in a router.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum QueueSource {
        /// Prometheus.
        Prometheus,
        /// The router itself.
        Router = "the router itself",
    }
}

/// Requests in a router that raise no count, since no replica of the variant reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldQueue {
    /// How many.
    pub requests: f64,
    /// Replicas that the variant would grow to for them; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Replicas>,
}

wva_base::display_of! { HeldQueue:
    Self { requests, needs: Some(needs) } =>
        "requests in its router: {requests}, which need {needs} replicas";
    Self { requests, needs: None } => "requests in its router: {requests}";
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KnownQueue {
    pub(super) requests: f64,
    /// Whether it is too old to shrink on.
    pub(super) is_stale: bool,
    pub(super) age: Duration,
    pub(super) source: QueueSource,
}
