//! The work that one replica does within the objectives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SloGoal;
use super::curve::{LatencyCurve, LatencyLaw};
use super::work;
use crate::capacity::ServingRole;
use crate::key::VariantKey;
use crate::throughput::ThroughputVariantInput;
use crate::throughput::shape::RequestShape;
use crate::units::Replicas;
use wva_base::moment::Moment;

/// Largest share of the most work at which the latency law is read.
const MOST_UTILIZATION: f64 = 0.99;
/// The least objective that replicas are sized for, to the time between tokens of an idle one: nearer to it each would
/// hold hardly more than one sequence, and below it no count helps.
pub(super) const NEAREST_OBJECTIVE: f64 = 1.1;
/// Largest utilization at which prompts are read.
const MAX_PREFILL_UTILIZATION: f64 = 0.9;
/// The least part of the time for a prompt that another one may wait for it, whatever the objective: half the
/// utilization. Below, a replica more gains next to nothing, and prompts a little longer would order many.
const LEAST_PREFILL_ROOM: f64 = 0.5;

/// Work for its price of a variant that never served, to that of the best one.
const GUESSED_WORTH: f64 = 0.5;

wva_base::named! {
    /// What limits a replica.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum CapacityBound {
        /// The latency of a token reaches its objective.
        TokenLatency = "the time between tokens",
        /// Its sequences or its KV cache are used up.
        Sequences = "its sequences or KV cache",
        /// Requests were seen to wait at this concurrency.
        ObservedQueue = "requests that waited",
        /// The time to the first token reaches its objective.
        FirstToken = "the time to the first token",
        /// It was not seen without a queue: what it reads all the same.
        Reading = "a first guess by what it reads, since it was not seen without a queue",
        /// It never served: its cost, at half the work for the price of the best variant of its role.
        Cost = "a guess by its cost, since it never served",
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
    /// Seconds between tokens of an empty one; 0 where that is not known.
    #[serde(default)]
    pub idle: f64,
    /// What limits it.
    pub bound: CapacityBound,
    /// Whether it is more than a replica was seen to do, by a latency that is assumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_assumed: bool,
}

impl SloCapacity {
    /// Work per second with so many sequences at once; below the concurrency within the objectives.
    pub(super) fn work_of(&self, sequences: f64) -> f64 {
        let law = LatencyLaw {
            idle: self.idle,
            most: self.per_second / (1.0 - self.idle / self.latency),
            is_assumed: self.is_assumed,
        };
        let generated = self.concurrency / (self.per_second * self.latency);
        law.work_of(sequences, generated)
    }
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
        ServingRole::Prefill => {
            let seconds = prompt_seconds?.min(given.most_prompt_seconds().unwrap_or(f64::INFINITY));
            prefill(seconds, shape, goal)
        }
        ServingRole::Decode | ServingRole::Both => generating(given, curve, (shape, goal), now),
    }
}

