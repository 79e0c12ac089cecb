//! Table optimize.yaml: counts of one round without limits.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::{Tally, run};
use super::world::{self, key};
use crate::capacity::{AnalyzerName, ServingRole};
use crate::combine::{CapacityClaim, RoleTarget, Weighed};
use crate::key::VariantKey;
use crate::optimize::{Candidate, ReplicaAllocation, cost_aware};
use crate::reason::{Method, Reason};
use crate::snapshot::DeclaredBounds;
use crate::units::Replicas;

/// Cost, capacity of one replica, replicas, role.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum VariantGiven {
    Plain(u32, f64, u32),
    InRole(u32, f64, u32, ServingRole),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Round {
    required: BTreeMap<ServingRole, f64>,
    spare: BTreeMap<ServingRole, f64>,
    anticipated: BTreeMap<ServingRole, f64>,
    variants: BTreeMap<String, VariantGiven>,
    min: BTreeMap<String, u32>,
    max: BTreeMap<String, u32>,
    greedy: Option<BTreeMap<String, u32>>,
}

impl VariantGiven {
    fn parts(&self) -> (u32, f64, u32, ServingRole) {
        match *self {
            Self::Plain(cost, capacity, count) => (cost, capacity, count, ServingRole::Both),
            Self::InRole(cost, capacity, count, role) => (cost, capacity, count, role),
        }
    }
}

impl Round {
    fn candidates(&self) -> BTreeMap<VariantKey, Candidate> {
        let candidate = |(name, given): (&String, &VariantGiven)| {
            let (cost, _, count, role) = given.parts();
            let declared = DeclaredBounds {
                min: self.min.get(name).copied().map(Replicas),
                max: self.max.get(name).copied().map(Replicas),
            };
            let candidate = world::candidate(role, &cost.to_string(), count, &declared);
            (key(name), candidate)
        };
        self.variants.iter().map(candidate).collect()
    }

    fn claim(&self, role: ServingRole, amount: f64) -> CapacityClaim {
        CapacityClaim {
            analyzer: AnalyzerName::Saturation,
            amount,
            anticipated: self.anticipated.get(&role).copied().unwrap_or(0.0),
            per_replica: self
                .variants
                .iter()
                .map(|(name, given)| (name, given.parts()))
                .filter(|(_, (_, capacity, _, its))| *its == role && *capacity > 0.0)
                .map(|(name, (_, capacity, _, _))| (key(name), capacity))
                .collect(),
        }
    }

    fn role_targets(&self) -> BTreeMap<ServingRole, RoleTarget> {
        let grow = self.required.iter().map(|(role, amount)| {
            let claims = vec![self.claim(*role, *amount)];
            (*role, RoleTarget::Grow(Weighed { claims, ..Weighed::default() }))
        });
        let release = self.spare.iter().map(|(role, amount)| {
            let claims = vec![self.claim(*role, *amount)];
            (*role, RoleTarget::Release(Weighed { claims, ..Weighed::default() }))
        });
        grow.chain(release).collect()
    }

    fn allocate(&self, method: Method) -> ReplicaAllocation {
        cost_aware(&self.candidates(), &self.role_targets(), method)
    }
}

fn targets(allocation: &ReplicaAllocation) -> BTreeMap<String, u32> {
    allocation.changes.iter().map(|(key, change)| (key.name.to_string(), change.to.0)).collect()
}

#[test]
fn optimizer_counts() {
    let tally = run(
        include_str!("../../../../tests/vectors/optimize.yaml"),
        |id, given: Round, expect: BTreeMap<String, u32>| {
            let least = targets(&given.allocate(Method::LeastCost));
            assert_eq!(least, expect, "{id}");
            let greedy = targets(&given.allocate(Method::Greedy));
            assert_eq!(greedy, given.greedy.unwrap_or(expect), "{id} greedy");
        },
    );
    assert_eq!(tally, Tally::of(31, 1, 6));
}

fn round(text: &str) -> Round {
    serde_yaml::from_str(text).unwrap()
}

#[test]
fn a_reason_names_the_optimizer_and_the_amount() {
    let shrinks = round(
        "{ spare: { both: 25000 }, variants: { cheap: [5, 10000, 0], exp: [15, 20000, 2] } }",
    );
    let allocation = shrinks.allocate(Method::LeastCost);
    assert_eq!(
        allocation.changes[&key("exp")].why.to_string(),
        "V2 scale-down (optimizer: cost-aware, releasable: 25000)"
    );
    let grows = round("{ required: { both: 5000 }, variants: { v: [5, 10000, 1] } }");
    assert_eq!(
        grows.allocate(Method::Greedy).changes[&key("v")].why.to_string(),
        "V2 scale-up (optimizer: cost-aware, required: 5000)"
    );
}

#[test]
fn the_least_cost_beats_the_greedy_choice() {
    let given =
        round("{ required: { both: 11 }, variants: { big: [10, 10, 1], small: [3, 2, 1] } }");
    let greedy = BTreeMap::from([("big".to_owned(), 3), ("small".to_owned(), 1)]);
    assert_eq!(targets(&given.allocate(Method::Greedy)), greedy);
    let least = BTreeMap::from([("big".to_owned(), 2), ("small".to_owned(), 2)]);
    assert_eq!(targets(&given.allocate(Method::LeastCost)), least);
}

