use proptest::collection::vec;
use proptest::prelude::*;

use super::{Item, Shed};

fn item(cost: f64, room: u32, loss: f64) -> Item {
    Item { cost, room, per_replica: vec![loss] }
}

fn is_allowed(shed: &Shed, counts: &[u32]) -> bool {
    let within = shed.allowances.iter().enumerate().all(|(claim, allowance)| {
        let taken: f64 = shed
            .items
            .iter()
            .zip(counts)
            .map(|(item, count)| item.per_replica[claim] * f64::from(*count))
            .sum();
        taken <= allowance + 1e-6
    });
    within && counts.iter().sum::<u32>() <= shed.total
}

/// Tries everything; the largest saving that every claim allows.
fn oracle(shed: &Shed, item: usize, counts: &mut Vec<u32>) -> f64 {
    if item == shed.items.len() {
        return if is_allowed(shed, counts) { shed.saving(counts) } else { 0.0 };
    }
    // What a variant without a loss takes away is not known, so it is left alone.
    let is_sized = shed.items[item].per_replica.iter().any(|loss| *loss > 0.0);
    let room = if is_sized { shed.items[item].room } else { 0 };
    (0..=room)
        .map(|count| {
            counts.push(count);
            let saving = oracle(shed, item + 1, counts);
            counts.pop();
            saving
        })
        .fold(0.0, f64::max)
}

#[test]
fn a_search_saves_more_where_the_most_expensive_is_also_the_largest() {
    let shed = Shed::new(vec![30.0], vec![item(15.0, 1, 25.0), item(7.0, 3, 10.0)], 9);
    assert_eq!(shed.greedy(), [1, 0]);
    assert_eq!(shed.most_expensive(), [0, 3]);
}

#[test]
fn one_claim_without_allowance_keeps_everything_it_sizes() {
    let items = vec![Item { cost: 9.0, room: 5, per_replica: vec![1.0, 1.0] }];
    assert_eq!(Shed::new(vec![5.0, 0.0], items, 4).most_expensive(), [0]);
}

fn sheds() -> impl Strategy<Value = Shed> {
    (1_usize..=2).prop_flat_map(|claims| {
        let items = vec((0_u32..20, 0_u32..4, vec(0_u32..9, claims)), 1..4);
        (vec(0_u32..30, claims), items, 0_u32..9).prop_map(|(allowances, items, total)| {
            Shed::new(
                allowances.into_iter().map(f64::from).collect(),
                items
                    .into_iter()
                    .map(|(cost, room, losses)| Item {
                        cost: f64::from(cost),
                        room,
                        per_replica: losses.into_iter().map(f64::from).collect(),
                    })
                    .collect(),
                total,
            )
        })
    })
}

proptest! {
    #[test]
    fn a_search_finds_the_largest_saving(shed in sheds()) {
        let found = shed.most_expensive();
        prop_assert!(is_allowed(&shed, &found));
        for (item, count) in shed.items.iter().zip(&found) {
            prop_assert!(*count <= item.room);
        }
        let most = oracle(&shed, 0, &mut Vec::new());
        prop_assert!((shed.saving(&found) - most).abs() < 1e-6, "{found:?} {most}");
        prop_assert!(shed.saving(&shed.greedy()) <= most + 1e-6);
    }
}
