//! Demand against supply, and the thresholds that turn the difference into a wish. The same for
//! every analyzer, in its own unit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::band::Band;
use crate::capacity::{Assessment, ServingRole};

/// Share of a quantity that is a rounding error.
const ROUNDING: f64 = 1e-12;

/// The view of one analyzer on one role, in its own unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// What is asked for.
    pub demand: f64,
    /// What ready replicas supply.
    pub supply: f64,
    /// What ready and pending replicas supply.
    pub anticipated: f64,
    /// Missing capacity: `max(0, demand / scale_up - anticipated)`.
    pub required: f64,
    /// Capacity beyond the lower end of the band: `max(0, supply - demand / scale_down)`.
    pub spare: f64,
    /// Capacity beyond what a release aims at: `max(0, supply - demand / release_target)`. It may go
    /// while there is spare.
    pub releasable: f64,
}

impl Balance {
    /// Applies a band.
    pub fn of(demand: f64, supply: f64, anticipated: f64, band: Band) -> Self {
        let at = |share: f64| (share > 0.0).then(|| demand / share);
        // At the edges of the band a rounding error of the division is nothing missing and nothing left.
        let beyond = |more: f64, less: f64| {
            let difference = more - less;
            if difference > more * ROUNDING { difference } else { 0.0 }
        };
        let left = |needed: f64| beyond(supply, needed);
        // A release aims at the middle of the band. Its lower end would ask for a utilization below
        // `scale_down * (n - 1) / n` before one of n replicas may go.
        let release_target = f64::midpoint(band.scale_up, band.scale_down);
        Self {
            demand,
            supply,
            anticipated,
            required: at(band.scale_up).map_or(0.0, |needed| beyond(needed, anticipated)),
            spare: at(band.scale_down).map_or(0.0, left),
            releasable: at(release_target).map_or(0.0, left),
        }
    }
}

impl Assessment {
    /// Lowers demands to what so many times the replicas that are ready or on their way do, and returns those as they
    /// were; demands of roles without any stay.
    pub(crate) fn limit_growth(&mut self, times: f64, band: Band) -> BTreeMap<ServingRole, f64> {
        let most = |role| times * band.scale_up * balance(self, role, 0.0, band).anticipated;
        let above = |(role, demand): (&ServingRole, &f64)| {
            let most = most(*role);
            (most > 0.0 && *demand > most).then_some((*role, *demand, most))
        };
        let above: Vec<_> = self.demand.iter().filter_map(above).collect();
        let lowered = above.iter().map(|(role, _, most)| (*role, *most));
        self.demand.extend(lowered);
        above.iter().map(|(role, demand, _)| (*role, *demand)).collect()
    }
}

pub(super) fn balance(
    assessment: &Assessment,
    role: ServingRole,
    demand: f64,
    band: Band,
) -> Balance {
    let mut supply = 0.0;
    let mut anticipated = 0.0;
    for variant in assessment.variants.values() {
        if variant.role == role && variant.per_replica.is_finite() {
            supply += variant.ready.to_f64() * variant.per_replica;
            anticipated +=
                (variant.ready.to_f64() + variant.pending.to_f64()) * variant.per_replica;
        }
    }
    Balance::of(demand, supply, anticipated, band)
}
