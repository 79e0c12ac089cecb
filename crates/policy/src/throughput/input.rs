//! The input of the analyzer for one model. Values are fresh; an absent one is not known.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::average::mean;
use super::shape::RequestShape;
use super::supply::full_sequences;
use crate::by_name::ByName;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::combine::{Band, analyzer_band};
use crate::key::VariantKey;
use crate::params::{
    BurstReserve, SaturationPolicy, SaturationThresholds, SloTerm, UtilizationBand,
};
use crate::reason::MissingInput;
use crate::signal::SignalName;
use crate::total::total;
use crate::units::{Cost, Replicas};
use crate::zero::ModelActivity;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub band: Band,
    /// KV share from which a replica is full.
    pub kv_threshold: f64,
    /// Waiting requests from which a replica is queued.
    pub queue_threshold: f64,
    #[serde(default)]
    pub burst_reserve: BurstReserve,
    /// A term that the SLO analyzer leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<SloTerm>,
}

impl Default for Params {
    fn default() -> Self {
        let thresholds = SaturationThresholds::default();
        Self {
            band: UtilizationBand::default().into(),
            kv_threshold: thresholds.kv_cache_threshold,
            queue_threshold: thresholds.queue_length_threshold,
            burst_reserve: BurstReserve::default(),
            without: None,
        }
    }
}

