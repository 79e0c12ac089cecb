//! Table headroom.yaml: sharing a fixed budget by headroom.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::{Tally, run};
use super::world::key;
use crate::key::VariantKey;
use crate::limit::{Claimant, headroom};
use crate::units::Gpus;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    budget: u32,
    claimants: BTreeMap<String, (f64, f64)>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    shares: BTreeMap<String, f64>,
}

fn answer(given: &Given) -> Expect {
    let claimants = given
        .claimants
        .iter()
        .map(|(name, (weight, need))| {
            let claimant = Claimant { weight: *weight, need: *need };
            (key(name), claimant)
        })
        .collect();
    let shares = headroom(Gpus(given.budget), &claimants);
    let rounded = |share: f64| (share * 1e4).round() / 1e4;
    Expect {
        shares: shares.iter().map(|(key, share)| (key.name.to_string(), rounded(*share))).collect(),
    }
}

#[test]
fn sharing_by_headroom() {
    let tally = run(
        include_str!("../../../../tests/vectors/headroom.yaml"),
        |id, given: Given, expect: Expect| assert_eq!(answer(&given), expect, "{id}"),
    );
    assert_eq!(tally, Tally::of(5, 0, 1));
}

proptest! {
    #[test]
    fn all_of_the_budget_is_shared_and_no_share_is_negative(
        given in proptest::collection::vec((0.1..8.0_f64, 0.1..50.0_f64), 1..12),
        budget in 0_u32..300,
    ) {
        let claimants: BTreeMap<VariantKey, Claimant> = given
            .iter()
            .enumerate()
            .map(|(index, (weight, need))| {
                (key(&index.to_string()), Claimant { weight: *weight, need: *need })
            })
            .collect();
        let shares = headroom(Gpus(budget), &claimants);
        prop_assert!(shares.values().all(|share| *share >= 0.0));
        let sum: f64 = shares.values().sum();
        prop_assert!((sum - f64::from(budget)).abs() <= 1e-6 * f64::from(budget.max(1)));
    }
}
