//! Covering claims with replicas at the least cost: an integer covering problem of a few variants
//! and a few claims.

use std::cmp::Ordering;

use crate::rounding;

/// Steps of one search for the least cost; beyond them the best answer so far stands.
pub(crate) const SEARCH_EFFORT: u32 = 20_000;

/// Variants of one role that a search considers, the best ones by what they cost for their capacity.
pub(crate) const SEARCH_WIDTH: usize = 24;

/// Share of a claim that is a rounding error and not a lack.
const TOLERANCE: f64 = 1e-9;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) cost: f64,
    pub(super) room: u32,
    /// What one replica means to each claim; 0 where the claim cannot size the variant.
    pub(super) per_replica: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cover {
    claims: Vec<f64>,
    items: Vec<Item>,
    /// Positions of the items, the least cost for covering everything first.
    order: Vec<usize>,
}

impl Cover {
    /// Poses the problem. Of items at one price the first comes first.
    pub(super) fn new(claims: Vec<f64>, items: Vec<Item>) -> Self {
        let supplies: Vec<(f64, &[f64])> =
            (items.iter()).map(|item| (item.cost, item.per_replica.as_slice())).collect();
        let mut ranked: Vec<(f64, usize)> =
            prices(&claims, &supplies).into_iter().zip(0..).collect();
        ranked.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let order = ranked.into_iter().map(|(_, position)| position).collect();
        Self { claims, items, order }
    }

    /// Takes of each item in order as many as the claims still need and its room allows.
    pub(super) fn greedy(&self) -> Vec<u32> {
        let mut counts = vec![0; self.items.len()];
        let mut left = self.claims.clone();
        for position in &self.order {
            if let (Some(item), Some(count)) =
                (self.items.get(*position), counts.get_mut(*position))
            {
                *count = self.useful(item, &left);
                take(&mut left, item, *count);
            }
        }
        counts
    }

    /// The cheapest counts that meet every claim; where nothing meets them all, or nothing is
    /// cheaper, or the effort ends first, the greedy ones or the best found.
    pub(super) fn cheapest(&self) -> Vec<u32> {
        let greedy = self.greedy();
        if !self.is_met_by(&greedy) {
            return greedy;
        }
        let items = first(&self.items, &self.order);
        let mut search = Search {
            cover: self,
            rates: rates(&items, self.claims.len()),
            items,
            counts: vec![0; greedy.len()],
            best_cost: self.cost(&greedy),
            best: greedy,
            effort: SEARCH_EFFORT,
        };
        search.descend(0, &self.claims, 0.0);
        search.best
    }

    pub(super) fn cost(&self, counts: &[u32]) -> f64 {
        cost(&self.items, counts)
    }

    pub(super) fn lacking(&self, counts: &[u32]) -> Vec<f64> {
        let mut left = self.claims.clone();
        for (item, count) in self.items.iter().zip(counts) {
            take(&mut left, item, *count);
        }
        for (left, claim) in left.iter_mut().zip(&self.claims) {
            if *left <= claim * TOLERANCE {
                *left = 0.0;
            }
        }
        left
    }

    fn is_met_by(&self, counts: &[u32]) -> bool {
        self.is_met(&self.lacking(counts))
    }

    fn is_met(&self, left: &[f64]) -> bool {
        left.iter().zip(&self.claims).all(|(left, claim)| *left <= claim * TOLERANCE)
    }

    /// The most replicas of an item that any claim still has a use for.
    fn useful(&self, item: &Item, left: &[f64]) -> u32 {
        left.iter()
            .zip(&self.claims)
            .zip(&item.per_replica)
            .filter(|((left, claim), gain)| **left > *claim * TOLERANCE && **gain > 0.0)
            .map(|((left, _), gain)| rounding::ceil(left / gain))
            .max()
            .map_or(0, |count| count.min(item.room))
    }
}

