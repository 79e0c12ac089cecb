//! The roles of one model together.
//!
//! Each role meets its own claims; a role without room never blocks another. One bound goes along
//! the flow of requests: what prefill cannot let through, decode need not take.

use std::collections::BTreeMap;

use super::candidate::{Candidate, Sized, late_supply, outstanding, sized};
use super::cover::{Cover, Item};
use super::feed::{follow, reach};
use super::shed::Shed;
use crate::capacity::ServingRole;
use crate::change::CountChange;
use crate::combine::{CapacityClaim, RoleTarget, Weighed};
use crate::key::VariantKey;
use crate::reason::{Method, Reason, ReleaseObstacle, WantedAmount};
use crate::rounding;
use crate::startup::StartProspect;
use crate::units::Replicas;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ReplicaAllocation {
    /// One change for every candidate, also where its count stays.
    pub changes: BTreeMap<VariantKey, CountChange>,
    /// What could not be had, by role.
    pub unmet: BTreeMap<ServingRole, Vec<WantedAmount>>,
}

/// Grows every role that has claims; prefill, which is first in order, before decode.
pub(super) fn grow(
    candidates: &BTreeMap<VariantKey, Candidate>,
    role_targets: &BTreeMap<ServingRole, RoleTarget>,
    method: Method,
) -> ReplicaAllocation {
    let mut allocation = ReplicaAllocation::default();
    let mut reached = None;
    for (role, role_target) in role_targets {
        let RoleTarget::Grow(Weighed { claims, .. }) = role_target else {
            continue;
        };
        let claims = outstanding(candidates.iter(), *role, claims);
        let bounded = match (role, reached) {
            (ServingRole::Decode, Some(share)) => follow(&claims, share),
            _ => claims.clone(),
        };
        let outcome = grow_role(candidates, *role, &bounded, method);
        if *role == ServingRole::Prefill {
            let variants = outcome.variants.iter();
            let rooms: Vec<(&[f64], u32)> = variants
                .map(|sized| (sized.gains.as_slice(), sized.candidate.room_above()))
                .collect();
            reached = reach(&claims, &rooms);
        }
        let is_fed = claims != bounded;
        explain_growth(&mut allocation, &outcome, method, &bounded, reached.filter(|_| is_fed));
        if !outcome.unmet.is_empty() {
            allocation.unmet.insert(*role, outcome.unmet);
        }
    }
    keep_rest(&mut allocation, candidates, role_targets);
    allocation
}

#[derive(Debug)]
struct Outcome<'a> {
    variants: Vec<Sized<'a>>,
    added: Vec<u32>,
    unmet: Vec<WantedAmount>,
}

fn grow_role<'a>(
    candidates: &'a BTreeMap<VariantKey, Candidate>,
    role: ServingRole,
    claims: &[CapacityClaim],
    method: Method,
) -> Outcome<'a> {
    let variants = sized(candidates, role, claims);
    let amounts: Vec<f64> = claims.iter().map(|claim| claim.amount).collect();
    let (mut added, mut left) = search(&variants, StartProspect::Open, &amounts, method);
    // What no other variant can serve waits for the late replicas of stalled ones before it orders more of them.
    if left.iter().any(|left| *left > 0.0) {
        for (left, claim) in left.iter_mut().zip(claims) {
            *left = (*left - late_supply(candidates.iter(), role, claim)).max(0.0);
        }
        let (more, rest) = search(&variants, StartProspect::Stalled, &left, method);
        for (added, more) in added.iter_mut().zip(more) {
            *added = added.saturating_add(more);
        }
        left = rest;
    }
    let unmet = left
        .into_iter()
        .zip(claims)
        .map(|(amount, claim)| WantedAmount { analyzer: claim.analyzer, amount })
        .filter(|unmet| unmet.amount > 0.0)
        .collect();
    Outcome { variants, added, unmet }
}

