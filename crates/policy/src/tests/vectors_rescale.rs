//! Table rescale.yaml: sharing a contended budget of GPUs by priority.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::{Tally, run};
use crate::accelerator::Accelerator;
use crate::bounds::{Bounds, ZeroPolicy};
use crate::capacity::ServingRole;
use crate::gpu::{Budget, GpuPool, GpuPools, ManagedUse, Physical};
use crate::key::{ModelKey, VariantKey};
use crate::limit::{
    Bidder, RescaleCandidate, Rescaled, ShareVariant, rescale, round_shares, water_fill,
};
use crate::params::{Limiter, LimiterScope, Quota};
use crate::snapshot::DeclaredBounds;
use crate::units::{Cost, Gpus, Replicas};

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Given {
    Water { budget: u32, bidders: BTreeMap<String, (f64, f64, u32, u32)> },
    Round { total: u32, parts: BTreeMap<String, (f64, u32)> },
    Split { share: u32, roles: BTreeMap<ServingRole, (f64, u32, u32)> },
    Pools(World),
}

#[derive(Debug, Default, Deserialize)]
struct World {
    total: Option<BTreeMap<Arc<str>, Gpus>>,
    #[serde(default)]
    is_unknown: bool,
    #[serde(default)]
    quotas: BTreeMap<String, BTreeMap<String, u32>>,
    #[serde(default)]
    exclude: BTreeSet<String>,
    #[serde(default)]
    cluster: bool,
    #[serde(default)]
    namespaces: BTreeSet<Arc<str>>,
    models: BTreeMap<ModelKey, (f64, BTreeMap<String, VariantGiven>)>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum VariantGiven {
    Capped(ServingRole, String, u32, u32, f64, u32, u32),
    Plain(ServingRole, String, u32, u32, f64),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    #[serde(default)]
    shares: BTreeMap<String, u32>,
    #[serde(default)]
    conflict: bool,
    #[serde(default)]
    targets: BTreeMap<String, u32>,
    #[serde(default)]
    handled: BTreeSet<ModelKey>,
    #[serde(default)]
    left: BTreeMap<String, u32>,
    #[serde(default)]
    why: BTreeMap<String, String>,
}

fn bounds(min: u32, max: Option<u32>) -> Bounds {
    let declared = DeclaredBounds { min: Some(Replicas(min)), max: max.map(Replicas) };
    Bounds::effective(&declared, ZeroPolicy::Enabled)
}

impl VariantGiven {
    fn parts(&self) -> (ServingRole, f64, ShareVariant) {
        let (Self::Plain(role, kind, gpus, current, demand)
        | Self::Capped(role, kind, gpus, current, demand, ..)) = self;
        let bounds = match self {
            Self::Plain(..) => bounds(0, None),
            Self::Capped(.., min, max) => bounds(*min, Some(*max)),
        };
        let variant = ShareVariant {
            role: *role,
            accelerator: Accelerator::Named(kind.as_str().into()),
            gpus: Gpus(*gpus),
            current: Replicas(*current),
            ordered: Replicas::ZERO,
            bounds,
            cost: Cost::DEFAULT,
            per_replica: 1000.0,
        };
        (*role, *demand, variant)
    }
}

impl World {
    fn sharers(&self) -> BTreeMap<ModelKey, RescaleCandidate> {
        let sharer = |key: &ModelKey, priority: f64, given: &BTreeMap<String, VariantGiven>| {
            let mut sharer =
                RescaleCandidate { priority, demand: BTreeMap::new(), variants: BTreeMap::new() };
            for (name, given) in given {
                let (role, demand, variant) = given.parts();
                *sharer.demand.entry(role).or_default() += demand;
                let name = VariantKey::new(Arc::clone(&key.namespace), name.as_str());
                sharer.variants.insert(name, variant);
            }
            sharer
        };
        self.models
            .iter()
            .map(|(key, (priority, given))| (key.clone(), sharer(key, *priority, given)))
            .collect()
    }

