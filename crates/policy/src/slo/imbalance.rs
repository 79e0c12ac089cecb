//! How unevenly the router loads unlike variants, and which slow ones are better left out for it.
//!
//! Capacities add up only where each replica gets its part of the load. A router that gives a slow replica as much as a
//! fast one misses the objectives of the slow one, with room left in the others. Demand is raised for the busiest;
//! where the role is served for less without the slow ones, those are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::capacity::CapacityBound;
use super::figures::SloReport;
use super::work;
use crate::capacity::ServingRole;
use crate::key::VariantKey;
use crate::throughput::ThroughputModelInput;
use crate::total::total;
use crate::units::Replicas;
use wva_base::moment::Moment;

/// How long replicas stay the same before their rates say how load is shared: the window of rates, and a scrape.
const SETTLING: Duration = Duration::from_secs(90);
/// Time constant of the smoothed loads.
const WINDOW: Duration = Duration::from_mins(2);
/// Share of what the replicas do together below which nothing is learned.
const LEAST_LOAD: f64 = 0.3;
/// The most by which demand is raised: replicas are added for the sake of slow ones, which may not be worth them.
const MOST: f64 = 1.5;
/// Share of a demand that is a rounding error.
const ROUNDING: f64 = 1e-9;
/// Cost of the variants that are kept, to that of all, at which the others are left out.
const WORTH_LESS: f64 = 0.9;

/// The load of each variant of a role, to that of all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imbalance {
    /// 1 where it has its part. Of a variant without replicas, as it was last seen.
    loads: BTreeMap<VariantKey, f64>,
    at: Moment,
    ready: Replicas,
    /// When the replicas changed last.
    changed: Moment,
}

/// A variant of a role, as one that may be left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MixMember<'a> {
    pub(super) key: &'a VariantKey,
    /// Work of one replica per second.
    pub(super) per_second: f64,
    /// Of one replica, in millionths; none where it is not known.
    pub(super) cost: Option<f64>,
    pub(super) ready: Replicas,
    pub(super) min: Replicas,
    pub(super) max: Option<Replicas>,
}

impl Imbalance {
    /// Of replicas that are seen for the first time.
    pub(super) fn new(now: Moment) -> Self {
        Self {
            loads: BTreeMap::new(),
            at: now,
            ready: Replicas::ZERO,
            changed: now,
        }
    }

    /// One that has been measured.
    #[cfg(test)]
    pub(super) fn of(loads: BTreeMap<VariantKey, f64>, now: Moment) -> Self {
        Self {
            loads,
            ..Self::new(now)
        }
    }