impl From<&SaturationPolicy> for Params {
    fn from(policy: &SaturationPolicy) -> Self {
        Self {
            band: analyzer_band(policy, AnalyzerName::Throughput),
            kv_threshold: policy.thresholds.kv_cache_threshold,
            queue_threshold: policy.thresholds.queue_length_threshold,
            burst_reserve: policy.burst_reserve,
            without: policy.without,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThroughputModelInput {
    pub params: Params,
    /// Requests per second, counted when they are accepted and not when they are placed: placements
    /// fall behind exactly when the fleet does.
    pub arrivals: Option<f64>,
    /// Requests that wait in the router; absent where nothing counts them.
    pub router_queue: Option<f64>,
    /// The signal without which requests may wait in a router, arrive there, or run in an engine, unseen.
    pub hides_requests: Option<SignalName>,
    /// How long ago they were counted.
    pub router_queue_age: Duration,
    pub activity: ModelActivity,
    /// Whether any variant may be needed: GPUs or quotas may refuse replicas that bounds allow, or other analyzers vote.
    pub needs_any_variant: bool,
    /// Signals that no engine exposes and that others stand for.
    pub derived: Vec<SignalName>,
    /// Its variants, whether they report or not.
    pub variants: BTreeMap<VariantKey, ThroughputVariantInput>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThroughputVariantInput {
    pub role: ServingRole,
    /// What makes its engine what it is: accelerator, GPUs of one replica, and the arguments that
    /// change its speed. Variants with the same text are interchangeable; another text makes what
    /// was learned worthless.
    pub engine: Arc<str>,
    pub ready: Replicas,
    pub pending: Replicas,
    /// Replicas that its target has, late ones included.
    pub current: Replicas,
    /// Time until the pending replicas are ready, as far as known; the others have just begun.
    pub remaining: Vec<Duration>,
    /// Time that a new replica takes to be ready.
    pub start: Duration,
    /// Requests that a replica works on at once: the engine's `max-num-seqs`, for each of its ranks.
    pub max_sequences: Option<f64>,
    pub min: Replicas,
    /// Most replicas that it can have, if there is a limit: its maximum, or those of now where further ones do not start.
    pub max: Option<Replicas>,
    /// Cost of one replica; a variant without one is not guessed at.
    pub cost: Option<Cost>,
    /// Its ready replicas, by pod.
    pub replicas: ByName<ThroughputReplicaInput>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughputReplicaInput {
    /// KV tokens that fit.
    pub kv_capacity: Option<f64>,
    /// Share of the KV cache in use, 0 to 1.
    pub usage: Option<f64>,
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    /// Mean time between tokens, in seconds.
    pub inter_token_latency: Option<f64>,
    /// Mean time to first token, in seconds.
    pub time_to_first_token: Option<f64>,
    /// Mean tokens of a prompt.
    pub input_tokens: Option<f64>,
    /// Mean tokens of an answer.
    pub output_tokens: Option<f64>,
    /// Share of prompts found in the prefix cache, 0 to 1; absent means none.
    pub hit_rate: Option<f64>,
    /// Requests per second that the router sends it.
    pub arrivals: Option<f64>,
    /// Requests per second that it completes.
    pub completions: Option<f64>,
    /// Tokens per second that it generates.
    pub decode_rate: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DecodeReading {
    pub(super) kv_capacity: f64,
    /// How full it is, 0 to 1.
    pub(super) fullness: f64,
    pub(super) latency: f64,
    pub(super) shape: RequestShape,
    pub(super) weight: f64,
    pub(super) decode_rate: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PrefillReading {
    /// Prompt tokens between the arrival of a request and its first token: its own, and those of
    /// the requests in front of it.
    pub(super) tokens: f64,
    pub(super) latency: f64,
    pub(super) shape: RequestShape,
    pub(super) weight: f64,
}

impl ThroughputReplicaInput {
    pub(super) fn capacity(&self) -> Option<f64> {
        positive(self.kv_capacity)
    }

    pub(crate) fn backlog(&self) -> f64 {
        positive(self.waiting).unwrap_or(0.0)
    }

    /// KV tokens that its requests hold, by their mean.
    pub(crate) fn held_tokens(&self) -> Option<f64> {
        Some(self.running? * self.shape()?.0.kv_tokens())
    }

    /// Its request rate: what it is sent, else what it completes.
    pub(crate) fn request_rate(&self) -> Option<f64> {
        positive(self.arrivals).or_else(|| positive(self.completions))
    }

    pub(crate) fn is_queued(&self, params: &Params) -> bool {
        self.waiting.is_some_and(|waiting| waiting > 0.0 && waiting >= params.queue_threshold)
    }

    /// How full it is, 0 to 1: the larger of the share of its KV cache in use and that of the requests
    /// that it works on at once. An engine may hold few tokens and yet take no further request. One that
    /// works on more than `max_sequences` has another limit than the arguments say.
    fn fullness(&self, max_sequences: Option<f64>) -> Option<f64> {
        let share = |share: &f64| (0.0..=1.0).contains(share);
        let usage = self.usage.filter(share)?;
        let slots = self.running.zip(positive(max_sequences));
        let slots = slots.map(|(running, most)| running / most).filter(share);
        Some(slots.map_or(usage, |slots| slots.max(usage)))
    }

    pub(crate) fn is_full(&self, max_sequences: Option<f64>, params: &Params) -> bool {
        let fullness = self.fullness(max_sequences);
        fullness.is_some_and(|fullness| fullness >= params.kv_threshold) && self.is_queued(params)
    }

    /// None where it has not served enough to learn from, as one that warms up.
    pub(super) fn decode(&self, max_sequences: Option<f64>) -> Option<DecodeReading> {
        let one_request = |tokens: &f64| *tokens > 1.0;
        Some(DecodeReading {
            kv_capacity: self.capacity()?,
            fullness: self.fullness(max_sequences)?,
            latency: positive(self.inter_token_latency)?,
            shape: RequestShape {
                input: positive(self.input_tokens).filter(one_request)?,
                output: positive(self.output_tokens).filter(one_request)?,
                hit_rate: self.share_cached(),
            },
            weight: self.request_rate().unwrap_or(0.0),
            decode_rate: positive(self.decode_rate),
        })
    }

    /// As [`Self::decode`]; the answers of a prefill engine have one token or none.
    pub(super) fn prefill(&self) -> Option<PrefillReading> {
        let shape = RequestShape {
            input: positive(self.input_tokens).filter(|tokens| *tokens > 1.0)?,
            output: positive(self.output_tokens).unwrap_or(1.0),
            hit_rate: self.share_cached(),
        };
        Some(PrefillReading {
            tokens: shape.effective_input() * (1.0 + self.backlog()),
            latency: positive(self.time_to_first_token)?,
            shape,
            weight: self.request_rate().unwrap_or(0.0),
        })
    }

    /// The first signal without which it teaches nothing. What limits the requests that it works on at once
    /// matters where some wait.
    fn lacking(&self, role: ServingRole, has_arguments: bool) -> Option<MissingInput> {
        let signals: &[(Option<f64>, SignalName)] = match role {
            ServingRole::Prefill => &[
                (self.input_tokens, SignalName::InputTokens),
                (self.time_to_first_token, SignalName::TimeToFirstToken),
            ],
            ServingRole::Both | ServingRole::Decode => &[
                (self.kv_capacity, SignalName::KvCapacity),
                (self.usage, SignalName::KvUsage),
                (self.input_tokens, SignalName::InputTokens),
                (self.output_tokens, SignalName::OutputTokens),
                (self.inter_token_latency, SignalName::InterTokenLatency),
            ],
        };
        let lacking = |signals: &[(Option<f64>, SignalName)]| {
            let lacking = signals.iter().find(|(value, _)| value.is_none());
            lacking.map(|(_, signal)| MissingInput::Signal(*signal))
        };
        let needs_any_variant = role != ServingRole::Prefill && self.backlog() > 0.0;
        lacking(signals)
            .or_else(|| {
                lacking(&[(self.running, SignalName::Running)]).filter(|_| needs_any_variant)
            })
            .or_else(|| (needs_any_variant && !has_arguments).then_some(MissingInput::Arguments))
    }

    /// The mean request of this replica and the rate that it counts by; none where a length is unknown.
    pub(crate) fn shape(&self) -> Option<(RequestShape, f64)> {
        let shape = RequestShape {
            input: positive(self.input_tokens)?,
            output: positive(self.output_tokens)?,
            hit_rate: self.share_cached(),
        };
        Some((shape, self.request_rate().unwrap_or(0.0)))
    }

    fn computed_tokens(&self) -> Option<f64> {
        let tokens = positive(self.input_tokens)? * (1.0 - self.share_cached());
        (tokens > 1.0).then_some(tokens)
    }

    fn share_cached(&self) -> f64 {
        self.hit_rate.filter(|share| (0.0..=1.0).contains(share)).unwrap_or(0.0)
    }
}

impl ThroughputVariantInput {
    pub(crate) fn lacking(&self) -> impl Iterator<Item = (&Arc<str>, MissingInput)> {
        let has_arguments = self.max_sequences.is_some();
        (self.replicas.iter()).filter_map(move |(pod, replica)| {
            Some((pod, replica.lacking(self.role, has_arguments)?))
        })
    }

    pub(crate) fn working_without(&self) -> Option<MissingInput> {
        let has_arguments = self.max_sequences.is_some();
        let mut working = self.replicas.values().filter(|replica| {
            let asked = [replica.running, replica.waiting, replica.decode_rate];
            asked.into_iter().flatten().any(|value| value > 0.0)
        });
        working.find_map(|replica| replica.lacking(self.role, has_arguments))
    }

    /// Seconds for one computed prompt token in replicas in which no request waits.
    pub(crate) fn prompt_seconds(&self) -> Option<f64> {
        first_token_seconds(self.replicas.values().filter(|replica| replica.backlog() <= 0.0))
    }

    /// The most seconds that a computed prompt token can take: no prompt is read for longer than until its first token,
    /// and replicas read what they complete.
    pub(crate) fn most_prompt_seconds(&self) -> Option<f64> {
        let read = self.replicas.values().filter_map(|replica| {
            Some(positive(replica.completions)? * replica.computed_tokens()?)
        });
        let first = first_token_seconds(self.replicas.values());
        first.into_iter().chain(mean(read).map(f64::recip)).reduce(f64::min)
    }

    pub(crate) fn backlog(&self) -> f64 {
        total(self.replicas.values().map(ThroughputReplicaInput::backlog))
    }

    pub(super) fn capacities(&self) -> impl Iterator<Item = f64> + Clone {
        self.replicas.values().filter_map(ThroughputReplicaInput::capacity)
    }

    /// Mean requests of a shape that fill a replica; none where no KV capacity is known.
    pub(crate) fn resident_sequences(&self, shape: RequestShape) -> Option<f64> {
        mean((self.capacities()).filter_map(|capacity| full_sequences(capacity, shape, None)))
    }

    /// Sequences of a full replica; none where no size of its KV cache is known.
    pub(crate) fn full_sequences(&self, shape: RequestShape) -> Option<f64> {
        mean(
            (self.capacities())
                .filter_map(|capacity| full_sequences(capacity, shape, self.max_sequences)),
        )
    }

    /// Readings of a decode variant in one order, whatever the names of the pods.
    pub(super) fn decode(&self) -> Vec<DecodeReading> {
        let replicas = self.replicas.values();
        let read = |replica: &ThroughputReplicaInput| replica.decode(self.max_sequences);
        let mut readings: Vec<_> = replicas.filter_map(read).collect();
        readings.sort_by(|one, other| {
            (one.fullness.total_cmp(&other.fullness))
                .then(one.latency.total_cmp(&other.latency))
                .then(one.kv_capacity.total_cmp(&other.kv_capacity))
        });
        readings
    }

    /// Readings of a prefill variant in one order.
    pub(super) fn prefill(&self) -> Vec<PrefillReading> {
        let replicas = self.replicas.values();
        let mut readings: Vec<_> = replicas.filter_map(ThroughputReplicaInput::prefill).collect();
        readings.sort_by(|one, other| {
            (one.tokens.total_cmp(&other.tokens)).then(one.latency.total_cmp(&other.latency))
        });
        readings
    }
}

impl ThroughputModelInput {
    pub(super) fn is_decode_full(&self) -> bool {
        let generating = |variant: &&ThroughputVariantInput| variant.role != ServingRole::Prefill;
        self.variants.values().filter(generating).any(|variant| {
            let mut replicas = variant.replicas.values();
            replicas.any(|replica| replica.is_full(variant.max_sequences, &self.params))
        })
    }
}

/// Seconds until the first token for each computed prompt token, of replicas together. The least of many means, each of
/// a few requests, would be far below that of all.
fn first_token_seconds<'a>(
    replicas: impl Iterator<Item = &'a ThroughputReplicaInput>,
) -> Option<f64> {
    let known = replicas.filter_map(|replica| {
        let sent = replica.request_rate().unwrap_or(0.0);
        Some((positive(replica.time_to_first_token)?, replica.computed_tokens()?, sent))
    });
    let known: Vec<_> = known.collect();
    let is_idle = known.iter().all(|(_, _, sent)| *sent <= 0.0);
    let weight = |sent: f64| if is_idle { 1.0 } else { sent };
    let seconds = total(known.iter().map(|(seconds, _, sent)| weight(*sent) * seconds));
    let tokens = total(known.iter().map(|(_, tokens, sent)| weight(*sent) * tokens));
    (tokens > 0.0).then(|| seconds / tokens)
}

pub(super) fn positive(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value > 0.0)
}
