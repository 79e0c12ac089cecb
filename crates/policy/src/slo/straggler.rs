//! Variants that are too slow to serve with the others.
//!
//! A router gives the replicas of a role about as many requests each. A variant that holds fewer sequences within the
//! objectives than others misses them at the load that the others carry, however many of it there are; and where the
//! load of all is what the slowest can take, the others idle. So a role is served by the variants that hold so many
//! sequences or more, for the number at which they cost least.

use std::collections::BTreeSet;

use super::capacity::{CapacityBound, SloCapacity};
use super::figures::{SloReport, SloRoleFigures};
use super::release::ReleaseHold;
use crate::capacity::ServingRole;
use crate::key::VariantKey;
use crate::params::SloTerm;
use crate::reason::Straggler;
use crate::rounding;
use crate::throughput::{ThroughputModelInput, ThroughputVariantInput};
use crate::total::total;
use crate::units::{Cost, Replicas};

/// Cost of other variants, to that of those that serve now, below which they serve instead: a steady mix does not change
/// for less.
const WORTH_A_CHANGE: f64 = 0.8;

/// Share of the sequences of others from which on a variant serves with them: their load is shared unevenly, which demand
/// is raised for.
const ALIKE: f64 = 0.5;

impl Straggler {
    pub(super) fn line(self, variant: &VariantKey) -> String {
        let fate = if self.is_replaced {
            "goes to its minimum"
        } else {
            "serves until the others do what is needed"
        };
        format!(
            "slo {variant}: too slow to serve with the others: a replica holds {} sequences, theirs {} \
             or more; it {fate}",
            self.sequences, self.others,
        )
    }
}

/// A variant that was seen to serve.
struct Member<'a> {
    key: &'a VariantKey,
    given: &'a ThroughputVariantInput,
    size: SloCapacity,
}

impl Member<'_> {
    fn most(&self) -> f64 {
        self.given.max.map_or(f64::INFINITY, Replicas::to_f64)
    }

    fn cost(&self) -> f64 {
        self.given.cost.map_or(0.0, Cost::millionths)
    }
}

/// What the variants that hold so many sequences cost, where each replica holds as many.
struct Mix {
    sequences: f64,
    /// `None` where they do not suffice at their maxima.
    cost: Option<f64>,
    /// Work per second at their maxima.
    most: f64,
}

