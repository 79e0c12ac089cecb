//! How contended budgets would be shared by headroom: for information, since nothing moves by it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rescale::{finite_budget, groups};
use super::rescale_candidate::RescaleCandidate;
use crate::capacity::ServingRole;
use crate::gpu::GpuPools;
use crate::key::{ModelKey, VariantKey};
use crate::units::Gpus;

/// What the roles of one model need: for each the variant that serves it most cheaply, and GPUs, not
/// rounded, at the utilization that growth aims at.
pub(crate) type GpuDemand = BTreeMap<ServingRole, (VariantKey, f64)>;

/// Of a role that no variant can serve, nothing is known.
pub(crate) fn gpu_demand(sharer: &RescaleCandidate, scale_up: f64) -> GpuDemand {
    let roles = sharer.demand.iter().filter_map(|(role, demand)| {
        let (key, best) = sharer.cheapest_first(*role).into_iter().next()?;
        let gpus = demand / best.per_replica * best.gpus.at_least_one().to_f64() / scale_up;
        (scale_up > 0.0).then(|| (*role, (key.clone(), gpus)))
    });
    roles.collect()
}

/// What one role would hold if its budget were shared by headroom.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeadroomShare {
    /// GPUs that are free, or held by those who share.
    pub budget: Gpus,
    /// GPUs that the role needs, not rounded.
    pub need: f64,
    /// GPUs that it would hold, not rounded.
    pub share: f64,
}

pub(crate) fn by_headroom(
    models: &BTreeMap<ModelKey, RescaleCandidate>,
    needs: &BTreeMap<ModelKey, GpuDemand>,
    is_shared: impl Fn(Option<&str>) -> bool,
    pools: &GpuPools,
) -> BTreeMap<ModelKey, BTreeMap<ServingRole, HeadroomShare>> {
    let mut answer: BTreeMap<ModelKey, BTreeMap<ServingRole, HeadroomShare>> = BTreeMap::new();
    for members in groups(models, is_shared, pools).values() {
        let Some(budget) = finite_budget(members, pools) else {
            continue;
        };
        let claims = || {
            members.iter().flat_map(|(key, sharer)| {
                let need = needs.get(*key).into_iter().flatten();
                need.map(move |(role, (variant, gpus))| (*key, *role, variant, sharer, *gpus))
            })
        };
        let claimants = claims()
            .map(|(_, _, variant, sharer, need)| {
                let weight = sharer.priority;
                (variant.clone(), Claimant { weight, need })
            })
            .collect();
        let shares = headroom(budget, &claimants);
        for (model, role, variant, _, need) in claims() {
            let share = HeadroomShare {
                budget,
                need,
                share: shares.get(variant).copied().unwrap_or_default(),
            };
            answer.entry(model.clone()).or_default().insert(role, share);
        }
    }
    answer
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Claimant {
    /// The heavier, the more headroom; positive. The classes are 0.5, 1, 2 and 4.
    pub weight: f64,
    /// GPUs that it needs: demand by the capacity of a GPU and the utilization that growth aims at.
    pub need: f64,
}

/// GPUs for everybody, not rounded: `need * (1 + s * weight)` with `s = spare / sum(weight * need)`
/// where there are enough, else `need * (1 - t / weight)` with `t = lack / sum(need / weight)`. Who
/// would get less than nothing gets nothing, and the others share what that leaves.
pub(crate) fn headroom(
    budget: Gpus,
    claimants: &BTreeMap<VariantKey, Claimant>,
) -> BTreeMap<VariantKey, f64> {
    let mut shares: BTreeMap<VariantKey, f64> =
        claimants.keys().map(|key| (key.clone(), 0.0)).collect();
    let mut active: BTreeMap<&VariantKey, &Claimant> = claimants
        .iter()
        .filter(|(_, one)| one.need.is_finite() && one.need > 0.0 && one.weight.is_finite())
        .filter(|(_, one)| one.weight > 0.0)
        .collect();
    loop {
        let sum = |of: fn(&Claimant) -> f64| active.values().map(|one| of(one)).sum::<f64>();
        let spare = budget.to_f64() - sum(|one| one.need);
        let ratio = if spare >= 0.0 {
            spare / sum(|one| one.weight * one.need)
        } else {
            spare / sum(|one| one.need / one.weight)
        };
        let part = |one: &Claimant| {
            let weight = if spare >= 0.0 { one.weight } else { one.weight.recip() };
            one.need * (1.0 + ratio * weight)
        };
        let next: BTreeMap<&VariantKey, f64> =
            active.iter().map(|(key, one)| (*key, part(one))).collect();
        let before = active.len();
        active.retain(|key, _| next.get(key).is_some_and(|share| *share >= 0.0));
        if active.len() == before {
            shares.extend(next.into_iter().map(|(key, share)| (key.clone(), share)));
            return shares;
        }
    }
}