#[test]
fn a_role_that_lacks_capacity_keeps_the_others_from_shrinking() {
    let given = round(
        "{ required: { prefill: 10 }, spare: { decode: 100 },
           variants: { p: [5, 10, 1, prefill], d: [5, 10, 9, decode] } }",
    );
    let allocation = given.allocate(Method::LeastCost);
    assert_eq!(allocation.changes[&key("p")].to, Replicas(2));
    assert_eq!(allocation.changes[&key("d")].to, Replicas(9));
    assert_eq!(allocation.changes[&key("d")].why, Reason::ModelGrows);
}

#[test]
fn a_role_at_its_maximum_keeps_no_other_one_from_shrinking() {
    let counts = |max: &str| {
        let given = format!(
            "{{ required: {{ decode: 20 }}, spare: {{ prefill: 30 }}, max: {{ {max} }},
               variants: {{ p: [5, 10, 9, prefill], d: [5, 10, 2, decode], e: [5, 10, 2, decode] }} }}"
        );
        let changes = round(&given).allocate(Method::LeastCost).changes;
        ["p", "d", "e"].map(|name| changes[&key(name)].to.0)
    };
    assert_eq!(counts("d: 2, e: 4"), [9, 2, 4]);
    assert_eq!(counts("d: 2, e: 3"), [9, 2, 3]);
    assert_eq!(counts("d: 2, e: 2"), [6, 2, 2]);
}

#[test]
fn what_cannot_be_had_is_named() {
    let given = round("{ required: { both: 35 }, variants: { v: [5, 10, 1] }, max: { v: 3 } }");
    let allocation = given.allocate(Method::LeastCost);
    assert_eq!(allocation.changes[&key("v")].to, Replicas(3));
    let unmet = &allocation.unmet[&ServingRole::Both];
    assert_eq!(unmet.len(), 1);
    assert!((unmet[0].amount - 15.0).abs() < 1e-9);
}

fn rounds() -> impl Strategy<Value = Round> {
    let role =
        prop_oneof![Just(ServingRole::Prefill), Just(ServingRole::Decode), Just(ServingRole::Both)];
    let variant = (0_u32..20, 0_u32..9, 0_u32..6, role, 0_u32..3, proptest::option::of(0_u32..9));
    let amounts = || {
        proptest::collection::btree_map(
            prop_oneof![
                Just(ServingRole::Prefill),
                Just(ServingRole::Decode),
                Just(ServingRole::Both)
            ],
            (0_u32..60).prop_map(f64::from),
            0..3,
        )
    };
    (proptest::collection::vec(variant, 1..6), amounts(), amounts()).prop_map(
        |(variants, required, mut spare)| {
            let mut round = Round::default();
            for (index, (cost, capacity, count, role, min, more)) in
                variants.into_iter().enumerate()
            {
                let name = format!("v{index}");
                if let Some(more) = more {
                    round.max.insert(name.clone(), min + more);
                }
                round.min.insert(name.clone(), min);
                round
                    .variants
                    .insert(name, VariantGiven::InRole(cost, f64::from(capacity), count, role));
            }
            spare.retain(|role, _| !required.contains_key(role));
            round.required = required;
            round.spare = spare;
            round
        },
    )
}

fn cost(round: &Round, allocation: &ReplicaAllocation) -> u64 {
    allocation
        .changes
        .iter()
        .map(|(key, change)| {
            let (cost, ..) = round.variants[&*key.name].parts();
            u64::from(cost) * u64::from(change.to.0)
        })
        .sum()
}

fn lacking(allocation: &ReplicaAllocation) -> f64 {
    let unmet = allocation.unmet.values().flatten();
    unmet.map(|unmet| unmet.amount).sum()
}

proptest! {
    #[test]
    fn steps_stay_within_bounds_and_the_search_is_never_dearer(round in rounds()) {
        let least = round.allocate(Method::LeastCost);
        let greedy = round.allocate(Method::Greedy);
        prop_assert!(cost(&round, &least) <= cost(&round, &greedy));
        prop_assert!((lacking(&least) - lacking(&greedy)).abs() < 1e-6);
        let candidates = round.candidates();
        prop_assert_eq!(least.changes.len(), candidates.len());
        for (key, change) in &least.changes {
            let bounds = candidates[key].bounds;
            prop_assert_eq!(change.from, candidates[key].count);
            if change.to > change.from {
                prop_assert!(bounds.max.is_none_or(|max| change.to <= max));
            }
            if change.to < change.from {
                prop_assert!(change.to >= bounds.min);
            }
        }
    }

    #[test]
    fn a_release_never_takes_the_last_replica_of_a_role(round in rounds()) {
        let allocation = round.allocate(Method::LeastCost);
        let candidates = round.candidates();
        for role in [ServingRole::Prefill, ServingRole::Decode, ServingRole::Both] {
            let of_role = || candidates.iter().filter(|(_, candidate)| candidate.role == role);
            let before: u32 = of_role().map(|(_, candidate)| candidate.count.0).sum();
            let after: u32 = of_role().map(|(key, _)| allocation.changes[key].to.0).sum();
            prop_assert!(before == 0 || after > 0);
        }
    }
}
