//! Sharing whole GPUs by weight, between a floor and a cap for each.

use std::collections::BTreeMap;

use crate::rounding;
use crate::units::Gpus;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bidder {
    /// What it gets is in proportion to this; not positive means the floor only.
    pub weight: f64,
    pub floor: Gpus,
    /// What it gets at most.
    pub cap: Gpus,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filled<K> {
    /// Everybody's share, floor included.
    pub shares: BTreeMap<K, Gpus>,
    /// Whether the floors alone are more than there is; they are given all the same.
    pub is_conflict: bool,
}

/// Gives each bidder its floor and shares the rest by weight. What one cannot take goes to the others;
/// where none can take more it stays.
pub(crate) fn water_fill<K: Ord + Clone>(budget: Gpus, bidders: &BTreeMap<K, Bidder>) -> Filled<K> {
    let floors: Gpus = bidders.values().map(|bidder| bidder.floor).sum();
    let mut shares: BTreeMap<K, Gpus> =
        bidders.iter().map(|(key, bidder)| (key.clone(), bidder.floor)).collect();
    let mut left = budget.saturating_sub(floors);
    let mut thirsty: BTreeMap<K, (f64, Gpus)> = bidders
        .iter()
        .map(|(key, bidder)| {
            let room = bidder.cap.saturating_sub(bidder.floor);
            (key.clone(), (bidder.weight, room))
        })
        .filter(|(_, (weight, room))| weight.is_finite() && *weight > 0.0 && *room > Gpus::ZERO)
        .collect();
    while left > Gpus::ZERO {
        let total: f64 = thirsty.values().map(|(weight, _)| weight).sum();
        let part = |weight: f64| left.to_f64() * (weight / total);
        let sated: Vec<K> = thirsty
            .iter()
            .filter(|(_, (weight, room))| part(*weight) >= room.to_f64())
            .map(|(key, _)| key.clone())
            .collect();
        if sated.is_empty() {
            let parts = thirsty
                .iter()
                .map(|(key, (weight, room))| (key.clone(), (part(*weight), *room)))
                .collect();
            for (key, more) in round_shares(left, &parts) {
                let share = shares.entry(key).or_default();
                *share = share.plus(more);
            }
            break;
        }
        for key in sated {
            if let Some((_, room)) = thirsty.remove(&key) {
                left = left.saturating_sub(room);
                let share = shares.entry(key).or_default();
                *share = share.plus(room);
            }
        }
    }
    Filled { shares, is_conflict: floors > budget }
}

/// Rounds shares to whole GPUs, `total` in all: downwards, then one more for the largest remainders,
/// of equal ones for the first key, never above a cap. `parts` holds each share and its cap.
pub(crate) fn round_shares<K: Ord + Clone>(
    total: Gpus,
    parts: &BTreeMap<K, (f64, Gpus)>,
) -> BTreeMap<K, Gpus> {
    let mut rounded: BTreeMap<K, Gpus> = parts
        .iter()
        .map(|(key, (part, cap))| (key.clone(), Gpus(rounding::floor(*part)).min(*cap)))
        .collect();
    let given: Gpus = rounded.values().copied().sum();
    let mut remainders: Vec<(f64, &K, Gpus)> = parts
        .iter()
        .map(|(key, (part, cap))| (part - f64::from(rounding::floor(*part)), key, *cap))
        .collect();
    remainders.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    let mut left = total.saturating_sub(given);
    for (_, key, cap) in remainders {
        if let Some(gpus) = rounded.get_mut(key)
            && left > Gpus::ZERO
            && *gpus < cap
        {
            *gpus = gpus.plus(Gpus(1));
            left = left.saturating_sub(Gpus(1));
        }
    }
    rounded
}