/// A first guess of variants that never served, by their costs: half the work for the price of the best `known` one of
/// their role, and no more than the largest known one, so that each is ordered only where no other can grow, and counts
/// once it is on its way. And of prefill whose prompts have waited since it was seen first, where decode is known.
pub fn guesses(
    variants: &BTreeMap<VariantKey, ThroughputVariantInput>,
    known: &BTreeMap<VariantKey, SloCapacity>,
    (shape, goal): (RequestShape, SloGoal),
) -> BTreeMap<VariantKey, SloCapacity> {
    let cost = |given: &ThroughputVariantInput| {
        let cost = given.cost?.millionths();
        (cost > 0.0).then_some(cost)
    };
    let best = |role: ServingRole| {
        let own = known.iter().filter_map(|(key, one)| {
            let given = variants.get(key).filter(|given| given.role == role)?;
            Some(one.per_second / cost(given)?)
        });
        own.reduce(f64::max)
    };
    let largest = |role: ServingRole| {
        let own = known
            .iter()
            .filter(|(key, _)| variants.get(*key).is_some_and(|given| given.role == role));
        own.map(|(_, one)| one.per_second).fold(0.0, f64::max)
    };
    let unknown = || variants.iter().filter(|(key, _)| !known.contains_key(*key));
    let generates = known.values().any(|one| one.concurrency > 0.0);
    let busy = unknown().filter(|(_, given)| generates && given.role == ServingRole::Prefill);
    let busy = busy.filter_map(|(key, given)| {
        let guess = SloCapacity {
            bound: CapacityBound::Reading,
            ..prefill(given.most_prompt_seconds()?, shape, goal)?
        };
        Some((key.clone(), guess))
    });
    // What serves is learned soon, and is not released against a guess until then.
    let asleep = unknown().filter(|(_, given)| given.ready == Replicas::ZERO);
    let guessed = asleep.filter_map(|(key, given)| {
        let by_cost = GUESSED_WORTH * best(given.role)? * cost(given)?;
        let per_second = by_cost.min(largest(given.role));
        let guess = SloCapacity {
            per_second,
            saturated: per_second,
            concurrency: 0.0,
            latency: 0.0,
            idle: 0.0,
            bound: CapacityBound::Cost,
            is_assumed: false,
        };
        Some((key.clone(), guess))
    });
    guessed.chain(busy).collect()
}

fn generating(
    given: &ThroughputVariantInput,
    curve: &LatencyCurve,
    (shape, goal): (RequestShape, SloGoal),
    now: Moment,
) -> Option<SloCapacity> {
    let per_request = work::of_request(given.role, shape);
    let generated = shape.output / per_request;
    let resident = given.resident_sequences(shape);
    let law = curve.law(resident, goal.inter_token_latency, now)?;
    let objective = (goal.inter_token_latency).max(law.idle * NEAREST_OBJECTIVE);
    let sequences = given.full_sequences(shape);
    let one = law.work_of(1.0, generated);
    let within = law.work_within(objective).max(one);
    let by_sequences =
        sequences.map(|most| (law.work_of(most, generated), CapacityBound::Sequences));
    let by_queue = (curve.full()).map(|full| (full, CapacityBound::ObservedQueue));
    let utmost = [by_sequences, by_queue].into_iter().flatten();
    let utmost = utmost.min_by(|one, other| one.0.total_cmp(&other.0));
    let (per_second, bound) = match utmost {
        Some((most, bound)) if most < within => (most, bound),
        _ => (within, CapacityBound::TokenLatency),
    };
    let latency = law.at(per_second.min(law.most * MOST_UTILIZATION));
    (per_second.is_finite() && per_second > 0.0).then_some(SloCapacity {
        per_second,
        saturated: utmost.map_or(per_second, |most| most.0).max(per_second),
        concurrency: per_second * generated * latency,
        latency,
        idle: law.idle,
        bound,
        is_assumed: law.is_assumed && per_second > curve.most(),
    })
}

/// Prompts are read one after the other, so that one waits `rho / (2 (1 - rho))` times the reading of
/// another one on average (M/D/1). Solved for the largest `rho` that keeps the objective.
fn prefill(prompt_seconds: f64, shape: RequestShape, goal: SloGoal) -> Option<SloCapacity> {
    let tokens = shape.effective_input();
    let reading = prompt_seconds * tokens;
    // A prompt that takes about as long as its objective, or longer, is read all the same: more replicas would not let
    // it meet that.
    let room = (goal.time_to_first_token / reading - 1.0).max(LEAST_PREFILL_ROOM);
    let utilization = (2.0 * room / (1.0 + 2.0 * room)).min(MAX_PREFILL_UTILIZATION);
    let per_second = utilization / prompt_seconds;
    (per_second.is_finite() && per_second > 0.0).then_some(SloCapacity {
        per_second,
        saturated: prompt_seconds.recip(),
        concurrency: 0.0,
        latency: reading,
        idle: 0.0,
        bound: CapacityBound::FirstToken,
        is_assumed: false,
    })
}
