//! What peer policies read, each from where its owner reads it.

use std::sync::Mutex;
use std::time::Duration;

use crate::engine::Profile;
use crate::lab::fluid::WorkModel;
use crate::number;
use crate::prometheus::{Prometheus, QueryValue};
use crate::threads::locked;
use crate::world::{ModelFrame, ScenarioModel, ScenarioVariant, Slo};
use wva::policy::capacity::ServingRole;
use wva_base::moment::WallTime;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::lab) struct PeerModel {
    pub(in crate::lab) slo: Slo,
    pub(in crate::lab) profile: Profile,
    /// Sequences that a replica serves at once within the objective.
    pub(in crate::lab) batch: f64,
    pub(in crate::lab) lengths: (f64, f64),
    pub(in crate::lab) sequences: u32,
    pub(in crate::lab) min: u32,
    pub(in crate::lab) max: u32,
}

impl PeerModel {
    /// Of the variant that peers scale.
    pub(in crate::lab) fn of(
        model: &ScenarioModel,
        variant: &ScenarioVariant,
        lengths: (f64, f64),
    ) -> Self {
        let work = WorkModel::new(variant.profile, variant.limits, model.slo, lengths);
        Self {
            lengths,
            sequences: variant.limits.max_num_seqs,
            slo: of_role(model.slo, variant.role),
            profile: variant.profile,
            batch: work.batch,
            min: variant.bounds.0,
            max: variant.bounds.1,
        }
    }
}

/// What a role answers for: prefill for the first token, decode for the others.
fn of_role(slo: Slo, role: ServingRole) -> Slo {
    match role {
        ServingRole::Both => slo,
        ServingRole::Prefill => Slo { per_token: Duration::MAX, ..slo },
        ServingRole::Decode => Slo { first_token: Duration::MAX, ..slo },
    }
}

/// Samples as Prometheus last scraped them; none where it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::lab) struct ScrapedSignals {
    pub(super) router_queue: Option<f64>,
    /// Requests that servers have, by the router.
    pub(super) router_running: Option<f64>,
    pub(super) router_bytes: Option<f64>,
    pub(super) waiting: Option<f64>,
    /// Sum of the KV usage of all servers.
    pub(super) kv_usage: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::lab) struct ModelSignals {
    pub(super) scraped: ScrapedSignals,
    /// Requests in the router and on servers, read from the pods without a delay.
    pub(super) concurrency: f64,
    /// Mean queue of the ready servers, likewise.
    pub(super) queue: f64,
    /// Mean of the running requests of the ready servers, likewise.
    pub(super) running: f64,
    /// Mean KV usage of the ready servers, likewise.
    pub(super) kv_usage: f64,
    /// Requests per second over the last minute.
    pub(super) rate: f64,
    /// 95th percentiles over the last minute, in seconds: time to the first token from the arrival at the router, and
    /// time between tokens.
    pub(super) latencies: Option<(f64, f64)>,
    /// `spec.replicas` of the scale.
    pub(in crate::lab) wanted: u32,
    /// `status.replicas`: ready and starting pods.
    pub(super) existing: u32,
    pub(super) ready: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lab) struct PeerDecision {
    pub(in crate::lab) replicas: u32,
    pub(in crate::lab) why: String,
}

pub(in crate::lab) trait Peer: Send {
    fn poll(&self) -> Duration;
    fn is_scraping(&self) -> bool {
        false
    }
    /// Takes in the state of every second, for rules with windows of their own.
    fn observe(&mut self, _signals: &ModelSignals, _now: Duration) {}
    /// The replicas to have; none to leave what is there.
    fn decide(&mut self, signals: &ModelSignals, now: Duration) -> Option<PeerDecision>;
}

pub(in crate::lab) fn read_signals(
    model: &ModelFrame,
    (variant, role): (&str, ServingRole),
    scraped_at: Option<(&Mutex<Prometheus>, WallTime)>,
) -> Option<ModelSignals> {
    let frame = model.variants.iter().find(|one| one.name == variant)?;
    let scraped = scraped_at.map(|(prometheus, now)| {
        // Where roles are apart, each is scaled by its own servers.
        let pods = match role {
            ServingRole::Both => "",
            ServingRole::Prefill | ServingRole::Decode => variant,
        };
        scraped(prometheus, now, &model.id, pods)
    });
    Some(ModelSignals {
        scraped: scraped.unwrap_or_default(),
        concurrency: number::length(model.held.saturating_add(model.dispatched)),
        queue: model.queue,
        running: model.running,
        kv_usage: model.kv_usage,
        rate: model.rate,
        latencies: model
            .first_token_p95_ms
            .zip(model.per_token_p95_ms)
            .map(|(first_token, per_token)| (first_token / 1e3, per_token / 1e3)),
        wanted: frame.scaled_to,
        existing: frame.ready.saturating_add(frame.pending),
        ready: frame.ready,
    })
}

/// Of the servers whose pods begin with `pods`.
fn scraped(
    prometheus: &Mutex<Prometheus>,
    now: WallTime,
    model: &str,
    pods: &str,
) -> ScrapedSignals {
    let prometheus = locked(prometheus);
    let sum_of = |name: &str, pods: &str| {
        let query = format!("sum by (pod) ({name}{{model_name={model:?}}})");
        let QueryValue::Vector(samples) = prometheus.query(&query, now).ok()? else {
            return None;
        };
        let of_pods = samples.iter().filter(|one| one.labels.get("pod").starts_with(pods));
        of_pods.map(|sample| sample.value).reduce(|sum, one| sum + one)
    };
    let (by_router, by_server) = (|name| sum_of(name, ""), |name| sum_of(name, pods));
    ScrapedSignals {
        router_queue: by_router("llm_d_epp_flow_control_queue_size"),
        router_running: match pods {
            "" => by_router("llm_d_epp_request_running"),
            _ => by_server("vllm:num_requests_running"),
        },
        router_bytes: by_router("llm_d_epp_flow_control_queue_bytes"),
        waiting: by_server("vllm:num_requests_waiting"),
        kv_usage: by_server("vllm:kv_cache_usage_perc"),
    }
}
