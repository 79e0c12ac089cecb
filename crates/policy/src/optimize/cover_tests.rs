use proptest::collection::vec;
use proptest::prelude::*;

use super::{Cover, Item};

fn item(cost: f64, room: u32, gain: f64) -> Item {
    Item { cost, room, per_replica: vec![gain] }
}

/// Tries everything; the least cost that meets every claim.
fn oracle(cover: &Cover, item: usize, counts: &mut Vec<u32>) -> Option<f64> {
    if item == cover.items.len() {
        return cover.is_met_by(counts).then(|| cover.cost(counts));
    }
    let mut best: Option<f64> = None;
    for count in 0..=cover.items[item].room {
        counts.push(count);
        let cost = oracle(cover, item + 1, counts);
        counts.pop();
        best = match (best, cost) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    best
}

#[test]
fn a_search_beats_the_greedy_choice_where_that_overshoots() {
    // Greedy buys two of the efficient one (cost 20); one of the small one is enough on top (13).
    let cover = Cover::new(vec![11.0], vec![item(10.0, 9, 10.0), item(3.0, 9, 2.0)]);
    assert_eq!(cover.greedy(), [2, 0]);
    assert_eq!(cover.cheapest(), [1, 1]);
}

#[test]
fn a_claim_that_a_variant_cannot_serve_is_not_free() {
    let both = |cost, gains: [f64; 2]| Item { cost, room: 99, per_replica: gains.to_vec() };
    // The second variant serves both claims: none of the first is needed for the small one.
    let cover =
        Cover::new(vec![1.0, 10.0], vec![both(20.0, [100.0, 0.0]), both(10.0, [100.0, 1.0])]);
    assert_eq!(cover.greedy(), [0, 10]);
    assert_eq!(cover.cheapest(), [0, 10]);
}

#[test]
fn equal_costs_keep_the_greedy_choice() {
    let cover = Cover::new(vec![25_000.0], vec![item(5.0, 9, 10_000.0), item(10.0, 9, 15_000.0)]);
    assert_eq!(cover.cheapest(), [3, 0]);
}

#[test]
fn what_cannot_be_met_gets_all_there_is() {
    let cover = Cover::new(vec![10.0], vec![item(1.0, 2, 1.0), item(9.0, 3, 2.0)]);
    assert_eq!(cover.cheapest(), [2, 3]);
    assert_eq!(cover.lacking(&[2, 3]), [2.0]);
}

#[test]
fn a_large_problem_ends() {
    let items: Vec<Item> = (0..400)
        .map(|number| item(100.0 + f64::from(number % 37), 50, 7.0 + f64::from(number % 11)))
        .collect();
    let cover = Cover::new(vec![1_234.5], items);
    let found = cover.cheapest();
    assert!(cover.is_met_by(&found));
    assert!(cover.cost(&found) <= cover.cost(&cover.greedy()));
}

fn covers() -> impl Strategy<Value = Cover> {
    (1_usize..=2).prop_flat_map(|claims| {
        let items = vec((0_u32..20, 0_u32..4, vec(0_u32..9, claims)), 1..4);
        (vec(1_u32..30, claims), items).prop_map(|(claims, items)| {
            Cover::new(
                claims.into_iter().map(f64::from).collect(),
                items
                    .into_iter()
                    .map(|(cost, room, gains)| Item {
                        cost: f64::from(cost),
                        room,
                        per_replica: gains.into_iter().map(f64::from).collect(),
                    })
                    .collect(),
            )
        })
    })
}

proptest! {
    #[test]
    fn a_search_finds_the_least_cost(cover in covers()) {
        let found = cover.cheapest();
        for (item, count) in cover.items.iter().zip(&found) {
            prop_assert!(*count <= item.room);
        }
        let greedy = cover.greedy();
        // The greedy choice goes on as long as anything lacks, so it meets what can be met.
        if let Some(least) = oracle(&cover, 0, &mut Vec::new()) {
            prop_assert!(cover.is_met_by(&greedy));
            prop_assert!(cover.is_met_by(&found));
            prop_assert!((cover.cost(&found) - least).abs() < 1e-6, "{found:?} {least}");
        } else {
            prop_assert_eq!(found, greedy);
        }
    }
}
