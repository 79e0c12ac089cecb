//! How unevenly the router loads unlike variants.
//!
//! Capacities add up only where each replica gets its part of the load. A router that gives a slow replica as much as a
//! fast one misses the objectives of the slow one, with room left in the others.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::capacity::CapacityBound;
use super::figures::SloReport;
use super::work;
use crate::capacity::ServingRole;
use crate::throughput::ThroughputModelInput;
use crate::total::total;
use crate::units::Replicas;
use wva_base::moment::Moment;

/// How long replicas stay the same before their rates say how load is shared: the window of rates, and a scrape.
const SETTLING: Duration = Duration::from_secs(90);
/// Time constant of the smoothed ratio.
const WINDOW: Duration = Duration::from_mins(2);
/// Share of what the replicas do together below which nothing is learned.
const LEAST_LOAD: f64 = 0.3;
/// The most by which demand is raised: replicas are added for the sake of slow ones, which may not be worth them.
const MOST: f64 = 1.5;

/// The load of the busiest variant of a role, to that of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Imbalance {
    ratio: f64,
    at: Moment,
    ready: Replicas,
    /// When the replicas changed last.
    changed: Moment,
}

impl Imbalance {
    /// Of replicas that are seen for the first time.
    pub(super) fn new(now: Moment) -> Self {
        Self { ratio: 1.0, at: now, ready: Replicas::ZERO, changed: now }
    }

    /// Demand at which the busiest variant is within its objectives, to the demand; at least 1.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    pub(super) fn observe(
        &mut self,
        input: &ThroughputModelInput,
        report: &SloReport,
        role: ServingRole,
        now: Moment,
    ) {
        let own = input.variants.values().filter(|given| given.role == role);
        let ready: Replicas = own.map(|given| given.ready).sum();
        if ready != self.ready {
            (self.ready, self.changed) = (ready, now);
        }
        let passed = now.since(self.at);
        self.at = now;
        if now.since(self.changed) < SETTLING {
            return;
        }
        if let Some(ratio) = measured(input, report, role) {
            let kept = (-passed.as_secs_f64() / WINDOW.as_secs_f64()).exp();
            self.ratio = kept.mul_add(self.ratio - ratio, ratio);
        }
    }
}

/// None where a replica does not say what it does, what one can do is a guess, or together they do little.
fn measured(input: &ThroughputModelInput, report: &SloReport, role: ServingRole) -> Option<f64> {
    let own = (input.variants.iter())
        .filter(|(key, given)| given.role == role && !report.stragglers.contains_key(*key));
    let mut loads = Vec::new();
    for (key, given) in own.filter(|(_, given)| given.ready > Replicas::ZERO) {
        let size = report.variants.get(key)?;
        let capacity = size.per_second * given.ready.to_f64();
        let done: Option<Vec<f64>> =
            (given.replicas.values()).map(|replica| work::done(role, replica)).collect();
        (!matches!(size.bound, CapacityBound::Cost | CapacityBound::Reading)).then_some(())?;
        loads.push((total(done?.into_iter()), capacity));
    }
    let all = total(loads.iter().map(|(done, _)| *done))
        / total(loads.iter().map(|(_, capacity)| *capacity));
    let busiest = loads.iter().map(|(done, capacity)| done / capacity);
    let ratio = busiest.fold(0.0, f64::max) / all;
    (all >= LEAST_LOAD && ratio.is_finite()).then(|| ratio.clamp(1.0, MOST))
}
