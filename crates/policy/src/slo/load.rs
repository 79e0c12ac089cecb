//! What one collection reports about the load of a model.

use std::sync::Arc;
use std::time::Duration;

use super::demand::{DemandObservation, ReplicaQueues};
use crate::capacity::ServingRole;
use crate::rounding;
use crate::signal::SignalName;
use crate::throughput::shape::RequestShape;
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput};

/// What one collection reports about the requests of a model, summed over its replicas.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedLoad {
    pub(super) observation: DemandObservation,
    /// Requests that wait in replicas, as far as these say.
    waiting: f64,
}

impl ObservedLoad {
    /// One pass, since a fleet has many replicas.
    pub(super) fn of(input: &ThroughputModelInput) -> Self {
        let replicas = input.variants.values().map(|variant| variant.replicas.len());
        let answers = Vec::with_capacity(replicas.sum());
        let mut sums = Sums { answers, ..Sums::default() };
        for variant in input.variants.values() {
            for replica in variant.replicas.values() {
                sums.add(variant.role, replica);
            }
        }
        let completions = sums.completions.known();
        let answered = sums.answered.known();
        // Where prompts are read apart, a request is placed and completed twice. Replicas that do whole requests are
        // placed what those that read prompts are not.
        let read = (sums.read.known()).filter(|_| answered.is_some() || !sums.has_whole);
        let placed = [answered, read].into_iter().flatten().reduce(f64::max);
        let observation = DemandObservation {
            arrivals: (input.arrivals)
                .or(placed)
                .or(completions)
                .filter(|rate| rate.is_finite() && *rate >= 0.0),
            completions,
            placed,
            generated: sums.generated.known(),
            in_flight: sums.in_flight.known(),
            queue: input.router_queue,
            queue_age: input.router_queue_age,
            waiting: (sums.waiting.known())
                .map(|requests| ReplicaQueues { requests, replicas: sums.waiting.replicas }),
            shape: sums.shape(),
            // In whole seconds, so that records of it stay small.
            answering: Duration::from_secs(u64::from(rounding::ceil(sums.answering))),
        };
        Self { observation, waiting: sums.backlog }
    }

    /// Requests that wait anywhere.
    pub(super) fn backlog(&self) -> f64 {
        self.observation.queue.unwrap_or(0.0) + self.waiting
    }
}

/// Replicas that generate and show how fast, and not how much: what they hold might be more than is seen.
pub(crate) fn hidden_sequences(
    input: &ThroughputModelInput,
) -> impl Iterator<Item = (&Arc<str>, SignalName)> {
    let generating = (input.variants.values()).filter(|given| given.role != ServingRole::Prefill);
    let replicas = generating.flat_map(|given| given.replicas.iter());
    let hiding = replicas.filter(|(_, replica)| {
        replica.inter_token_latency.is_some() && replica.decode_rate.is_none()
    });
    hiding.map(|(pod, _)| (pod, SignalName::GenerationRate))
}

/// The sum of what each of some replicas says: a part of them would be a lower rate than the one of all.
#[derive(Debug, Default)]
struct FullSum {
    sum: f64,
    replicas: u32,
    is_partial: bool,
}

impl FullSum {
    fn add(&mut self, said: Option<f64>) {
        self.sum += said.unwrap_or(0.0);
        self.replicas += 1;
        self.is_partial |= said.is_none();
    }

    fn known(&self) -> Option<f64> {
        (self.replicas > 0 && !self.is_partial).then_some(self.sum)
    }
}

#[derive(Debug, Default)]
struct Sums {
    /// Of replicas that generate.
    completions: FullSum,
    answered: FullSum,
    generated: FullSum,
    /// The longest time for a mean answer, in seconds.
    answering: f64,
    /// Requests sent to those that read prompts alone.
    read: FullSum,
    /// Of all of them.
    in_flight: FullSum,
    waiting: FullSum,
    backlog: f64,
    has_whole: bool,
    /// Mean requests with their weights, of those that generate and of those that read prompts.
    answers: Vec<(RequestShape, f64)>,
    prompts: Vec<(RequestShape, f64)>,
}

impl Sums {
    fn add(&mut self, role: ServingRole, replica: &ThroughputReplicaInput) {
        let backlog = replica.backlog();
        self.in_flight.add(replica.running.map(|running| running + backlog));
        self.waiting.add(replica.waiting);
        self.backlog += backlog;
        self.has_whole |= role == ServingRole::Both;
        if role == ServingRole::Prefill {
            self.read.add(replica.arrivals);
            self.prompts.extend(replica.shape());
            return;
        }
        self.completions.add(replica.completions);
        self.answered.add(replica.arrivals);
        self.generated.add(replica.decode_rate);
        self.answers.extend(replica.shape());
        let answer = replica.output_tokens.zip(replica.inter_token_latency);
        let seconds = answer.map_or(0.0, |(tokens, latency)| tokens * latency);
        self.answering = self.answering.max(seconds);
    }

    /// The mean request: its answer as the generating replicas see it, its prompt as those that read it.
    fn shape(&self) -> Option<RequestShape> {
        let answer = RequestShape::weighted(&self.answers)?;
        Some(match RequestShape::weighted(&self.prompts) {
            Some(prompt) => RequestShape { output: answer.output, ..prompt },
            None => answer,
        })
    }
}
