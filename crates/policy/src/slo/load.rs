//! What one collection says of the load of a model.

use std::time::Duration;

use super::demand::{DemandObservation, ReplicaQueues};
use crate::capacity::ServingRole;
use crate::rounding;
use crate::throughput::shape::RequestShape;
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput};
use crate::total::total;

/// Sums over the replicas of a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelLoad {
    arrivals: Option<f64>,
    completions: f64,
    placed: Option<f64>,
    generated: Option<f64>,
    in_flight: Option<f64>,
    pub(super) queue: Option<f64>,
    queue_age: Duration,
    pub(super) waiting: f64,
    queues: Option<ReplicaQueues>,
    shape: Option<RequestShape>,
    answering: Duration,
}

impl ModelLoad {
    pub(super) fn of(input: &ThroughputModelInput) -> Self {
        let replicas = || {
            let variants = input.variants.values();
            variants.flat_map(|variant| variant.replicas.values().map(|one| (variant.role, one)))
        };
        // A part of the replicas would be a lower rate than the one of all.
        let all = |known: Option<Vec<f64>>| {
            let known = known.filter(|known| !known.is_empty())?;
            Some(total(known.into_iter()))
        };
        let generating = || replicas().filter(|(role, _)| *role != ServingRole::Prefill);
        let reading = || replicas().filter(|(role, _)| *role == ServingRole::Prefill);
        // Where prompts are read apart, a request is placed and completed twice. Replicas that do whole requests are
        // placed what those that read prompts are not.
        let has_whole = replicas().any(|(role, _)| role == ServingRole::Both);
        let completions = all(generating().map(|(_, one)| one.completions).collect());
        let answered = all(generating().map(|(_, one)| one.arrivals).collect());
        let read = all(reading().map(|(_, one)| one.arrivals).collect());
        let read = read.filter(|_| answered.is_some() || !has_whole);
        let placed = [answered, read].into_iter().flatten().reduce(f64::max);
        let in_flight =
            |replica: &ThroughputReplicaInput| Some(replica.running? + replica.backlog());
        Self {
            arrivals: (input.arrivals)
                .or(placed)
                .or(completions)
                .filter(|rate| rate.is_finite() && *rate >= 0.0),
            completions: completions.unwrap_or(0.0),
            placed,
            generated: all(generating().map(|(_, one)| one.decode_rate).collect()),
            in_flight: all(replicas().map(|(_, one)| in_flight(one)).collect()),
            queue: input.router_queue,
            queue_age: input.router_queue_age,
            waiting: total(replicas().map(|(_, one)| one.backlog())),
            queues: all(replicas().map(|(_, one)| one.waiting).collect()).map(|requests| {
                ReplicaQueues {
                    requests,
                    replicas: u32::try_from(replicas().count()).unwrap_or(u32::MAX),
                }
            }),
            shape: shape(replicas()),
            answering: answering(generating().map(|(_, one)| one)),
        }
    }

    pub(super) fn observation(&self) -> DemandObservation {
        DemandObservation {
            arrivals: self.arrivals,
            completions: self.completions,
            placed: self.placed,
            generated: self.generated,
            in_flight: self.in_flight,
            queue: self.queue,
            queue_age: self.queue_age,
            waiting: self.queues,
            shape: self.shape,
            answering: self.answering,
        }
    }

    /// Requests that wait anywhere.
    pub(super) fn backlog(&self) -> f64 {
        self.queue.unwrap_or(0.0) + self.waiting
    }
}

/// Whether a replica that generates shows how fast, and not how much: what it holds might be more than is seen.
pub(crate) fn hides_sequences(input: &ThroughputModelInput) -> bool {
    let generating = (input.variants.values()).filter(|given| given.role != ServingRole::Prefill);
    let mut replicas = generating.flat_map(|given| given.replicas.values());
    replicas.any(|replica| replica.inter_token_latency.is_some() && replica.decode_rate.is_none())
}

/// The mean request: its answer as the generating replicas see it, its prompt as those that read it.
fn shape<'a>(
    replicas: impl Iterator<Item = (ServingRole, &'a ThroughputReplicaInput)>,
) -> Option<RequestShape> {
    let (reading, generating): (Vec<_>, Vec<_>) = replicas
        .filter_map(|(role, replica)| Some((role, replica.shape()?)))
        .partition(|(role, _)| *role == ServingRole::Prefill);
    let mean = |shapes: &[(ServingRole, (RequestShape, f64))]| {
        let shapes: Vec<_> = shapes.iter().map(|(_, weighted)| *weighted).collect();
        RequestShape::weighted(&shapes)
    };
    let answer = mean(&generating)?;
    Some(match mean(&reading) {
        Some(prompt) => RequestShape {
            output: answer.output,
            ..prompt
        },
        None => answer,
    })
}

/// The longest time that a replica takes for a mean answer, in whole seconds, so that records of it stay small.
fn answering<'a>(replicas: impl Iterator<Item = &'a ThroughputReplicaInput>) -> Duration {
    let seconds = replicas.filter_map(|one| Some(one.output_tokens? * one.inter_token_latency?));
    let longest = seconds.fold(0.0, f64::max);
    Duration::from_secs(u64::from(rounding::ceil(longest)))
}
