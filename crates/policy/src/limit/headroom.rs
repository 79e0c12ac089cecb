//! Sharing a fixed budget of GPUs by headroom: where there is more than everybody needs, a heavier
//! member has more to spare; where there is less, it goes without less.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::key::VariantKey;
use crate::units::Gpus;
use wva_base::moment::Moment;

/// Release times for which a transfer is not undone.
const REVERSAL_HOLD: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

/// A transfer of whole replicas.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Transfer {
    /// Who gives.
    pub donor: VariantKey,
    /// Who takes.
    pub taker: VariantKey,
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferEnd {
    /// The donor's pods are gone: the move is not undone for a while.
    Released,
    /// It was called off before that: it is not begun again for a while, its opposite may be.
    Cancelled,
}

/// Transfers that may not be begun for a while. Holds none that has run out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TransferHolds {
    holds: Vec<(Transfer, Moment, Duration)>,
}

impl TransferHolds {
    /// Takes note of a transfer that ended; `release` is the time that a release takes.
    #[must_use]
    pub fn end(
        mut self,
        transfer: Transfer,
        ending: TransferEnd,
        release: Duration,
        now: Moment,
    ) -> Self {
        let blocked = match ending {
            TransferEnd::Cancelled => transfer,
            TransferEnd::Released => Transfer {
                donor: transfer.taker,
                taker: transfer.donor,
            },
        };
        self.holds
            .retain(|(known, since, hold)| *known != blocked && now.since(*since) < *hold);
        let hold = release.saturating_mul(REVERSAL_HOLD);
        self.holds.push((blocked, now, hold));
        self
    }

    /// Whether a transfer may begin.
    pub fn allow(&self, transfer: &Transfer, now: Moment) -> bool {
        (self.holds.iter())
            .all(|(held, since, hold)| held != transfer || now.since(*since) >= *hold)
    }
}
