//! What one voter wants of an optimizer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::balance::View;
use super::ballot::{Direction, Vote, combine_votes};
use crate::policy::capacity::{AnalyzerName, ServingRole};
use crate::policy::key::VariantKey;
use crate::policy::units::Cost;

/// Capacity that one voter wants added to, or allows to be taken from, one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The voter.
    pub analyzer: AnalyzerName,
    /// How much, in the unit of the voter; not negative.
    pub amount: f64,
    /// What ready and pending replicas supply already, in the same unit.
    pub anticipated: f64,
    /// What one replica of each variant supplies, in the same unit; positive. A variant without an
    /// entry is one that this voter cannot size.
    pub per_replica: BTreeMap<VariantKey, f64>,
}

/// One claim for each voter with a view on the role, weighed against each other, and the votes
/// behind them.
#[derive(Debug)]
pub(super) struct Weighed {
    pub(super) votes: Vec<Vote>,
    pub(super) combined: Option<f64>,
    pub(super) claims: Vec<Claim>,
}

/// Weighs the voters' amounts in replicas of the variant that covers them most cheaply, once, and
/// moves each amount beyond the combined vote back to it.
pub(super) fn weigh(
    direction: Direction,
    role: ServingRole,
    views: &[&View<'_>],
    costs: &BTreeMap<VariantKey, Cost>,
) -> Weighed {
    let scored: Vec<(f64, Claim)> = views
        .iter()
        .filter_map(|view| {
            let balance = view.roles.get(&role)?;
            let amount = match direction {
                Direction::Up => balance.required,
                Direction::Down => balance.releasable,
            };
            let claim = Claim {
                analyzer: view.seat.analyzer,
                amount,
                anticipated: balance.anticipated,
                per_replica: view.capacities(role),
            };
            Some((view.seat.score, claim))
        })
        .collect();
    let Some(reference) = reference(&scored, costs) else {
        return Weighed {
            votes: Vec::new(),
            combined: None,
            claims: scored.into_iter().map(|(_, claim)| claim).collect(),
        };
    };
    let votes: Vec<Vote> = scored
        .iter()
        .filter_map(|(score, claim)| {
            Some(Vote {
                analyzer: claim.analyzer,
                score: *score,
                replicas: claim.amount / claim.per_replica.get(&reference)?,
            })
        })
        .collect();
    let combined = combine_votes(direction, &votes);
    let claims = scored
        .into_iter()
        .map(|(_, claim)| limited(direction, claim, &reference, combined))
        .collect();
    Weighed {
        votes,
        combined,
        claims,
    }
}

fn limited(
    direction: Direction,
    mut claim: Claim,
    reference: &VariantKey,
    combined: Option<f64>,
) -> Claim {
    if let (Some(capacity), Some(replicas)) = (claim.per_replica.get(reference), combined) {
        let voted = replicas * capacity;
        claim.amount = match direction {
            Direction::Up => claim.amount.min(voted),
            Direction::Down => claim.amount.max(voted),
        };
    }
    claim
}

/// The variant that alone would cover all amounts at the least cost; ties by key.
fn reference(scored: &[(f64, Claim)], costs: &BTreeMap<VariantKey, Cost>) -> Option<VariantKey> {
    costs
        .iter()
        .filter_map(|(key, cost)| {
            let replicas = scored
                .iter()
                .filter_map(|(_, claim)| Some(claim.amount / claim.per_replica.get(key)?))
                .reduce(f64::max)?;
            Some((key, replicas * cost.millionths()))
        })
        .min_by(|(one, cost), (other, other_cost)| {
            cost.total_cmp(other_cost).then_with(|| one.cmp(other))
        })
        .map(|(key, _)| key.clone())
}
