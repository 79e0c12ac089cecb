//! What each voter wants of an optimizer, and its vote in replicas.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::voter::View;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::key::VariantKey;
use crate::units::Cost;

/// One analyzer's wish, in replicas of one and the same variant, not rounded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    pub analyzer: AnalyzerName,
    /// Its weight, not negative.
    pub score: f64,
    /// Replicas to add or to release.
    pub replicas: f64,
}

/// Which end of the votes is the safe one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum VoteDirection {
    /// Growth: the largest vote.
    Up,
    /// Release: the smallest vote.
    Down,
}

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

impl CapacityClaim {
    /// What it leaves once so much of it is on its way.
    pub(crate) fn covered(self, supplied: f64) -> Self {
        let covered = supplied.min(self.amount);
        let (amount, anticipated) = (self.amount - covered, self.anticipated + covered);
        Self { amount, anticipated, ..self }
    }
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
    let rates: Vec<Option<f64>> =
        scored.iter().map(|(_, claim)| rate(claim, &reference, costs)).collect();
    let votes: Vec<Vote> = scored
        .iter()
        .zip(&rates)
        .filter_map(|((score, claim), rate)| {
            let replicas = claim.amount / (*rate)?;
            Some(Vote { analyzer: claim.analyzer, score: *score, replicas })
        })
        .collect();
    let replicas = combine_votes(direction, &votes);
    let claims = scored
        .into_iter()
        .zip(rates)
        .map(|((_, claim), rate)| limited(direction, claim, rate, replicas))
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

/// One number of replicas out of many: the safe end `e` of the votes, drawn towards each vote that
/// outweighs it, `e - sum((e - v) * max(0, s - s_e)) / sum(s)`. Equal scores give the plain maximum
/// or minimum, the result always lies within the votes, and only the ratios of the scores count.
/// A vote without a score counts where no other one does. Not rounded; `None` without votes,
/// which is no basis to act on and not a vote for zero.
pub(crate) fn combine_votes(direction: VoteDirection, votes: &[Vote]) -> Option<f64> {
    let safer = |one: &Vote, other: &Vote| {
        let by_count = one.replicas.total_cmp(&other.replicas);
        let by_count = match direction {
            VoteDirection::Up => by_count,
            VoteDirection::Down => by_count.reverse(),
        };
        by_count.then_with(|| one.score.total_cmp(&other.score))
    };
    let weighed = || votes.iter().filter(|vote| vote.score > 0.0);
    let Some(end) = weighed().max_by(|one, other| safer(one, other)) else {
        let end = votes.iter().max_by(|one, other| safer(one, other));
        return end.map(|end| end.replicas);
    };
    let weight: f64 = weighed().map(|vote| vote.score).sum();
    let drawn: f64 = weighed()
        .map(|vote| (end.replicas - vote.replicas) * (vote.score - end.score).max(0.0))
        .sum();
    Some(end.replicas - drawn / weight)
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
