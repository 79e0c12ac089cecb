//! What a spectator sees of a world at one moment.

use serde::Serialize;

use wva::policy::plan::Decision;

/// The state of a world, published every virtual second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Frame {
    /// Virtual seconds since the start.
    pub seconds: f64,
    /// The virtual date, RFC 3339.
    pub(crate) at: String,
    /// The models in the order of the scenario.
    pub models: Vec<ModelFrame>,
    pub(crate) cost_per_hour: f64,
    /// GPUs that pods hold.
    pub gpus_used: u32,
    pub(crate) gpus_total: u32,
    /// From the start until now.
    pub totals: Totals,
    /// What went wrong until now, each with virtual seconds since the start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) faults: Vec<(f64, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelFrame {
    pub(crate) name: String,
    pub(crate) id: String,
    /// Requests per second over the last minute.
    pub(crate) rate: f64,
    /// Requests that the router holds.
    pub held: usize,
    /// Requests that servers have, in their queues or running.
    pub(crate) dispatched: usize,
    /// Running requests of ready servers, on average.
    pub(crate) running: f64,
    /// Requests in the queues of ready servers, on average.
    pub queue: f64,
    pub(crate) shortest_queue: f64,
    /// Share of the KV cache of ready servers in use, on average, 0 to 1.
    pub(crate) kv_usage: f64,
    /// 95th percentile of the time to the first token over the last minute, in milliseconds; like the
    /// next one taken every five seconds.
    pub first_token_p95_ms: Option<f64>,
    /// 95th percentile of the mean time between tokens over the last minute, in milliseconds.
    pub per_token_p95_ms: Option<f64>,
    /// What is promised, in milliseconds: first token, between tokens.
    pub(crate) slo_ms: (f64, f64),
    /// Share of the requests of the last minute that kept the promise, 0 to 1.
    pub(crate) attainment: Option<f64>,
    /// Requests that ended since the start, and those of them that kept the promise.
    pub(crate) ended: (u64, u64),
    /// Why its load has ended early, if a trace cannot be read to its end.
    pub(crate) broken: Option<String>,
    pub variants: Vec<VariantFrame>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VariantFrame {
    pub name: String,
    pub(crate) accelerator: String,
    pub(crate) gpus: u32,
    pub(crate) cost: f64,
    /// What the controller publishes.
    pub desired: Option<u32>,
    /// What its workload is scaled to.
    pub scaled_to: u32,
    /// Replicas that are ready, with all their pods.
    pub ready: u32,
    /// Replicas that are not.
    pub(crate) pending: u32,
    pub(crate) action: String,
    pub why: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<String>,
    /// Why it does not grow although requests wait for its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unserved: Option<String>,
}

/// Sums since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Totals {
    pub requests: u64,
    pub answered: u64,
    /// Requests that were refused or lost.
    pub failed: u64,
    pub(crate) good: u64,
    pub gpu_hours: f64,
    pub(crate) cost: f64,
    /// Changes of a deployment's size.
    pub scalings: u64,
    /// Virtual seconds from the start to the first of them.
    pub(crate) first_scaling: Option<f64>,
}

impl Totals {
    /// Share of all requests that ended which kept the promise, 0 to 1.
    pub(crate) fn attainment(&self) -> Option<f64> {
        let ended = crate::number::real(self.answered + self.failed);
        (ended > 0.0).then(|| crate::number::real(self.good) / ended)
    }
}

pub(super) fn steps(decision: &Decision) -> Vec<String> {
    decision.steps.iter().map(wva::page::step).collect()
}
