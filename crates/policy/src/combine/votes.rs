//! Votes of analyzers, in replicas.

use serde::{Deserialize, Serialize};

use crate::capacity::AnalyzerName;

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
