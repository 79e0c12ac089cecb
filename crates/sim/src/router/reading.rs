//! What a router or a dashboard wants to know of a pool.

use super::handover::Handover;
use super::pool::{Endpoint, RouterPool, ready};
use crate::number;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PoolReading {
    pub(crate) held: usize,
    /// Requests that servers have, in their queues or running.
    pub(crate) dispatched: usize,
    /// Servers that take requests.
    pub(crate) ready: usize,
    /// Mean queue per ready server.
    pub(crate) queue: f64,
    /// Shortest queue of a ready server; 0 without any.
    pub(crate) shortest_queue: f64,
    /// Mean KV usage of ready servers, 0 to 1.
    pub(crate) kv_usage: f64,
    /// Mean of running requests per ready server.
    pub(crate) running: f64,
}

impl RouterPool {
    /// How full the ready servers of the fullest role are, 1 at the set point; 1 without any.
    pub(super) fn saturation(&self) -> f64 {
        let control = self.spec.flow_control.unwrap_or_default();
        let full = |(_, endpoint): (&String, &Endpoint)| {
            let reading = endpoint.engine.reading();
            let queue = number::length(reading.waiting) / control.queue_depth.max(f64::EPSILON);
            queue.max(reading.kv_usage / control.kv_usage.max(f64::EPSILON))
        };
        let roles = self.roles().iter();
        let means = roles.map(|role| mean(ready(&self.endpoints, *role).map(full)).unwrap_or(1.0));
        means.fold(0.0, f64::max)
    }

    pub(crate) fn reading(&self) -> PoolReading {
        let serving = self.endpoints.values().filter(|one| one.serves());
        let readings = serving.map(|endpoint| endpoint.engine.reading());
        let readings: Vec<_> = readings.collect();
        let of = |value: fn(&crate::engine::EngineReading) -> f64| {
            mean(readings.iter().map(value)).unwrap_or(0.0)
        };
        PoolReading {
            held: self.queue.len(),
            dispatched: self.dispatched.len() + self.handover.as_ref().map_or(0, Handover::moving),
            ready: readings.len(),
            queue: of(|reading| number::length(reading.waiting)),
            shortest_queue: least(readings.iter().map(|one| number::length(one.waiting))),
            kv_usage: of(|reading| reading.kv_usage),
            running: of(|reading| number::length(reading.running)),
        }
    }
}

/// The least of these; 0 without any.
pub(crate) fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.reduce(f64::min).unwrap_or(0.0)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}
