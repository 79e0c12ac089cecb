//! Table headroom.yaml: sharing a fixed budget by headroom.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::{Tally, run};
use super::world::at;
use crate::key::VariantKey;
use crate::limit::{Claimant, Transfer, TransferEnd, TransferHolds, headroom};
use crate::units::Gpus;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Given {
    Share {
        budget: u32,
        claimants: BTreeMap<String, (f64, f64)>,
    },
    End {
        ended: TransferEnd,
        release: u64,
        after: u64,
    },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Expect {
    Share { shares: BTreeMap<String, f64> },
    End { forward: bool, back: bool },
}

fn key(name: &str) -> VariantKey {
    VariantKey::new("ns", name)
}

fn transfer(donor: &str, taker: &str) -> Transfer {
    Transfer {
        donor: key(donor),
        taker: key(taker),
    }
}

fn answer(given: &Given) -> Expect {
    match given {
        Given::Share { budget, claimants } => {
            let claimants = claimants
                .iter()
                .map(|(name, (weight, need))| {
                    let claimant = Claimant {
                        weight: *weight,
                        need: *need,
                    };
                    (key(name), claimant)
                })
                .collect();
            let shares = headroom(Gpus(*budget), &claimants);
            let rounded = |share: f64| (share * 1e4).round() / 1e4;
            Expect::Share {
                shares: shares
                    .iter()
                    .map(|(key, share)| (key.name.to_string(), rounded(*share)))
                    .collect(),
            }
        }
        Given::End {
            ended,
            release,
            after,
        } => {
            let begin = at(100);
            let (forward, back) = (transfer("a", "b"), transfer("b", "a"));
            let holds = TransferHolds::default();
            assert!(holds.allow(&forward, begin) && holds.allow(&back, begin));
            let release = Duration::from_secs(*release);
            let holds = holds.end(forward.clone(), *ended, release, begin);
            let now = at(100 + after);
            Expect::End {
                forward: holds.allow(&forward, now),
                back: holds.allow(&back, now),
            }
        }
    }
}

#[test]
fn sharing_by_headroom() {
    let tally = run(
        include_str!("../../../../tests/vectors/headroom.yaml"),
        |id, given: Given, expect: Expect| assert_eq!(answer(&given), expect, "{id}"),
    );
    assert_eq!(
        tally,
        Tally {
            passed: 8,
            corrected: 0,
            not_applicable: 0
        }
    );
}

proptest! {
    #[test]
    fn all_of_the_budget_is_shared_and_nobody_gets_less_than_nothing(
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
