//! The input of the analyzer for one model. Values are fresh; an absent one is not known.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::by_name::ByName;
use crate::capacity::ServingRole;
use crate::key::VariantKey;
use crate::params::{LatencyTargets, QueueingModelPolicy};
use crate::queueing::observation::ReplicaObservation;
use crate::queueing::quantity::{Millis, RequestRate};
use crate::queueing::service::Workload;
use crate::queueing::targets::Latencies;
use crate::signal::SignalName;
use crate::total::total;
use crate::units::Replicas;
use crate::zero::ModelActivity;

/// Requests that an engine works on at once where its arguments do not say; vLLM's own default of
/// `max-num-seqs`.
pub(crate) const DEFAULT_BATCH: u32 = 256;

/// No replica is sent more requests per second than this; a higher rate is a broken series.
const MAX_RATE: f64 = 1e9;

#[derive(Debug, Clone, PartialEq)]
pub struct QueueingModelInput {
    pub policy: QueueingModelPolicy,
    pub class_targets: Option<LatencyTargets>,
    pub activity: ModelActivity,
    /// Its variants, with samples or without.
    pub variants: BTreeMap<VariantKey, QueueingVariantInput>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueingVariantInput {
    pub role: ServingRole,
    pub ready: Replicas,
    pub pending: Replicas,
    /// Requests that a replica works on at once; the engine's `max-num-seqs`.
    pub batch: Option<u32>,
    /// Its ready replicas, by pod.
    pub replicas: ByName<QueueingReplicaInput>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueingReplicaInput {
    /// Requests that the router sends it.
    pub rate: Option<RequestRate>,
    /// Mean tokens of a prompt.
    pub input_tokens: Option<f64>,
    /// Mean tokens of an answer.
    pub output_tokens: Option<f64>,
    pub time_to_first_token: Option<Millis>,
    pub inter_token_latency: Option<Millis>,
}

impl QueueingReplicaInput {
    pub(crate) fn lacking(&self) -> Option<SignalName> {
        let signals = [
            (self.rate.is_none(), SignalName::ArrivalRate),
            (self.input_tokens.is_none(), SignalName::InputTokens),
            (self.output_tokens.is_none(), SignalName::OutputTokens),
            (self.time_to_first_token.is_none(), SignalName::TimeToFirstToken),
            (self.inter_token_latency.is_none(), SignalName::InterTokenLatency),
        ];
        let lacking = signals.into_iter().find(|(is_missing, _)| *is_missing);
        lacking.map(|(_, signal)| signal)
    }

    fn busy_rate(&self) -> Option<RequestRate> {
        self.rate.filter(|rate| rate.0 > 0.0 && rate.0 <= MAX_RATE)
    }

    fn is_unknown(&self) -> bool {
        self.rate.is_none_or(|rate| !(0.0..=MAX_RATE).contains(&rate.0))
    }

    fn workload(&self) -> Option<Workload> {
        let usable = |tokens: &f64| *tokens >= 0.0 && tokens.is_finite();
        Some(Workload {
            input_tokens: self.input_tokens.filter(usable)?,
            output_tokens: self.output_tokens.filter(usable)?,
        })
    }

    fn latencies(&self) -> Option<Latencies> {
        let usable = |time: &Millis| time.0 > 0.0 && time.0.is_finite();
        Some(Latencies {
            time_to_first_token: self.time_to_first_token.filter(usable)?,
            inter_token_latency: self.inter_token_latency.filter(usable)?,
        })
    }
}

impl QueueingVariantInput {
    pub(crate) fn lacking(&self) -> impl Iterator<Item = (&Arc<str>, SignalName)> {
        let replicas = self.replicas.iter();
        replicas.filter_map(|(pod, replica)| Some((pod, replica.lacking()?)))
    }

    /// One observation for each busy replica that everything is known about, by pod.
    pub(in crate::queueing) fn observations(&self) -> Vec<ReplicaObservation> {
        let batch = self.batch.unwrap_or(DEFAULT_BATCH);
        let observations = self.replicas.values().filter_map(|replica| {
            let latencies = replica.latencies()?;
            Some(ReplicaObservation {
                rate: replica.busy_rate()?,
                workload: replica.workload()?,
                batch,
                time_to_first_token: latencies.time_to_first_token,
                inter_token_latency: latencies.inter_token_latency,
            })
        });
        observations.collect()
    }

    pub(super) fn demand(&self) -> RequestRate {
        RequestRate(total(self.busy_rates().map(|rate| rate.0)))
    }

    pub(super) fn busy(&self) -> Replicas {
        Replicas::from_len(self.busy_rates().count())
    }

    pub(super) fn unknown(&self) -> Replicas {
        let reporting = self.replicas.values().filter(|one| !one.is_unknown());
        self.ready.saturating_sub(Replicas::from_len(reporting.count()))
    }

    pub(super) fn workload(&self) -> Option<Workload> {
        mean_request(self.replicas.values())
    }

    fn busy_rates(&self) -> impl Iterator<Item = RequestRate> {
        self.replicas.values().filter_map(QueueingReplicaInput::busy_rate)
    }
}

impl QueueingModelInput {
    pub(super) fn whole(&self) -> impl Iterator<Item = (&VariantKey, &QueueingVariantInput)> {
        let variants = self.variants.iter();
        variants.filter(|(_, variant)| variant.role == ServingRole::Both)
    }

    pub(super) fn workload(&self) -> Option<Workload> {
        mean_request(self.replicas())
    }

    pub(super) fn latencies(&self) -> Option<Latencies> {
        weighted(
            self.replicas()
                .filter_map(|replica| Some((replica.busy_rate()?, replica.latencies()?))),
        )
    }

    fn replicas(&self) -> impl Iterator<Item = &QueueingReplicaInput> {
        self.variants.values().flat_map(|variant| variant.replicas.values())
    }
}

fn mean_request<'a>(replicas: impl Iterator<Item = &'a QueueingReplicaInput>) -> Option<Workload> {
    let (mut weight, mut input, mut output) = (0.0, 0.0, 0.0);
    for replica in replicas {
        if let (Some(RequestRate(rate)), Some(work)) = (replica.busy_rate(), replica.workload()) {
            weight += rate;
            input += rate * work.input_tokens;
            output += rate * work.output_tokens;
        }
    }
    (weight > 0.0)
        .then(|| Workload { input_tokens: input / weight, output_tokens: output / weight })
}

fn weighted(parts: impl Iterator<Item = (RequestRate, Latencies)>) -> Option<Latencies> {
    let (mut weight, mut first, mut step) = (0.0, 0.0, 0.0);
    for (RequestRate(rate), latencies) in parts {
        weight += rate;
        first += rate * latencies.time_to_first_token.0;
        step += rate * latencies.inter_token_latency.0;
    }
    (weight > 0.0).then(|| Latencies {
        time_to_first_token: Millis(first / weight),
        inter_token_latency: Millis(step / weight),
    })
}
