//! Cutting wishes to grow to what the pools hold.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::accelerator::Accelerator;
use crate::change::CountChange;
use crate::gpu::{Budget, GpuCount, GpuPool, GpuPools, NotCounted, PoolFigures};
use crate::key::VariantKey;
use crate::reason::Reason;
use crate::units::{Cost, Gpus, Replicas};

/// A variant with the count that it is meant to have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GrowthRequest {
    pub key: VariantKey,
    pub accelerator: Accelerator,
    pub current: Replicas,
    pub target: Replicas,
    /// Its minimum, which it gets even without GPUs.
    pub floor: Replicas,
    pub max: Option<Replicas>,
    /// GPUs of one replica; none counts as one.
    pub gpus: Gpus,
    /// Whether these are all.
    pub count: GpuCount,
    pub priority: f64,
    /// Spare capacity: the smaller, the more urgent.
    pub spare: f64,
    pub cost: Cost,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grant {
    pub change: CountChange,
    pub gpus: Gpus,
}

/// Serves floors first, then the rest by priority, urgency, cost and name, in whole replicas. A
/// request that does not grow neither takes nor gives: its GPUs are free when its pods are gone.
pub(crate) fn allocate(
    requests: &[GrowthRequest],
    pools: &mut GpuPools,
) -> BTreeMap<VariantKey, Grant> {
    let mut ordered: Vec<&GrowthRequest> = requests.iter().collect();
    ordered.sort_by(|one, other| urgency(one, other));
    for request in &ordered {
        let owed = request.count.taken(request.gpus).times(request.guaranteed());
        pools.take(&request.key.namespace, &request.accelerator, owed);
    }
    let served = ordered.into_iter();
    served.map(|request| (request.key.clone(), request.serve(pools))).collect()
}

/// Highest priority, then least spare capacity, then least cost, then name.
fn urgency(one: &GrowthRequest, other: &GrowthRequest) -> Ordering {
    other
        .priority
        .total_cmp(&one.priority)
        .then_with(|| one.spare.total_cmp(&other.spare))
        .then_with(|| one.cost.cmp(&other.cost))
        .then_with(|| one.key.cmp(&other.key))
}

impl GrowthRequest {
    /// Replicas that it gets whatever the pools hold; its maximum holds against its floor.
    fn guaranteed(&self) -> Replicas {
        let floor = self.max.map_or(self.floor, |max| self.floor.min(max));
        floor.saturating_sub(self.current)
    }

    /// Grants what the pools hold beyond the guaranteed replicas, which were taken already.
    fn serve(&self, pools: &mut GpuPools) -> Grant {
        let target = self.max.map_or(self.target, |max| self.target.min(max));
        let owed = self.guaranteed();
        let wanted = target.saturating_sub(self.current).max(owed);
        if wanted == Replicas::ZERO {
            return self.kept(target);
        }
        let per_replica = self.gpus.at_least_one();
        let namespace = &self.key.namespace;
        let drawn = pools.figures(namespace, &self.accelerator);
        let asked = per_replica.times(wanted.saturating_sub(owed));
        let budget = self.count.within(pools.budget(namespace, &self.accelerator));
        let granted = budget.grant(asked).replicas(per_replica);
        let taken = self.count.taken(self.gpus).times(granted);
        pools.take(namespace, &self.accelerator, taken);
        let added = owed.plus(granted);
        let gpus = per_replica.times(added);
        let why = if added == wanted {
            Reason::Granted { gpus, added }
        } else if !self.count.is_counted() {
            Reason::GpusNotCounted(NotCounted::of(&self.count, &drawn, added, wanted))
        } else {
            shortfall(&drawn, asked, added, wanted, gpus)
        };
        Grant { change: CountChange { from: self.target, to: self.current.plus(added), why }, gpus }
    }

    /// Nothing is granted; a count below the current one stays as it is wanted.
    fn kept(&self, target: Replicas) -> Grant {
        let current = self.current;
        Grant {
            change: CountChange {
                from: self.target,
                to: target,
                why: Reason::NotGrowing { target, current },
            },
            gpus: Gpus::ZERO,
        }
    }
}

fn shortfall(
    drawn: &[PoolFigures],
    asked: Gpus,
    added: Replicas,
    wanted: Replicas,
    gpus: Gpus,
) -> Reason {
    let named = |test: fn(Budget, Gpus) -> bool| -> Vec<GpuPool> {
        drawn.iter().filter(|pool| test(pool.left, asked)).map(PoolFigures::pool).collect()
    };
    let unknown = named(|left, _| left == Budget::Unknown);
    if unknown.is_empty() {
        Reason::Limited { gpus, added, wanted, by: named(|left, asked| left.grant(asked) < asked) }
    } else {
        Reason::BudgetUnknown { added, wanted, pools: unknown }
    }
}
