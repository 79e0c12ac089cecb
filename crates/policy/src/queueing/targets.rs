//! Latency targets of a model: stated, taken from its service class, or inferred.

use serde::{Deserialize, Serialize};

use super::quantity::Millis;
use super::service::{ServiceParameters, Workload};
use super::sizing::Targets;
use crate::params::{LatencyTargets, QueueingModelPolicy};

/// Factor between observed latencies and targets, where nothing else is known.
const OBSERVED_FACTOR: f64 = 1.5;

/// Longest targets that are taken from observed latencies.
const OBSERVED_CAPS: Latencies =
    Latencies { time_to_first_token: Millis(10_000.0), inter_token_latency: Millis(500.0) };

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    pub time_to_first_token: Millis,
    pub inter_token_latency: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetSource {
    /// The model's entry of the queueing-model ConfigMap.
    Explicit,
    ServiceClass,
    /// Learned parameters, times the multiplier.
    Learned,
    /// Observed latencies, with a margin.
    Observed,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelTargets {
    pub latencies: Latencies,
    pub source: TargetSource,
}

/// The targets that apply, by the first source that has any: stated for the model, its service
/// class, the parameters learned of its variants, its observed latencies.
pub(crate) fn model_targets(
    policy: &QueueingModelPolicy,
    class: Option<LatencyTargets>,
    learned: impl IntoIterator<Item = (ServiceParameters, Workload)>,
    observed: Option<Latencies>,
) -> Option<ModelTargets> {
    let found = |source| move |latencies| ModelTargets { latencies, source };
    let stated = policy.targets.map(Latencies::from);
    stated
        .map(found(TargetSource::Explicit))
        .or_else(|| class.map(Latencies::from).map(found(TargetSource::ServiceClass)))
        .or_else(|| {
            learned
                .into_iter()
                .map(|(parameters, work)| inferred(&parameters, work, policy.slo_multiplier))
                .filter(Latencies::is_usable)
                .reduce(|one, other| one.zip(other, f64::max))
                .map(found(TargetSource::Learned))
        })
        .or_else(|| {
            observed
                .filter(Latencies::is_usable)
                .map(from_observed)
                .map(found(TargetSource::Observed))
        })
}

/// What a replica with these parameters does when its iterations take `multiplier` times as long as
/// empty ones.
pub(crate) fn inferred(
    parameters: &ServiceParameters,
    work: Workload,
    multiplier: f64,
) -> Latencies {
    let ServiceParameters { alpha, beta, gamma } = *parameters;
    let read = work.input_tokens + f64::midpoint(work.output_tokens, 1.0);
    Latencies {
        time_to_first_token: Millis(multiplier * alpha + (beta + gamma) * work.input_tokens),
        inter_token_latency: Millis(multiplier * alpha + beta + gamma * read),
    }
}

pub(crate) fn from_observed(observed: Latencies) -> Latencies {
    observed.zip(OBSERVED_CAPS, |latency, cap| (latency * OBSERVED_FACTOR).min(cap))
}

impl Latencies {
    fn is_usable(&self) -> bool {
        let both = [self.time_to_first_token.0, self.inter_token_latency.0];
        both.iter().all(|value| *value > 0.0 && value.is_finite())
    }

    /// Combines each latency with the same one of another pair, in milliseconds.
    fn zip(self, other: Self, of: fn(f64, f64) -> f64) -> Self {
        let both = |one: Millis, other: Millis| Millis(of(one.0, other.0));
        Self {
            time_to_first_token: both(self.time_to_first_token, other.time_to_first_token),
            inter_token_latency: both(self.inter_token_latency, other.inter_token_latency),
        }
    }
}

impl From<LatencyTargets> for Latencies {
    fn from(targets: LatencyTargets) -> Self {
        Self {
            time_to_first_token: targets.time_to_first_token.into(),
            inter_token_latency: targets.inter_token_latency.into(),
        }
    }
}

impl From<Latencies> for Targets {
    fn from(latencies: Latencies) -> Self {
        Self {
            time_to_first_token: Some(latencies.time_to_first_token),
            inter_token_latency: Some(latencies.inter_token_latency),
            tokens_per_second: None,
        }
    }
}
