//! Releasing replicas within what every claim leaves, saving as much as possible: an integer packing
//! problem of a few variants and a few claims.

use super::cover::{Item, SEARCH_EFFORT, cost, first, is_cheaper, set, take};
use crate::rounding;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shed {
    allowances: Vec<f64>,
    items: Vec<Item>,
    /// Replicas that may go in total, so that the last one of a role stays.
    total: u32,
    /// Positions of the items, the most expensive first.
    order: Vec<usize>,
}

impl Shed {
    /// Poses the problem. The most expensive variant comes first, at the same cost the one that takes the
    /// least away, then the first.
    pub(super) fn new(allowances: Vec<f64>, items: Vec<Item>, total: u32) -> Self {
        let weight = |item: &Item| -> f64 {
            allowances
                .iter()
                .zip(&item.per_replica)
                .map(|(allowance, loss)| if *allowance > 0.0 { loss / allowance } else { *loss })
                .sum()
        };
        let mut ranked: Vec<(f64, f64, usize)> = items
            .iter()
            .enumerate()
            .map(|(position, item)| (item.cost, weight(item), position))
            .collect();
        ranked.sort_by(|one, other| {
            (other.0.total_cmp(&one.0)).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2))
        });
        let order = ranked.into_iter().map(|(_, _, position)| position).collect();
        Self { allowances, items, total, order }
    }

    /// Takes of each item in order as many as the allowances and its room permit.
    pub(super) fn greedy(&self) -> Vec<u32> {
        let mut counts = vec![0; self.items.len()];
        let mut left = self.allowances.clone();
        let mut total = self.total;
        for position in &self.order {
            if let (Some(item), Some(count)) =
                (self.items.get(*position), counts.get_mut(*position))
            {
                *count = permitted(item, &left, total);
                take(&mut left, item, *count);
                total -= *count;
            }
        }
        counts
    }

    /// The counts that save most; where nothing saves more, or the effort ends first, the greedy
    /// ones or the best found.
    pub(super) fn most_expensive(&self) -> Vec<u32> {
        let greedy = self.greedy();
        let mut search = Search {
            items: first(&self.items, &self.order),
            counts: vec![0; greedy.len()],
            best_saving: self.saving(&greedy),
            best: greedy,
            effort: SEARCH_EFFORT,
        };
        search.descend(0, &self.allowances, self.total, 0.0);
        search.best
    }

    pub(super) fn saving(&self, counts: &[u32]) -> f64 {
        cost(&self.items, counts)
    }
}

fn permitted(item: &Item, left: &[f64], total: u32) -> u32 {
    left.iter()
        .zip(&item.per_replica)
        .filter(|(_, loss)| **loss > 0.0)
        .map(|(left, loss)| rounding::floor(left / loss))
        .min()
        .map_or(0, |count| count.min(item.room).min(total))
}

/// Depth-first search with a bound, from many replicas of the most expensive item to few.
#[derive(Debug)]
struct Search<'a> {
    items: Vec<(usize, &'a Item)>,
    counts: Vec<u32>,
    best: Vec<u32>,
    best_saving: f64,
    effort: u32,
}

impl Search<'_> {
    fn descend(&mut self, depth: usize, left: &[f64], total: u32, saving: f64) {
        if is_cheaper(self.best_saving, saving) {
            self.best_saving = saving;
            self.best.clone_from(&self.counts);
        }
        let Some((position, item)) = self.items.get(depth).copied() else {
            return;
        };
        if !is_cheaper(self.best_saving, saving + self.most_rest(depth, left, total)) {
            return;
        }
        for count in (0..=permitted(item, left, total)).rev() {
            if self.effort == 0 {
                return;
            }
            self.effort -= 1;
            let mut rest = left.to_vec();
            take(&mut rest, item, count);
            set(&mut self.counts, position, count);
            let more = item.cost * f64::from(count);
            self.descend(depth + 1, &rest, total - count, saving + more);
        }
        set(&mut self.counts, position, 0);
    }

    /// What the items from `depth` on can save at the very most.
    fn most_rest(&self, depth: usize, left: &[f64], total: u32) -> f64 {
        self.items
            .get(depth..)
            .unwrap_or_default()
            .iter()
            .map(|(_, item)| item.cost * f64::from(permitted(item, left, total)))
            .sum()
    }
}

#[cfg(test)]
#[path = "shed_tests.rs"]
mod tests;
