//! A variant that may gain or lose replicas.

use std::collections::BTreeMap;

use crate::bounds::{Bounds, CEILING};
use crate::capacity::ServingRole;
use crate::combine::CapacityClaim;
use crate::key::VariantKey;
use crate::reason::WantedAmount;
use crate::startup::StartProspect;
use crate::units::{Cost, Replicas};

/// What the cost of a replica becomes where GPUs are shared and its starts are stalled, in millionths: more
/// than any real one, so that every other variant that can serve the need goes first.
const STALLED_COST: f64 = 1e15;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub role: ServingRole,
    pub cost: Cost,
    /// The replicas that the claims were computed for: those that exist.
    pub count: Replicas,
    /// The replicas that it will have whatever is decided: those that exist, and those on order by its
    /// minimum or by what was published.
    pub standing: Replicas,
    /// Those of `count` that have not been ready for longer than their limit: a release takes them first,
    /// and they cost no capacity.
    pub overdue: Replicas,
    /// Those of `count` that are late, where its starts are stalled: they are not among what is anticipated of
    /// it.
    pub late: Replicas,
    /// Those of `count` that wait behind a scheduling gate for too long, where its starts are stalled: no
    /// analyzer anticipates them.
    pub gated: Replicas,
    pub prospect: StartProspect,
    pub bounds: Bounds,
}

impl Candidate {
    pub(crate) fn room_above(&self) -> u32 {
        let max = self.bounds.max.unwrap_or(CEILING).min(CEILING);
        max.saturating_sub(self.standing.max(self.count)).0
    }

    pub(crate) fn ordered(&self) -> Replicas {
        self.standing.saturating_sub(self.count)
    }

    /// The count once so many are added; one that gains nothing is left to the claim that ordered it.
    pub(crate) fn grown(&self, added: u32) -> Replicas {
        if added == 0 {
            self.count
        } else {
            Replicas(self.standing.max(self.count).0.saturating_add(added))
        }
    }

    /// What a further replica costs where GPUs are shared.
    pub(super) fn growth_cost(&self) -> f64 {
        let cost = self.cost.millionths();
        match self.prospect {
            StartProspect::Open => cost,
            StartProspect::Stalled => cost + STALLED_COST,
        }
    }

    pub(crate) fn room_below(&self) -> u32 {
        self.count.saturating_sub(self.bounds.min).0
    }
}

/// A candidate, and what one replica of it means to each claim: 0 where a claim cannot size it.
#[derive(Debug, Clone)]
pub(super) struct Sized<'a> {
    pub(super) key: &'a VariantKey,
    pub(super) candidate: &'a Candidate,
    pub(super) gains: Vec<f64>,
}

/// What one replica of a variant means to each claim; none where no claim can size it.
pub(super) fn gains(claims: &[CapacityClaim], key: &VariantKey) -> Option<Vec<f64>> {
    let of_claim = |claim: &CapacityClaim| claim.per_replica.get(key).copied().unwrap_or(0.0);
    let gains: Vec<f64> = claims.iter().map(of_claim).collect();
    gains.iter().any(|gain| *gain > 0.0).then_some(gains)
}

pub(super) fn sized<'a>(
    candidates: &'a BTreeMap<VariantKey, Candidate>,
    role: ServingRole,
    claims: &[CapacityClaim],
) -> Vec<Sized<'a>> {
    candidates
        .iter()
        .filter(|(_, candidate)| candidate.role == role)
        .filter_map(|(key, candidate)| Some(Sized { key, candidate, gains: gains(claims, key)? }))
        .collect()
}

/// What claims on a role leave once the replicas on order are there.
pub(super) fn outstanding<'a>(
    candidates: impl Iterator<Item = (&'a VariantKey, &'a Candidate)>,
    role: ServingRole,
    claims: &[CapacityClaim],
) -> Vec<CapacityClaim> {
    let ordered: Vec<(&VariantKey, Replicas)> = candidates
        .filter(|(_, candidate)| candidate.role == role)
        .map(|(key, candidate)| (key, candidate.ordered()))
        .filter(|(_, ordered)| *ordered > Replicas::ZERO)
        .collect();
    let left = claims.iter().map(|claim| {
        let supplied = ordered.iter().filter_map(|(key, count)| {
            let per_replica = claim.per_replica.get(*key)?;
            Some(per_replica * count.to_f64())
        });
        claim.clone().covered(supplied.sum())
    });
    left.collect()
}

/// What the late replicas of a role would supply to a claim, which anticipates none of them.
pub(super) fn late_supply<'a>(
    candidates: impl Iterator<Item = (&'a VariantKey, &'a Candidate)>,
    role: ServingRole,
    claim: &CapacityClaim,
) -> f64 {
    let of_role = candidates.filter(|(_, candidate)| candidate.role == role);
    let supplied = of_role.filter_map(|(key, candidate)| {
        let per_replica = claim.per_replica.get(key)?;
        Some(per_replica * (candidate.late.to_f64() + candidate.gated.to_f64()))
    });
    supplied.sum()
}

impl WantedAmount {
    pub(super) fn of(claims: &[CapacityClaim]) -> Vec<Self> {
        claims.iter().map(|claim| Self { analyzer: claim.analyzer, amount: claim.amount }).collect()
    }
}
