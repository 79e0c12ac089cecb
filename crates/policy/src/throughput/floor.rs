//! The throughput floor: replicas that the load needs, whatever the size of the fleet. Occupancy and
//! queues shrink as a fleet grows; arrivals and the rate of one full replica do not.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::combine::Band;
use crate::rounding;
use crate::units::Replicas;

/// Least time in which a backlog has to be worked off.
pub(crate) const MIN_HORIZON: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct FloorLoad {
    /// Requests per second, counted when they are accepted.
    pub arrivals: f64,
    /// Requests that wait, in engines and in the router.
    pub backlog: f64,
}

impl FloorLoad {
    /// Requests per second, with the backlog worked off within a time of at least [`MIN_HORIZON`].
    pub(crate) fn rate(self, horizon: Duration) -> f64 {
        self.arrivals + self.backlog / horizon.max(MIN_HORIZON).as_secs_f64()
    }

    /// Replicas that it needs, before any threshold; none without a service rate, which is no
    /// opinion and not zero. The size of the fleet is not among the inputs.
    pub(crate) fn replicas(self, rate_per_replica: f64, horizon: Duration) -> Option<f64> {
        (rate_per_replica.is_finite() && rate_per_replica > 0.0)
            .then(|| self.rate(horizon) / rate_per_replica)
    }
}

/// Requests that replicas of one kind serve within `start`. `remaining` holds, for each replica on
/// its way, the time until it is ready.
pub(crate) fn served(
    rate_per_replica: f64,
    ready: Replicas,
    remaining: &[Duration],
    start: Duration,
) -> f64 {
    let begun: f64 = (remaining.iter()).map(|left| start.saturating_sub(*left).as_secs_f64()).sum();
    rate_per_replica * ready.to_f64().mul_add(start.as_secs_f64(), begun)
}

/// What the load will be when a replica ordered now is ready.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Landing {
    /// Requests that will still wait then.
    pub backlog: f64,
    /// Requests per second to be served from then on, with that backlog worked off within the
    /// horizon.
    pub rate: f64,
}

impl Landing {
    /// Projects a load; `served` is what the fleet serves within `start`.
    pub(crate) fn of(load: FloorLoad, served: f64, start: Duration) -> Self {
        let arrived = load.arrivals * start.as_secs_f64();
        let then = FloorLoad { backlog: (load.backlog + arrived - served).max(0.0), ..load };
        Self { backlog: then.backlog, rate: then.rate(start) }
    }
}

/// Replicas that a queue in the router orders while the service rate is not proven: as many as work
/// it off within [`MIN_HORIZON`], at least one, where it is more than a second's work; else none.
pub(crate) fn queue_order(router_queue: f64, arrivals: f64, rate_per_replica: f64) -> Replicas {
    if rate_per_replica > 0.0 && router_queue > arrivals.max(rate_per_replica) {
        let per_replica = rate_per_replica * MIN_HORIZON.as_secs_f64();
        Replicas(rounding::floor(router_queue / per_replica).max(1))
    } else {
        Replicas::ZERO
    }
}

/// Distance to the edges of the band, so that rounding never orders or releases a replica.
pub(crate) const MARGIN: f64 = 1e-9;

/// Moves a demand into `[scale_down * supply, scale_up * anticipated]`.
pub(crate) fn hold(demand: f64, supply: f64, anticipated: f64, band: Band) -> f64 {
    let held = demand.min(orders_nothing(anticipated, band));
    held.max(band.scale_down * supply * (1.0 + MARGIN))
}

/// The largest demand at which nothing is ordered.
pub(crate) fn orders_nothing(anticipated: f64, band: Band) -> f64 {
    band.scale_up * anticipated * (1.0 - MARGIN)
}
