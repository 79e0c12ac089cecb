//! What one voter wants of an optimizer.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::balance::View;
use super::votes::{Vote, VoteDirection, combine_votes};
use crate::capacity::{AnalyzerName, ServingRole};
use crate::key::VariantKey;
use crate::units::Cost;

/// Capacity that one voter wants added to, or allows to be taken from, one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityClaim {
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Weighed {
    pub claims: Vec<CapacityClaim>,
    /// The votes, in replicas of one variant.
    pub votes: Vec<Vote>,
    /// What the votes combine to, not rounded.
    pub replicas: Option<f64>,
}

/// Weighs the voters' amounts in replicas of one variant, the reference, once, and moves each amount
/// beyond the combined vote back to it.
pub(super) fn weigh(
    direction: VoteDirection,
    role: ServingRole,
    views: &[&View<'_>],
    costs: &BTreeMap<VariantKey, Cost>,
) -> Weighed {
    let scored: Vec<(f64, CapacityClaim)> = views
        .iter()
        .filter_map(|view| {
            let balance = view.roles.get(&role)?;
            let amount = match direction {
                VoteDirection::Up => balance.required,
                VoteDirection::Down => balance.releasable,
            };
            let claim = CapacityClaim {
                analyzer: view.result.analyzer,
                amount,
                anticipated: balance.anticipated,
                per_replica: view.capacities(role),
            };
            Some((view.result.score, claim))
        })
        .collect();
    let Some(reference) = reference(&scored, costs) else {
        let claims = scored.into_iter().map(|(_, claim)| claim).collect();
        return Weighed { claims, ..Weighed::default() };
    };
    let rated: Vec<(f64, CapacityClaim, Option<f64>)> = scored
        .into_iter()
        .map(|(score, claim)| {
            let rate = rate(&claim, &reference, costs);
            (score, claim, rate)
        })
        .collect();
    let votes: Vec<Vote> = rated
        .iter()
        .filter_map(|(score, claim, rate)| {
            Some(Vote {
                analyzer: claim.analyzer,
                score: *score,
                replicas: claim.amount / (*rate)?,
            })
        })
        .collect();
    let replicas = combine_votes(direction, &votes);
    let claims = rated
        .into_iter()
        .map(|(_, claim, rate)| limited(direction, claim, rate, replicas))
        .collect();
    Weighed { claims, votes, replicas }
}

fn limited(
    direction: VoteDirection,
    mut claim: CapacityClaim,
    rate: Option<f64>,
    combined: Option<f64>,
) -> CapacityClaim {
    if let (Some(rate), Some(replicas)) = (rate, combined) {
        let voted = replicas * rate;
        claim.amount = match direction {
            VoteDirection::Up => claim.amount.min(voted),
            VoteDirection::Down => claim.amount.max(voted),
        };
    }
    claim
}

/// What one replica of the reference means to a claim. A claim that cannot size the reference takes
/// the variant that serves it at the least cost, for the cost of one replica of the reference: its
/// vote counts with the others where no variant is sized by all of them.
fn rate(
    claim: &CapacityClaim,
    reference: &VariantKey,
    costs: &BTreeMap<VariantKey, Cost>,
) -> Option<f64> {
    if let Some(capacity) = claim.per_replica.get(reference) {
        return Some(*capacity);
    }
    let unit = costs.get(reference)?.millionths();
    sized(claim, costs)
        .map(
            |(capacity, cost)| {
                if unit > 0.0 && cost > 0.0 { capacity * unit / cost } else { capacity }
            },
        )
        .reduce(f64::max)
}

fn sized<'a>(
    claim: &'a CapacityClaim,
    costs: &'a BTreeMap<VariantKey, Cost>,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let cost_of = |key| costs.get(key).map(|cost| cost.millionths());
    (claim.per_replica.iter()).filter_map(move |(key, capacity)| Some((*capacity, cost_of(key)?)))
}

/// The variant that alone would cover all amounts at the least cost, of those that the most claims can
/// size: what a claim cannot size has no price. Ties by key.
fn reference(
    scored: &[(f64, CapacityClaim)],
    costs: &BTreeMap<VariantKey, Cost>,
) -> Option<VariantKey> {
    let priced = costs.iter().filter_map(|(key, cost)| {
        let replicas: Vec<f64> = scored
            .iter()
            .filter_map(|(_, claim)| Some(claim.amount / claim.per_replica.get(key)?))
            .collect();
        let most = replicas.iter().copied().reduce(f64::max)?;
        Some((key, Reverse(replicas.len()), most * cost.millionths()))
    });
    priced
        .min_by(|(one, sizers, cost), (other, other_sizers, other_cost)| {
            sizers
                .cmp(other_sizers)
                .then_with(|| cost.total_cmp(other_cost))
                .then_with(|| one.cmp(other))
        })
        .map(|(key, _, _)| key.clone())
}