/// The replicas to add of the variants with one prospect, and what they leave of each claim.
fn search(
    variants: &[Sized<'_>],
    prospect: StartProspect,
    amounts: &[f64],
    method: Method,
) -> (Vec<u32>, Vec<f64>) {
    let may_grow = |sized: &Sized<'_>| sized.candidate.prospect == prospect;
    // A claim that no variant can serve must not make the others take everything there is.
    let is_served = |index: usize| {
        let mut eligible = variants.iter().filter(|sized| may_grow(sized));
        eligible.any(|sized| sized.gains.get(index).is_some_and(|gain| *gain > 0.0))
    };
    let served = amounts.iter().enumerate();
    let served = served.map(|(index, amount)| if is_served(index) { *amount } else { 0.0 });
    let items = variants
        .iter()
        .map(|sized| Item {
            cost: sized.candidate.cost.millionths(),
            room: if may_grow(sized) { sized.candidate.room_above() } else { 0 },
            per_replica: sized.gains.clone(),
        })
        .collect();
    let cover = Cover::new(served.collect(), items);
    let added = match method {
        Method::LeastCost => cover.cheapest(),
        Method::Greedy => cover.greedy(),
    };
    let left = cover.lacking(&added).into_iter().zip(amounts).enumerate();
    let left = left.map(|(index, (left, amount))| if is_served(index) { left } else { *amount });
    (added, left.collect())
}

fn explain_growth(
    allocation: &mut ReplicaAllocation,
    outcome: &Outcome<'_>,
    method: Method,
    claims: &[CapacityClaim],
    fed: Option<f64>,
) {
    let is_open = |sized: &Sized<'_>| sized.candidate.prospect == StartProspect::Open;
    let has_open = outcome.variants.iter().any(is_open);
    for (sized, added) in outcome.variants.iter().zip(&outcome.added) {
        let from = sized.candidate.count;
        let why = match (added, fed, sized.candidate.bounds.max) {
            (1.., _, _) => Reason::ScaledUp { method, required: WantedAmount::of(claims) },
            (0, _, Some(max)) if from >= max => Reason::NeedAtMaximum { max },
            (0, _, _) if sized.candidate.ordered() > Replicas::ZERO => {
                Reason::Ordered { standing: sized.candidate.standing }
            }
            (0, Some(reached), _) => Reason::FedByPrefill { reached },
            (0, None, _) if !is_open(sized) && has_open => Reason::StartsStalled,
            (0, None, _) if !is_open(sized) => {
                Reason::Ordered { standing: sized.candidate.standing }
            }
            (0, None, _) => Reason::NotChosen { method },
        };
        let to = sized.candidate.grown(*added);
        allocation.changes.insert(sized.key.clone(), CountChange { from, to, why });
    }
}

pub(super) fn release(
    candidates: &BTreeMap<VariantKey, Candidate>,
    role_targets: &BTreeMap<ServingRole, RoleTarget>,
    method: Method,
) -> ReplicaAllocation {
    let mut allocation = ReplicaAllocation::default();
    for (role, role_target) in role_targets {
        if let RoleTarget::Release(Weighed { claims, .. }) = role_target {
            release_role(&mut allocation, candidates, *role, claims, method);
        }
    }
    keep_rest(&mut allocation, candidates, role_targets);
    allocation
}

fn release_role(
    allocation: &mut ReplicaAllocation,
    candidates: &BTreeMap<VariantKey, Candidate>,
    role: ServingRole,
    claims: &[CapacityClaim],
    method: Method,
) {
    let variants = sized(candidates, role, claims);
    let of_role = candidates.values().filter(|candidate| candidate.role == role);
    let standing = of_role.map(|one| one.count).sum::<Replicas>().0;
    let mut total = standing.saturating_sub(1);
    // What serves nothing goes first, and takes nothing of what the claims leave.
    let overdue: Vec<u32> = variants
        .iter()
        .map(|sized| {
            let Candidate { overdue, .. } = sized.candidate;
            let gone = overdue.0.min(sized.candidate.room_below()).min(total);
            total -= gone;
            gone
        })
        .collect();
    let items = variants
        .iter()
        .zip(&overdue)
        .map(|(sized, gone)| Item {
            cost: sized.candidate.cost.millionths(),
            room: sized.candidate.room_below() - gone,
            per_replica: sized.gains.clone(),
        })
        .collect();
    let allowances = claims.iter().map(|claim| claim.amount).collect();
    let shed = Shed::new(allowances, items, total);
    let removed = match method {
        Method::LeastCost => shed.most_expensive(),
        Method::Greedy => shed.greedy(),
    };
    let releasable = WantedAmount::of(claims);
    for ((sized, removed), gone) in variants.iter().zip(&removed).zip(&overdue) {
        let from = sized.candidate.count;
        let to = from.saturating_sub(Replicas(removed.saturating_add(*gone)));
        let releasable = releasable.clone();
        let why = if to < from {
            Reason::ScaledDown { method, releasable }
        } else {
            let obstacle = release_obstacle(sized, claims, standing);
            Reason::NotReleased { releasable, obstacle }
        };
        allocation.changes.insert(sized.key.clone(), CountChange { from, to, why });
    }
}

fn release_obstacle(sized: &Sized<'_>, claims: &[CapacityClaim], standing: u32) -> ReleaseObstacle {
    let Candidate { count, bounds, .. } = sized.candidate;
    if *count == Replicas::ZERO {
        return ReleaseObstacle::NoReplicas;
    }
    if sized.candidate.room_below() == 0 {
        return ReleaseObstacle::Minimum(bounds.min);
    }
    if standing <= 1 {
        return ReleaseObstacle::LastOfRole;
    }
    let exceeds = |amount: f64, gain: f64| gain > 0.0 && rounding::floor(amount / gain) == 0;
    let too_large = (claims.iter().zip(&sized.gains))
        .find(|(claim, gain)| exceeds(claim.amount, **gain))
        .map(|(claim, gain)| WantedAmount { analyzer: claim.analyzer, amount: *gain });
    too_large.map_or(ReleaseObstacle::OthersFirst, ReleaseObstacle::TooLarge)
}

fn keep_rest(
    allocation: &mut ReplicaAllocation,
    candidates: &BTreeMap<VariantKey, Candidate>,
    role_targets: &BTreeMap<ServingRole, RoleTarget>,
) {
    for (key, candidate) in candidates {
        if allocation.changes.contains_key(key) {
            continue;
        }
        let why = match role_targets.get(&candidate.role) {
            None => {
                Reason::NoView { role: candidate.role, missing: Vec::new(), abstaining: Vec::new() }
            }
            Some(RoleTarget::Hold(hold)) => Reason::Held { hold: hold.clone() },
            Some(RoleTarget::Release(weighed)) if knows(&weighed.claims, key) => Reason::ModelGrows,
            Some(RoleTarget::Grow(_) | RoleTarget::Release(_)) => Reason::NotSized,
        };
        let (from, to) = (candidate.count, candidate.count);
        allocation.changes.insert(key.clone(), CountChange { from, to, why });
    }
}

fn knows(claims: &[CapacityClaim], key: &VariantKey) -> bool {
    claims.iter().any(|claim| claim.per_replica.contains_key(key))
}