/// What it costs to cover every claim with one variant; `supplies` are the cost of one replica of
/// each, and what it adds to every claim. A claim that a variant cannot serve costs what the cheapest
/// of the others takes for it.
pub(super) fn prices(claims: &[f64], supplies: &[(f64, &[f64])]) -> Vec<f64> {
    let alone = |(index, claim): (usize, &f64), (cost, gains): &(f64, &[f64])| {
        let gain = gains.get(index).filter(|gain| **gain > 0.0)?;
        Some(claim / gain * cost)
    };
    let least: Vec<f64> = (claims.iter().enumerate())
        .map(|claim| {
            let costs = supplies.iter().filter_map(|supply| alone(claim, supply));
            costs.reduce(f64::min).unwrap_or(0.0)
        })
        .collect();
    let price = |supply: &(f64, &[f64])| {
        let (mut own, mut others) = (0.0_f64, 0.0_f64);
        for (claim, least) in claims.iter().enumerate().zip(&least) {
            match alone(claim, supply) {
                Some(cost) => own = own.max(cost),
                None => others = others.max(*least),
            }
        }
        own + others
    };
    supplies.iter().map(price).collect()
}

pub(super) fn first<'a>(items: &'a [Item], order: &[usize]) -> Vec<(usize, &'a Item)> {
    let first = order.iter().take(SEARCH_WIDTH);
    first.filter_map(|position| Some((*position, items.get(*position)?))).collect()
}

pub(super) fn cost(items: &[Item], counts: &[u32]) -> f64 {
    (items.iter().zip(counts)).map(|(item, count)| item.cost * f64::from(*count)).sum()
}

pub(super) fn set(counts: &mut [u32], position: usize, count: u32) {
    if let Some(slot) = counts.get_mut(position) {
        *slot = count;
    }
}

pub(super) fn take(left: &mut [f64], item: &Item, count: u32) {
    for (left, gain) in left.iter_mut().zip(&item.per_replica) {
        *left -= gain * f64::from(count);
    }
}

/// For each item the least cost of one unit of each claim among this item and those after it;
/// infinite where none supplies it.
fn rates(items: &[(usize, &Item)], claims: usize) -> Vec<Vec<f64>> {
    let mut least = vec![f64::INFINITY; claims];
    let mut rates: Vec<Vec<f64>> = items
        .iter()
        .rev()
        .map(|(_, item)| {
            for (least, gain) in least.iter_mut().zip(&item.per_replica) {
                if *gain > 0.0 {
                    *least = least.min(item.cost / gain);
                }
            }
            least.clone()
        })
        .collect();
    rates.reverse();
    rates
}

/// Depth-first search with a bound, from many replicas of the best item to few.
#[derive(Debug)]
struct Search<'a> {
    cover: &'a Cover,
    items: Vec<(usize, &'a Item)>,
    rates: Vec<Vec<f64>>,
    counts: Vec<u32>,
    best: Vec<u32>,
    best_cost: f64,
    effort: u32,
}

impl Search<'_> {
    fn descend(&mut self, depth: usize, left: &[f64], cost: f64) {
        if self.cover.is_met(left) {
            if is_cheaper(cost, self.best_cost) {
                self.best_cost = cost;
                self.best.clone_from(&self.counts);
            }
            return;
        }
        let Some((position, item)) = self.items.get(depth).copied() else {
            return;
        };
        if !is_cheaper(cost + self.least_rest(depth, left), self.best_cost) {
            return;
        }
        let mut rest = left.to_vec();
        for count in (0..=self.cover.useful(item, left)).rev() {
            if self.effort == 0 {
                return;
            }
            self.effort -= 1;
            rest.copy_from_slice(left);
            take(&mut rest, item, count);
            set(&mut self.counts, position, count);
            self.descend(depth + 1, &rest, cost + item.cost * f64::from(count));
        }
        set(&mut self.counts, position, 0);
    }

    /// What the rest of the claims costs at the very least.
    fn least_rest(&self, depth: usize, left: &[f64]) -> f64 {
        let rates = self.rates.get(depth).map_or(&[][..], Vec::as_slice);
        left.iter()
            .zip(&self.cover.claims)
            .zip(rates)
            .filter(|((left, claim), _)| **left > *claim * TOLERANCE)
            .map(|((left, _), rate)| left * rate)
            .fold(0.0, f64::max)
    }
}

/// Cheaper by more than a rounding error, so that equal costs keep the earlier answer.
pub(super) fn is_cheaper(cost: f64, than: f64) -> bool {
    cost.partial_cmp(&(than * (1.0 - TOLERANCE))) == Some(Ordering::Less)
}

#[cfg(test)]
#[path = "cover_tests.rs"]
mod tests;
