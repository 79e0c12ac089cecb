//! Latencies of one replica at a request rate.

use serde::{Deserialize, Serialize};

use super::bisection::TOLERANCE;
use super::chain::{BirthDeathQueue, Equilibrium, QueueError};
use super::quantity::{Millis, RequestRate};
use super::service::{InvalidModel, ReplicaRoom, ServiceParameters, Workload};

/// Distance of the rates that can be analysed from an idle and from a full replica.
pub(crate) const RATE_MARGIN: f64 = 1e-3;

/// One replica under one kind of request.
#[derive(Debug, Clone)]
pub struct ReplicaModel {
    parameters: ServiceParameters,
    pub(super) workload: Workload,
    batch: f64,
    queue: BirthDeathQueue,
}

/// Request rates that sizing searches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateRange {
    /// Nearly idle.
    pub min: RequestRate,
    /// Nearly as fast as the replica can.
    pub max: RequestRate,
}

/// How a replica does at one request rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Performance {
    /// Requests that find room.
    pub throughput: RequestRate,
    /// Mean time from arrival to the last token.
    pub response_time: Millis,
    pub wait_time: Millis,
    /// Mean number of requests worked on.
    pub in_service: f64,
    pub prefill_time: Millis,
    pub inter_token_latency: Millis,
    pub time_to_first_token: Millis,
    /// Share of the batch that is in use, 0 to 1.
    pub utilisation: f64,
    /// Highest rate that can be analysed.
    pub max_rate: RequestRate,
}

/// A rate that cannot be analysed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PerformanceError {
    #[error(transparent)]
    Model(#[from] InvalidModel),
    #[error("invalid request rate: {0} must be above 0")]
    Rate(RequestRate),
    #[error("request rate {rate} is above the maximum of {max} of one replica")]
    TooFast { rate: RequestRate, max: RequestRate },
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl ReplicaModel {
    /// # Errors
    /// If a parameter, the workload or the shape is impossible.
    pub fn new(
        parameters: ServiceParameters,
        workload: Workload,
        shape: ReplicaRoom,
    ) -> Result<Self, PerformanceError> {
        let rates = parameters.rates(workload, shape)?;
        Ok(Self {
            parameters,
            workload,
            batch: f64::from(shape.batch),
            queue: BirthDeathQueue::new(rates, shape.batch.saturating_add(shape.queue))?,
        })
    }

    /// The rates that sizing searches.
    pub fn range(&self) -> RateRange {
        RateRange {
            min: RequestRate::from_per_milli(self.queue.first_rate() * RATE_MARGIN),
            max: RequestRate::from_per_milli(self.queue.full_rate() * (1.0 - RATE_MARGIN)),
        }
    }

    /// Latencies at a request rate.
    ///
    /// # Errors
    /// If the rate is not above zero, or above what the replica can do.
    pub fn analyze(&self, rate: RequestRate) -> Result<Performance, PerformanceError> {
        let max = self.range().max;
        if rate.0.is_nan() || rate.0 <= 0.0 {
            return Err(PerformanceError::Rate(rate));
        }
        // A maximum that went through fewer digits is still the maximum.
        if rate.0 > max.0 * (1.0 + TOLERANCE) {
            return Err(PerformanceError::TooFast { rate, max });
        }
        Ok(self.read(&self.queue.solve(rate.per_milli())?, max))
    }

    fn read(&self, queue: &Equilibrium, max_rate: RequestRate) -> Performance {
        let prefill = self.parameters.prefill(self.workload, queue.in_service).0;
        let step = (queue.service_time - prefill) / self.workload.output_tokens;
        Performance {
            throughput: RequestRate::from_per_milli(queue.throughput),
            response_time: Millis(queue.response_time),
            wait_time: Millis(queue.wait_time),
            in_service: queue.in_service,
            prefill_time: Millis(prefill),
            inter_token_latency: Millis(step),
            time_to_first_token: Millis(queue.wait_time + prefill + step),
            utilisation: (queue.in_service / self.batch).clamp(0.0, 1.0),
            max_rate,
        }
    }
}
