//! Sharing a fixed budget of GPUs by headroom: where there is more than everybody needs, a heavier
//! member has more to spare; where there is less, it goes without less.

use std::collections::BTreeMap;

use crate::key::VariantKey;
use crate::units::Gpus;

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
            let weight = if spare >= 0.0 {
                one.weight
            } else {
                one.weight.recip()
            };
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