    /// Demand at which the busiest of variants with replicas is within its objectives, to the demand; at least 1.
    pub(super) fn ratio(&self, members: &[MixMember<'_>]) -> f64 {
        let serving = members.iter().filter(|one| one.ready > Replicas::ZERO);
        self.raised(self.busiest(serving), members)
    }

    /// Variants without which a demand is served for less.
    pub(super) fn left_out(&self, members: &[MixMember<'_>], demand: f64) -> BTreeSet<VariantKey> {
        if members.iter().any(|one| one.cost.is_none()) {
            return BTreeSet::new();
        }
        let mut by_load = members.to_vec();
        by_load.sort_by(|one, other| self.load(one.key).total_cmp(&self.load(other.key)));
        let limit = self.cost(members, demand).map(|cost| WORTH_LESS * cost);
        let may_go = |one: &MixMember<'_>| one.min == Replicas::ZERO;
        let cheaper = (1..by_load.len()).filter_map(|kept| {
            let (kept, gone) = by_load.split_at(kept);
            let cost = self.cost(kept, demand)?;
            let is_worth = limit.is_none_or(|limit| cost <= limit);
            (is_worth && gone.iter().all(may_go)).then_some((cost, gone))
        });
        let least = cheaper.min_by(|one, other| one.0.total_cmp(&other.0));
        least.map_or_else(BTreeSet::new, |(_, gone)| {
            gone.iter().map(|one| one.key.clone()).collect()
        })
    }

    fn load(&self, key: &VariantKey) -> f64 {
        self.loads.get(key).copied().unwrap_or(1.0)
    }

    fn busiest<'a>(&self, members: impl Iterator<Item = &'a MixMember<'a>>) -> f64 {
        members.map(|one| self.load(one.key)).fold(0.0, f64::max)
    }

    /// The busiest load, to that of all that serve.
    fn raised(&self, busiest: f64, members: &[MixMember<'_>]) -> f64 {
        let size = |one: &MixMember<'_>| one.ready.to_f64() * one.per_second;
        let done = total(members.iter().map(|one| size(one) * self.load(one.key)));
        let ratio = busiest * total(members.iter().map(size)) / done;
        if ratio.is_finite() {
            ratio.clamp(1.0, MOST)
        } else {
            1.0
        }
    }

    /// Cost of parts of replicas that serve a demand, the cheapest first; none where they do not suffice, or one has no
    /// cost.
    fn cost(&self, members: &[MixMember<'_>], demand: f64) -> Option<f64> {
        let demand = demand * self.raised(self.busiest(members.iter()), members);
        let priced = members.iter().map(|one| Some((one.cost?, one)));
        let mut priced = priced.collect::<Option<Vec<_>>>()?;
        priced.sort_by(|(cost, one), (other_cost, other)| {
            (cost / one.per_second).total_cmp(&(other_cost / other.per_second))
        });
        let least = priced
            .iter()
            .map(|(_, one)| one.min.to_f64() * one.per_second);
        let mut left = (demand - total(least)).max(0.0);
        let mut sum = total(priced.iter().map(|(cost, one)| one.min.to_f64() * cost));
        for (cost, one) in priced {
            let room = (one.max).map_or(f64::INFINITY, |max| max.saturating_sub(one.min).to_f64());
            let count = (left / one.per_second).min(room);
            sum += count * cost;
            left -= count * one.per_second;
        }
        (left <= demand * ROUNDING).then_some(sum)
    }

    /// Takes one collection in.
    pub(super) fn observe(
        &mut self,
        input: &ThroughputModelInput,
        report: &SloReport,
        role: ServingRole,
        now: Moment,
    ) {
        let own = input.variants.values().filter(|given| given.role == role);
        let counts = own.map(|given| given.ready.0);
        let ready = Replicas(counts.fold(0, u32::saturating_add));
        if ready != self.ready {
            (self.ready, self.changed) = (ready, now);
        }
        self.loads.retain(|key, _| input.variants.contains_key(key));
        let passed = now.since(self.at);
        self.at = now;
        if now.since(self.changed) < SETTLING {
            return;
        }
        let kept = (-passed.as_secs_f64() / WINDOW.as_secs_f64()).exp();
        for (key, load) in measured(input, report, role).into_iter().flatten() {
            let smoothed = kept.mul_add(self.load(&key) - load, load);
            // In thousandths, so that records of it stay small.
            self.loads.insert(key, (smoothed * 1000.0).round() / 1000.0);
        }
    }
}

/// None where a single variant serves, a replica does not say what it does, what one can do is a guess, or together they
/// do little.
fn measured(
    input: &ThroughputModelInput,
    report: &SloReport,
    role: ServingRole,
) -> Option<BTreeMap<VariantKey, f64>> {
    let own = input
        .variants
        .iter()
        .filter(|(_, given)| given.role == role);
    let mut loads = Vec::new();
    for (key, given) in own.filter(|(_, given)| given.ready > Replicas::ZERO) {
        let size = report.variants.get(key)?;
        let capacity = size.per_second * given.ready.to_f64();
        let done: Option<Vec<f64>> = (given.replicas.values())
            .map(|replica| work::done(role, replica))
            .collect();
        (size.bound != CapacityBound::Cost).then_some(())?;
        loads.push((key, total(done?.into_iter()), capacity));
    }
    let all = total(loads.iter().map(|(_, done, _)| *done))
        / total(loads.iter().map(|(_, _, capacity)| *capacity));
    (loads.len() > 1 && all.is_finite() && all >= LEAST_LOAD).then(|| {
        let shares = loads.iter();
        let shares = shares.map(|(key, done, capacity)| ((*key).clone(), done / capacity / all));
        shares.collect()
    })
}