    fn pools(&self) -> GpuPools {
        let mut managed = ManagedUse::new();
        let mut used: BTreeMap<Arc<str>, Gpus> = BTreeMap::new();
        for variants in self.sharers().values().map(|sharer| &sharer.variants) {
            for (key, variant) in variants {
                let kind: Arc<str> = variant.accelerator.label().into();
                let held = variant.gpus.times(variant.current);
                let of = managed.entry(Arc::clone(&key.namespace)).or_default();
                for sum in [of.entry(Arc::clone(&kind)).or_default(), used.entry(kind).or_default()]
                {
                    *sum = sum.plus(held);
                }
            }
        }
        let physical = match &self.total {
            _ if self.is_unknown => Physical::Unknown,
            None => Physical::Unlimited,
            Some(total) => {
                Physical::Known { limits: total.clone(), used, unlisted: BTreeSet::new() }
            }
        };
        let capped = |quotas: &BTreeMap<String, u32>| {
            quotas.iter().map(|(kind, cap)| (kind.clone(), Quota::AtMost(*cap))).collect()
        };
        let limiters = [Limiter {
            name: "quota".into(),
            scope: LimiterScope::Namespaces(
                self.quotas.iter().map(|(name, quotas)| (name.clone(), capped(quotas))).collect(),
            ),
            exclude: self.exclude.clone(),
        }];
        let limiters = if self.quotas.is_empty() { &[][..] } else { &limiters };
        GpuPools::new(physical, limiters, managed)
    }

