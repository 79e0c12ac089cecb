//! Table fair-share.yaml: growth of many models out of shared pools.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::run;
use super::world::{candidate, key};
use crate::accelerator::Accelerator;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::combine::{CapacityClaim, RoleTarget, Weighed};
use crate::gpu::{Budget, GpuCount, GpuPools, ManagedUse, Physical};
use crate::key::ModelKey;
use crate::optimize::{Contender, Contest, share};
use crate::params::{Limiter, LimiterScope, Quota};
use crate::snapshot::DeclaredBounds;
use crate::units::{Gpus, Replicas};

/// Type, cost, capacity of one replica, GPUs of one replica, replicas now, role.
type VariantGiven = (String, u32, f64, u32, u32, ServingRole);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelGiven {
    #[serde(default = "one")]
    priority: f64,
    required: BTreeMap<ServingRole, f64>,
    variants: BTreeMap<String, VariantGiven>,
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    free: Option<BTreeMap<String, i64>>,
    models: BTreeMap<String, ModelGiven>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    targets: BTreeMap<String, u32>,
    left: BTreeMap<String, u32>,
    why: Option<String>,
}

fn named(kind: &str) -> Accelerator {
    Accelerator::Named(Arc::from(kind))
}

impl ModelGiven {
    fn contest(&self) -> Contest {
        let declared = DeclaredBounds::default();
        let contender = |(name, given): (&String, &VariantGiven)| {
            let (kind, cost, _, gpus, count, role) = given;
            let contender = Contender {
                candidate: candidate(*role, &cost.to_string(), *count, &declared),
                accelerator: named(kind),
                gpus: Gpus(*gpus),
                gpu_count: GpuCount::Counted,
                reserved: Replicas::ZERO,
            };
            (key(name), contender)
        };
        let role_target = |(role, amount): (&ServingRole, &f64)| {
            let per_replica = self
                .variants
                .iter()
                .filter(|(_, given)| given.5 == *role && given.2 > 0.0)
                .map(|(name, given)| (key(name), given.2))
                .collect();
            let claim = CapacityClaim {
                analyzer: AnalyzerName::Saturation,
                amount: *amount,
                anticipated: 0.0,
                per_replica,
            };
            let weighed = Weighed { claims: vec![claim], ..Weighed::default() };
            (*role, RoleTarget::Grow(weighed))
        };
        Contest {
            priority: self.priority,
            contenders: self.variants.iter().map(contender).collect(),
            role_targets: self.required.iter().map(role_target).collect(),
        }
    }
}

fn pools(free: Option<&BTreeMap<String, i64>>) -> GpuPools {
    let Some(free) = free else {
        return GpuPools::new(Physical::Unknown, &[], ManagedUse::new());
    };
    let quota = |count: &i64| u32::try_from(*count).map_or(Quota::Unlimited, Quota::AtMost);
    let quotas = free.iter().map(|(kind, count)| (kind.clone(), quota(count))).collect();
    let limiter = Limiter {
        name: "free".into(),
        scope: LimiterScope::Cluster(quotas),
        exclude: std::collections::BTreeSet::new(),
    };
    GpuPools::new(Physical::Unlimited, &[limiter], ManagedUse::new())
}

#[test]
fn fair_share() {
    let tally = run(
        include_str!("../../../../tests/vectors/fair-share.yaml"),
        |id, given: Round, expect: Shared| {
            let contests = given
                .models
                .iter()
                .map(|(name, model)| (ModelKey::new("ns", name.as_str()), model.contest()))
                .collect();
            let mut pools = pools(given.free.as_ref());
            let changes = share(&contests, &mut pools);
            let targets: BTreeMap<String, u32> =
                changes.iter().map(|(key, change)| (key.name.to_string(), change.to.0)).collect();
            assert_eq!(targets, expect.targets, "{id}");
            for (kind, left) in &expect.left {
                let budget = pools.budget("ns", &named(kind));
                assert_eq!(budget, Budget::Finite(Gpus(*left)), "{id} {kind}");
            }
            if let Some(why) = &expect.why {
                for change in changes.values() {
                    assert_eq!(&change.why.to_string(), why, "{id}");
                }
            }
        },
    );
    assert_eq!((tally.passed, tally.corrected, tally.not_applicable), (22, 4, 5));
}

#[test]
fn a_share_goes_to_the_variant_that_serves_every_claim() {
    let given = ModelGiven {
        priority: 1.0,
        required: BTreeMap::from([(ServingRole::Both, 1.0)]),
        variants: BTreeMap::from([
            ("dear".to_owned(), ("A100".to_owned(), 20, 100.0, 1, 1, ServingRole::Both)),
            ("v".to_owned(), ("A100".to_owned(), 10, 100.0, 1, 1, ServingRole::Both)),
        ]),
    };
    let mut contest = given.contest();
    let Some(RoleTarget::Grow(weighed)) = contest.role_targets.get_mut(&ServingRole::Both) else {
        panic!("it grows");
    };
    weighed.claims.push(CapacityClaim {
        analyzer: AnalyzerName::Throughput,
        amount: 4.0,
        anticipated: 1.0,
        per_replica: BTreeMap::from([(key("v"), 1.0)]),
    });
    let contests = BTreeMap::from([(ModelKey::new("ns", "m"), contest)]);
    let free = BTreeMap::from([("A100".to_owned(), 10)]);
    let changes = share(&contests, &mut pools(Some(&free)));
    assert_eq!((changes[&key("v")].to, changes[&key("dear")].to), (Replicas(5), Replicas(1)));
}

proptest! {
    #[test]
    fn shares_stay_within_the_budget_and_no_model_gets_more_than_it_needs(
        needs in proptest::collection::vec((0_u32..90, 1_u32..4, 1_u32..20, 1_u32..9), 1..8),
        free in 0_i64..40,
    ) {
        let models: BTreeMap<ModelKey, Contest> = needs
            .iter()
            .enumerate()
            .map(|(index, (required, gpus, capacity, priority))| {
                let variant = ("A100".to_owned(), 5, f64::from(*capacity), *gpus, 0, ServingRole::Both);
                let model = ModelGiven {
                    priority: f64::from(*priority),
                    required: BTreeMap::from([(ServingRole::Both, f64::from(*required))]),
                    variants: BTreeMap::from([(format!("v{index}"), variant)]),
                };
                (ModelKey::new("ns", format!("m{index}")), model.contest())
            })
            .collect();
        let budget = BTreeMap::from([("A100".to_owned(), free)]);
        let changes = share(&models, &mut pools(Some(&budget)));
        let mut taken = 0_i64;
        for (index, (required, gpus, capacity, _)) in needs.iter().enumerate() {
            let to = changes[&key(&format!("v{index}"))].to.0;
            taken += i64::from(to * gpus);
            prop_assert!(to <= required.div_ceil(*capacity));
        }
        prop_assert!(taken <= free, "{} of {}", taken, free);
    }
}
