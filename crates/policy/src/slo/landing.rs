//! What waits at the moment at which a replica that is ordered now becomes ready.

use std::time::Duration;

/// A replica on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StartingReplica {
    /// Time until it is ready.
    pub remaining: Duration,
    /// Work per second that it does from then on.
    pub per_second: f64,
}

/// Load and fleet now, in work and work per second.
#[derive(Debug, Clone, PartialEq)]
pub struct FluidQueue {
    /// Work that waits.
    pub backlog: f64,
    /// Work that arrives per second.
    pub arrivals: f64,
    /// Work that ready replicas do per second.
    pub service: f64,
    /// Replicas on their way.
    pub starting: Vec<StartingReplica>,
}

impl FluidQueue {
    /// Work that waits after `horizon`: arrivals come in at an even rate, and every replica that is
    /// ready works as long as there is anything to do.
    pub fn after(mut self, horizon: Duration) -> f64 {
        self.starting.sort_by_key(|replica| replica.remaining);
        let (mut backlog, mut service, mut passed) = (self.backlog, self.service, 0.0);
        let landed = (self.starting.iter()).filter(|replica| replica.remaining < horizon);
        for replica in landed {
            let at = replica.remaining.as_secs_f64();
            backlog = (self.arrivals - service).mul_add(at - passed, backlog).max(0.0);
            service += replica.per_second;
            passed = at;
        }
        let rest = horizon.as_secs_f64() - passed;
        (self.arrivals - service).mul_add(rest, backlog).max(0.0)
    }
}