impl Mix {
    fn of(members: &[Member<'_>], sequences: f64, demand: f64) -> Self {
        let own = members.iter().filter(|one| one.size.concurrency >= sequences);
        let mut own: Vec<(f64, f64, &Member<'_>)> = own
            .map(|one| {
                let work = one.size.work_of(sequences);
                (one.cost() / work, work, one)
            })
            .collect();
        own.sort_by(|one, other| one.0.total_cmp(&other.0));
        // The minima of the others are paid all the same.
        let others = members.iter().filter(|one| one.size.concurrency < sequences);
        let others = total(others.map(|one| one.given.min.to_f64() * one.cost()));
        let (mut left, mut spent, mut cost) = (demand, others, None);
        let mut is_tried = false;
        for (place, (_, work, one)) in own.iter().enumerate() {
            // It, or a dearer one, may serve what whole replicas of the cheaper ones leave.
            let last = own.iter().skip(place).filter_map(|(_, work, one)| {
                let count = f64::from(rounding::ceil((left / work).max(0.0)));
                (count <= one.most()).then(|| spent + count * one.cost())
            });
            if !is_tried {
                cost = last.chain(cost).reduce(f64::min);
            }
            if left <= 0.0 {
                break;
            }
            let count = f64::from(rounding::floor((left / work).max(0.0))).min(one.most());
            spent += count * one.cost();
            left -= count * work;
            // Where none of it serves, the dearer ones were tried for the same.
            is_tried = count <= 0.0;
        }
        Self { sequences, cost, most: total(own.iter().map(|(_, work, one)| work * one.most())) }
    }

    /// Whether it is to serve in place of the other one, of whose cost it may take so large a share.
    fn is_better(&self, than: &Self, share: f64) -> bool {
        match (self.cost, than.cost) {
            (Some(own), Some(other)) => own < other * share,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            // Neither suffices: answers are late until the one that does more serves.
            (None, None) => self.most > than.most,
        }
    }
}

/// Whether needs are known: where requests wait, or little was seen, they might be more.
fn are_known(needs: &SloRoleFigures) -> bool {
    !matches!(needs.hold, Some(ReleaseHold::Backlog | ReleaseHold::ShortMemory))
}

/// The stragglers of a role, where these are `known`.
pub(super) fn find(
    input: &ThroughputModelInput,
    report: &SloReport,
    (role, figures): (ServingRole, &SloRoleFigures),
    known: &BTreeSet<VariantKey>,
) -> BTreeSet<VariantKey> {
    // Where others may not be had, or needs are not known, any replica serves.
    if input.needs_any_variant
        || !are_known(figures)
        || input.params.without == Some(SloTerm::Stragglers)
    {
        return BTreeSet::new();
    }
    let members: Vec<Member<'_>> = (input.variants.iter())
        .filter(|(_, given)| given.role == role)
        .filter_map(|(key, given)| {
            let size = *report.variants.get(key)?;
            let is_seen = size.bound != CapacityBound::Cost && size.concurrency > 0.0;
            is_seen.then_some(Member { key, given, size })
        })
        .collect();
    let sequences = |of: &dyn Fn(&&Member<'_>) -> bool| {
        let own = members.iter().filter(of);
        own.map(|one| one.size.concurrency).reduce(f64::min)
    };
    let Some(slowest) = sequences(&|one| !known.contains(one.key)).filter(|_| members.len() > 1)
    else {
        return BTreeSet::new();
    };
    // What is held in reserve alone is not worth other variants.
    let needed = (figures.need.max(figures.arriving + figures.growth) * figures.imbalance)
        .max(figures.remembered)
        .max(figures.held_burst);
    let demand = needed.min(figures.stated) / input.params.band.scale_up;
    let serving = Mix::of(&members, slowest, demand);
    // Load is uneven among those that serve now, and not among those alone that hold more.
    let mixes = members.iter().map(|one| {
        let holds = one.size.concurrency;
        let raised = if holds > slowest { figures.imbalance } else { 1.0 };
        Mix::of(&members, holds, demand / raised)
    });
    let best = mixes.reduce(|best, mix| if mix.is_better(&best, 1.0) { mix } else { best });
    let change = best.filter(|best| best.is_better(&serving, WORTH_A_CHANGE));
    // What a variant holds is known less well while it has no replica: without a change none serves again.
    let stays = change.is_none();
    let chosen = change.unwrap_or(serving);
    let is_peer = |one: &&Member<'_>| {
        let is_asleep = one.given.ready == Replicas::ZERO && known.contains(one.key);
        one.size.concurrency >= chosen.sequences * ALIKE && !(stays && is_asleep)
    };
    // Where the others are full at their maxima, late answers of a slow replica are better than none.
    let saturated = members.iter().filter(is_peer);
    let saturated = total(saturated.map(|one| one.size.saturated * one.most()));
    if figures.need > saturated {
        return BTreeSet::new();
    }
    let slow = members.iter().filter(|one| !is_peer(one));
    let slow = slow.map(|one| one.key);
    let unsized_ones = known.iter().filter(|key| {
        let given = input.variants.get(*key);
        let is_own = given.is_some_and(|given| given.role == role);
        is_own && members.iter().all(|one| one.key != *key)
    });
    slow.chain(unsized_ones).cloned().collect()
}

/// What is said of stragglers of a role.
pub(super) fn describe(
    input: &ThroughputModelInput,
    report: &SloReport,
    (role, figures): (&ServingRole, &SloRoleFigures),
    known: &BTreeSet<VariantKey>,
) -> Vec<(VariantKey, Straggler)> {
    let own = || {
        let sized = report.variants.iter();
        sized.filter_map(|(key, size)| {
            let given = input.variants.get(key).filter(|given| given.role == *role)?;
            Some((key, given, size))
        })
    };
    let peers = || own().filter(|(key, ..)| !known.contains(*key));
    let seen = peers().filter(|(_, _, size)| size.bound != CapacityBound::Cost);
    let others = seen.map(|(_, _, size)| size.concurrency);
    let others = rounding::floor(others.fold(f64::INFINITY, f64::min));
    let supply = total(peers().map(|(_, given, size)| given.ready.to_f64() * size.per_second));
    // Nor does a straggler go while more of the others are to be ordered.
    let ordered = |given: &ThroughputVariantInput| given.ready.plus(given.pending);
    let anticipated =
        total(peers().map(|(_, given, size)| ordered(given).to_f64() * size.per_second));
    let is_full = peers().all(|(_, given, _)| given.max.is_some_and(|max| ordered(given) >= max));
    let is_covered = is_full || figures.stated <= anticipated * input.params.band.scale_up;
    let is_replaced = are_known(figures) && is_covered && supply > 0.0 && figures.need <= supply;
    own()
        .filter(|(key, ..)| known.contains(*key))
        .map(|(key, _, size)| {
            let straggler =
                Straggler { sequences: rounding::floor(size.concurrency), others, is_replaced };
            (key.clone(), straggler)
        })
        .collect()
}
