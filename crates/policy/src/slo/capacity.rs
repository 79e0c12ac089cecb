//! The work that one replica does within the objectives.

use serde::{Deserialize, Serialize};

use super::SloGoal;
use super::curve::LatencyCurve;
use super::work;
use crate::capacity::ServingRole;
use crate::throughput::ThroughputVariantInput;
use crate::throughput::shape::RequestShape;
use wva_base::moment::Moment;

/// Largest utilization at which prompts are read.
const MAX_PREFILL_UTILIZATION: f64 = 0.9;

/// What limits a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityBound {
    /// The latency of a token reaches its objective.
    TokenLatency,
    /// Its sequences or its KV cache are used up.
    Sequences,
    /// Requests were seen to wait at this concurrency.
    ObservedQueue,
    /// The time to the first token reaches its objective.
    FirstToken,
}

impl CapacityBound {
    /// The bound in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenLatency => "the time between tokens",
            Self::Sequences => "its sequences or KV cache",
            Self::ObservedQueue => "requests that waited",
            Self::FirstToken => "the time to the first token",
        }
    }
}

/// What one replica does within the objectives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SloCapacity {
    /// Work per second within the objectives, in the tokens of [`work`].
    pub per_second: f64,
    /// Work per second, however long tokens take: what it does while requests wait.
    pub saturated: f64,
    /// Sequences generated at once; 0 for prefill.
    pub concurrency: f64,
    /// Seconds between tokens then; for prefill, seconds for the prompt.
    pub latency: f64,
    /// What limits it.
    pub bound: CapacityBound,
}

/// What one replica does, by the latency that was learned; none while too little is known.
pub fn of(
    given: &ThroughputVariantInput,
    curve: &LatencyCurve,
    prompt_seconds: Option<f64>,
    (shape, goal): (RequestShape, SloGoal),
    now: Moment,
) -> Option<SloCapacity> {
    match given.role {
        ServingRole::Prefill => prefill(prompt_seconds?, shape, goal),
        ServingRole::Decode | ServingRole::Both => generating(given, curve, (shape, goal), now),
    }
}

fn generating(
    given: &ThroughputVariantInput,
    curve: &LatencyCurve,
    (shape, goal): (RequestShape, SloGoal),
    now: Moment,
) -> Option<SloCapacity> {
    let sequences = given.full_sequences(shape);
    let line = curve.line(given.resident_sequences(shape), now)?;
    let by_latency = line
        .asymptotic_rate()
        .map(|rate| (goal.inter_token_latency - line.intercept) * rate)
        .map(|concurrency| (concurrency.max(1.0), CapacityBound::TokenLatency));
    let by_sequences = sequences.map(|most| (most, CapacityBound::Sequences));
    let by_queue = (curve.full()).map(|full| (full, CapacityBound::ObservedQueue));
    let least = |bounds: [Option<(f64, CapacityBound)>; 3]| {
        let bounds = bounds.into_iter().flatten();
        bounds.min_by(|one, other| one.0.total_cmp(&other.0))
    };
    let rate = |concurrency: f64| {
        let requests = concurrency / line.at(concurrency) / shape.output;
        requests * work::of_request(given.role, shape)
    };
    let (concurrency, bound) = least([by_latency, by_sequences, by_queue])?;
    let latency = line.at(concurrency);
    let per_second = rate(concurrency);
    let saturated = least([None, by_sequences, by_queue]).map_or(per_second, |most| rate(most.0));
    (per_second.is_finite() && per_second > 0.0).then_some(SloCapacity {
        per_second,
        saturated: saturated.max(per_second),
        concurrency,
        latency,
        bound,
    })
}

/// Prompts are read one after the other, so that one waits `rho / (2 (1 - rho))` times the reading of
/// another one on average (M/D/1). Solved for the largest `rho` that keeps the objective.
fn prefill(prompt_seconds: f64, shape: RequestShape, goal: SloGoal) -> Option<SloCapacity> {
    let tokens = shape.effective_input();
    let reading = prompt_seconds * tokens;
    let room = goal.time_to_first_token / reading - 1.0;
    let utilization = (2.0 * room / (1.0 + 2.0 * room)).min(MAX_PREFILL_UTILIZATION);
    // A prompt that takes longer than its objective is read all the same, one at a time.
    let utilization = if room > 0.0 { utilization } else { 0.5 };
    let per_second = utilization / prompt_seconds;
    (per_second.is_finite() && per_second > 0.0).then_some(SloCapacity {
        per_second,
        saturated: prompt_seconds.recip(),
        concurrency: 0.0,
        latency: reading,
        bound: CapacityBound::FirstToken,
    })
}