    fn rescale(&self, pools: &mut GpuPools) -> Rescaled {
        let is_shared = |scope: Option<&str>| {
            scope.map_or(self.cluster, |namespace| self.namespaces.contains(namespace))
        };
        rescale(&self.sharers(), is_shared, pools, &[], |_, _| Vec::new())
    }
}

fn check_world(id: &str, world: &World, expect: &Expect) {
    let mut pools = world.pools();
    let rescaled = world.rescale(&mut pools);
    let targets: BTreeMap<String, u32> =
        rescaled.changes.iter().map(|(key, change)| (key.name.to_string(), change.to.0)).collect();
    assert_eq!(targets, expect.targets, "{id}");
    assert_eq!(rescaled.handled, expect.handled, "{id}");
    for (name, why) in &expect.why {
        let said = rescaled.changes.iter().find(|(key, _)| *key.name == **name);
        assert_eq!(&said.unwrap().1.why.to_string(), why, "{id} {name}");
    }
    let namespace = &world.models.keys().next().unwrap().namespace;
    let rooms = pools.figures(namespace, &Accelerator::Named("A100".into()));
    for (pool, left) in &expect.left {
        let is_quota = pool == "quota";
        let room = rooms
            .iter()
            .find(|room| matches!(room.pool(), GpuPool::NamespaceQuota { .. }) == is_quota)
            .unwrap();
        assert_eq!(room.left, Budget::Finite(Gpus(*left)), "{id} {pool}");
    }
}

fn split(share: u32, roles: &BTreeMap<ServingRole, (f64, u32, u32)>) -> BTreeMap<String, Gpus> {
    let variant = |role: ServingRole, current: u32, min: u32| ShareVariant {
        bounds: bounds(min, None),
        ..VariantGiven::Plain(role, "A100".to_owned(), 1, current, 0.0).parts().2
    };
    let model = RescaleCandidate {
        priority: 1.0,
        demand: roles.iter().map(|(role, given)| (*role, given.0)).collect(),
        variants: roles
            .iter()
            .map(|(role, (_, current, min))| {
                let key = VariantKey::new("ns", role.to_string());
                (key, variant(*role, *current, *min))
            })
            .collect(),
    };
    let split = model.split(Gpus(share)).into_iter();
    split.map(|(role, gpus)| (role.to_string(), gpus)).collect()
}

#[test]
fn rescaling() {
    let tally = run(
        include_str!("../../../../tests/vectors/rescale.yaml"),
        |id, given: Given, expect: Expect| {
            let shares = match given {
                Given::Water { budget, bidders } => {
                    let bidders = bidders
                        .into_iter()
                        .map(|(name, (priority, demand, floor, cap))| {
                            let bidder = Bidder {
                                weight: priority * demand,
                                floor: Gpus(floor),
                                cap: Gpus(cap),
                            };
                            (name, bidder)
                        })
                        .collect();
                    let filled = water_fill(Gpus(budget), &bidders);
                    assert_eq!(filled.is_conflict, expect.conflict, "{id}");
                    filled.shares
                }
                Given::Round { total, parts } => {
                    let parts = parts
                        .into_iter()
                        .map(|(name, (part, cap))| (name, (part, Gpus(cap))))
                        .collect();
                    round_shares(Gpus(total), &parts)
                }
                Given::Split { share, roles } => split(share, &roles),
                Given::Pools(world) => return check_world(id, &world, &expect),
            };
            let shares: BTreeMap<String, u32> =
                shares.into_iter().map(|(name, gpus)| (name, gpus.0)).collect();
            assert_eq!(shares, expect.shares, "{id}");
        },
    );
    assert_eq!(tally, Tally::of(29, 0, 0));
}

prop_compose! {
    fn any_bidder()(weight in 0.0..100.0_f64, floor in 0_u32..9, room in 0_u32..30) -> Bidder {
        Bidder { weight, floor: Gpus(floor), cap: Gpus(floor + room) }
    }
}

proptest! {
    #[test]
    fn shares_stay_between_floor_and_cap_and_use_what_there_is(
        bidders in proptest::collection::vec(any_bidder(), 1..9),
        budget in 0_u32..120,
    ) {
        let bidders: BTreeMap<usize, Bidder> = bidders.into_iter().enumerate().collect();
        let filled = water_fill(Gpus(budget), &bidders);
        let sum = |of: fn(&Bidder) -> Gpus| bidders.values().map(|bidder| of(bidder).0).sum::<u32>();
        let floors = sum(|bidder| bidder.floor);
        let most = sum(|bidder| if bidder.weight > 0.0 { bidder.cap } else { bidder.floor });
        let given: u32 = filled.shares.values().map(|gpus| gpus.0).sum();
        prop_assert_eq!(given, budget.clamp(floors, most.max(floors)));
        prop_assert_eq!(filled.is_conflict, floors > budget);
        for (key, bidder) in &bidders {
            prop_assert!((bidder.floor..=bidder.cap).contains(&filled.shares[key]));
        }
    }

    #[test]
    fn nothing_grows_beyond_what_is_free_and_bounds_hold(
        models in proptest::collection::vec(
            (1_u32..9, 0_u32..20, 0_u32..12_000, 1_u32..4, 0_u32..3, 0_u32..20), 1..8,
        ),
        free in 0_u32..30,
        is_unknown in proptest::bool::weighted(0.1),
    ) {
        let mut held = 0;
        let given = models.iter().enumerate().map(|(index, (priority, current, demand, gpus, min, room))| {
            held += current * gpus;
            let variant = VariantGiven::Capped(
                ServingRole::Both, "A100".to_owned(), *gpus, *current, f64::from(*demand), *min, min + room,
            );
            let variants = BTreeMap::from([(format!("v{index}"), variant)]);
            (ModelKey::new("ns", format!("m{index}")), (f64::from(*priority), variants))
        });
        let models = given.collect();
        let world = World {
            total: Some(BTreeMap::from([(Arc::from("A100"), Gpus(held + free))])),
            is_unknown,
            cluster: true,
            models,
            ..World::default()
        };
        let rescaled = world.rescale(&mut world.pools());
        prop_assert!(!is_unknown || rescaled == Rescaled::default());
        let mut taken = 0;
        for sharer in world.sharers().values() {
            for (key, variant) in &sharer.variants {
                let Some(change) = rescaled.changes.get(key) else { continue };
                prop_assert_eq!(change.from, variant.current);
                if change.to > change.from {
                    taken += (change.to.0 - change.from.0) * variant.gpus.0;
                    prop_assert!(Some(change.to) <= variant.bounds.max);
                } else {
                    let least = variant.bounds.min.max(Replicas::ONE);
                    prop_assert!(change.to >= least.min(variant.current));
                }
            }
        }
        prop_assert!(taken <= free, "{} of {}", taken, free);
    }
}
