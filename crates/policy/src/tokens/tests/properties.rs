//! What holds whatever the numbers are, and what each knob moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::world::{Fleet, Policy};
use crate::accelerator::Accelerator;
use crate::capacity::{Assessment, ServingRole};
use crate::combine::{Balance, Band};
use crate::engine_args::{EngineArgs, EngineKind, KvTokens};
use crate::key::{ModelKey, VariantKey};
use crate::tokens::{InstanceInput, RouterQueue, TokenModelInput, TokenVariantInput, TokensReport};
use crate::units::{Gpus, Replicas};

type Models = BTreeMap<ModelKey, TokenModelInput>;

fn instances() -> impl Strategy<Value = InstanceInput> {
    (0.0_f64..=1.0, 1_000.0_f64..200_000.0, 0_u32..12, 0.0_f64..4_000.0, 0.0_f64..1_500.0).prop_map(
        |(usage, size, waiting, input, output)| InstanceInput {
            kv_usage: Some(usage),
            kv_capacity: Some(KvTokens(size.floor())),
            waiting: Some(f64::from(waiting)),
            input_tokens: Some(input),
            output_tokens: Some(output),
            hit_rate: Some(0.25),
        },
    )
}

fn variants() -> impl Strategy<Value = TokenVariantInput> {
    (
        prop::sample::select(vec![ServingRole::Prefill, ServingRole::Decode, ServingRole::Both]),
        prop::collection::vec(instances(), 0..5),
        0_u32..3,
        any::<bool>(),
        prop::option::of(64_u32..16_000),
    )
        .prop_map(|(role, instances, pending, known, blocks)| TokenVariantInput {
            role,
            accelerator: Accelerator::Unresolved,
            gpus: Gpus(1),
            engine: known.then(|| EngineArgs {
                num_gpu_blocks_override: blocks,
                ..EngineArgs::defaults(EngineKind::Vllm)
            }),
            fingerprint: None,
            ready: Replicas(u32::try_from(instances.len()).unwrap()),
            pending: Replicas(pending),
            instances: instances
                .into_iter()
                .enumerate()
                .map(|(index, instance)| (Arc::from(format!("i{index}")), instance))
                .collect(),
        })
        .prop_map(with_stated_sizes)
}

/// An engine has the cache that its arguments give it.
fn with_stated_sizes(mut variant: TokenVariantInput) -> TokenVariantInput {
    if let Some(size) = variant.engine.as_ref().and_then(EngineArgs::kv_capacity) {
        for instance in variant.instances.values_mut() {
            instance.kv_capacity = Some(size);
        }
    }
    variant
}

fn fleets() -> impl Strategy<Value = Vec<TokenVariantInput>> {
    prop::collection::vec(variants(), 1..4)
}

fn models(variants: &[TokenVariantInput], policy: Policy) -> Models {
    let model = TokenModelInput {
        thresholds: policy.thresholds,
        band: policy.band,
        router: Some(RouterQueue { requests: Some(3.0), bytes: Some(4_000.0) }),
        default_output: None,
        variants: variants
            .iter()
            .enumerate()
            .map(|(index, variant)| (VariantKey::new("ns", format!("v{index}")), variant.clone()))
            .collect(),
    };
    BTreeMap::from([(ModelKey::new("ns", "m"), model)])
}

fn step(fleet: &mut Fleet, models: &Models) -> (Assessment, TokensReport) {
    fleet.seconds += 15;
    fleet.step(models).remove(0)
}

/// What the combination reads out of an assessment.
fn balances(assessment: &Assessment, policy: Policy) -> BTreeMap<ServingRole, Balance> {
    let balance = |role: ServingRole, demand: f64| {
        let (mut supply, mut anticipated) = (0.0, 0.0);
        for variant in assessment.variants.values().filter(|one| one.role == role) {
            supply += variant.ready.to_f64() * variant.per_replica;
            anticipated +=
                (variant.ready.to_f64() + variant.pending.to_f64()) * variant.per_replica;
        }
        Balance::of(demand, supply, anticipated, Band::from(policy.band))
    };
    assessment.demand.iter().map(|(role, demand)| (*role, balance(*role, *demand))).collect()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1.0)
}

/// Takes signals away: bit 0 to 4 of each instance's number one signal, bit 5 the instance.
fn without(variants: &[TokenVariantInput], losses: &[u8]) -> Vec<TokenVariantInput> {
    let mut losses = losses.iter().copied().cycle();
    let mut variants = variants.to_vec();
    for variant in &mut variants {
        let reporting = variant.instances.iter().filter_map(|(name, instance)| {
            let mut instance = *instance;
            let lost = losses.next().unwrap_or(0);
            let take = |bit: u8, signal: &mut Option<f64>| {
                if lost & bit != 0 {
                    *signal = None;
                }
            };
            take(1, &mut instance.kv_usage);
            take(2, &mut instance.waiting);
            take(4, &mut instance.input_tokens);
            take(8, &mut instance.output_tokens);
            if lost & 16 != 0 {
                instance.kv_capacity = None;
            }
            (lost & 32 == 0).then(|| (Arc::clone(name), instance))
        });
        variant.instances = reporting.collect();
    }
    variants
}

proptest! {
    #[test]
    fn names_do_not_matter(variants in fleets(), turn in 0_usize..4) {
        let policy = Policy::usual();
        let mut turned = variants.clone();
        turned.rotate_left(turn % variants.len());
        for variant in &mut turned {
            let count = variant.instances.len();
            let instances = std::mem::take(&mut variant.instances);
            variant.instances = instances
                .values()
                .copied()
                .enumerate()
                .map(|(index, instance)| (Arc::from(format!("x{}", count - index)), instance))
                .collect();
        }
        let (mut one, mut other) = (Fleet::default(), Fleet::default());
        for _ in 0..2 {
            let (_, first) = step(&mut one, &models(&variants, policy));
            let (_, second) = step(&mut other, &models(&turned, policy));
            for (first, second) in [
                (first.model.balance.demand, second.model.balance.demand),
                (first.model.balance.supply, second.model.balance.supply),
                (first.model.balance.anticipated, second.model.balance.anticipated),
                (first.model.balance.required, second.model.balance.required),
                (first.model.balance.spare, second.model.balance.spare),
            ] {
                prop_assert!(is_near(first, second), "{first} and {second}");
            }
        }
    }

    /// Against the cycle before, in which everything was known.
    #[test]
    fn what_is_missing_raises_no_supply_and_releases_nothing(
        variants in fleets(), losses in prop::collection::vec(any::<u8>(), 1..8),
    ) {
        let policy = Policy::usual();
        let mut fleet = Fleet::default();
        let (_, before) = step(&mut fleet, &models(&variants, policy));
        let lossy = without(&variants, &losses);
        let (assessment, after) = step(&mut fleet, &models(&lossy, policy));
        // A variant that nothing was measured of is sized by the mean request of the others.
        let measured = after
            .variants
            .iter()
            .filter(|(key, _)| !before.variants[*key].instances.is_empty());
        for (key, variant) in measured {
            let known = &before.variants[key];
            prop_assert!(variant.supply.0 <= known.supply.0 + 1e-6, "{key}");
            prop_assert!(variant.anticipated.0 <= known.anticipated.0 + 1e-6, "{key}");
        }
        let balances = balances(&assessment, policy);
        for (role, balance) in &balances {
            let is_known = after
                .variants
                .values()
                .filter(|variant| variant.role == *role)
                .all(|variant| variant.is_demand_known);
            prop_assert!(is_known || balance.spare <= 0.0, "{role}: {balance:?}");
        }
        for (index, variant) in lossy.iter().enumerate() {
            let lost_load = variant.ready.0 > 0 && (variant.instances.len() < usize::try_from(variant.ready.0).unwrap()
                || variant.instances.values().any(|one| one.kv_usage.is_none() || one.waiting.is_none()));
            let figures = &after.variants[&VariantKey::new("ns", format!("v{index}"))];
            prop_assert!(!lost_load || !figures.is_demand_known);
        }
    }

    #[test]
    fn a_size_that_arguments_fix_need_not_be_reported(variants in fleets()) {
        let mut lossy = variants.clone();
        for variant in &mut lossy {
            let size = variant.engine.as_ref().and_then(EngineArgs::kv_capacity);
            for instance in variant.instances.values_mut().filter(|_| size.is_some()) {
                instance.kv_capacity = None;
            }
        }
        let (mut one, mut other) = (Fleet::default(), Fleet::default());
        for _ in 0..2 {
            let (partial, _) = step(&mut one, &models(&variants, Policy::usual()));
            let (stated, _) = step(&mut other, &models(&lossy, Policy::usual()));
            prop_assert_eq!(partial, stated);
        }
    }

    #[test]
    fn demand_is_stated_for_every_role_once_everything_is_known(variants in fleets()) {
        let (assessment, report) = step(&mut Fleet::default(), &models(&variants, Policy::usual()));
        let roles: BTreeSet<ServingRole> = variants.iter().map(|variant| variant.role).collect();
        let stated: BTreeSet<ServingRole> = assessment.demand.keys().copied().collect();
        let is_reporting = variants.iter().any(|variant| !variant.instances.is_empty());
        prop_assert!(report.model.is_demand_known == is_reporting);
        prop_assert!(!is_reporting || stated == roles);
    }

    #[test]
    fn constant_load_reaches_a_fixed_point(variants in fleets()) {
        let policy = Policy::usual();
        let mut fleet = Fleet::default();
        let models = models(&variants, policy);
        let first = (0..12).map(|_| step(&mut fleet, &models)).last().unwrap();
        for _ in 0..3 {
            let again = step(&mut fleet, &models);
            prop_assert_eq!(&again.0, &first.0);
        }
    }

    #[test]
    fn thresholds_move_what_they_are_for(
        variants in fleets(), low in 0.3_f64..0.6, high in 0.6_f64..0.95, share in 0.1_f64..0.9,
    ) {
        let report = |policy: Policy| step(&mut Fleet::default(), &models(&variants, policy)).1;
        let mut policy = Policy::usual();
        policy.band.scale_down_boundary = low;
        policy.band.scale_up_threshold = high;
        let usual = report(policy);
        let mut eager = policy;
        eager.band.scale_up_threshold = high - 0.01;
        prop_assert!(report(eager).model.balance.required >= usual.model.balance.required);
        let mut generous = policy;
        generous.band.scale_down_boundary = low + 0.01;
        let is_held = usual.roles.values().any(|role| role.held.is_some());
        prop_assert!(is_held || report(generous).model.balance.spare >= usual.model.balance.spare);
        let mut tight = policy;
        tight.thresholds.kv_cache_threshold = share;
        let (wide, tight) = (usual, report(tight));
        for (key, variant) in &wide.variants {
            for (name, instance) in variant.instances.iter() {
                let smaller = tight.variants[key].instances.get(name).unwrap();
                let expected = (instance.total.0 * share).floor();
                prop_assert!(is_near(smaller.k1.0, expected));
                prop_assert!(is_near(smaller.demand.0, instance.demand.0));
            }
        }
    }

    #[test]
    fn spare_triggers_are_not_for_tokens(variants in fleets(), trigger in 0.0_f64..1.0) {
        let mut other = Policy::usual();
        other.thresholds.kv_spare_trigger = trigger;
        other.thresholds.queue_spare_trigger = 10.0 * trigger;
        let usual = step(&mut Fleet::default(), &models(&variants, Policy::usual()));
        prop_assert_eq!(step(&mut Fleet::default(), &models(&variants, other)), usual);
    }

    #[test]
    fn any_number_gives_numbers(
        numbers in prop::collection::vec(prop::num::f64::ANY, 8), counts in prop::array::uniform2(0_u32..9),
    ) {
        let mut numbers = numbers.into_iter().map(Some).cycle();
        let mut next = || numbers.next().flatten();
        let instance = InstanceInput {
            kv_usage: next(),
            kv_capacity: next().map(KvTokens),
            waiting: next(),
            input_tokens: next(),
            output_tokens: next(),
            hit_rate: next(),
        };
        let variant = TokenVariantInput {
            role: ServingRole::Decode,
            accelerator: Accelerator::Unresolved,
            gpus: Gpus(1),
            engine: None,
            fingerprint: None,
            ready: Replicas(counts[0]),
            pending: Replicas(counts[1]),
            instances: [(Arc::from("a"), instance)].into_iter().collect(),
        };
        let mut models = models(&[variant], Policy::usual());
        for model in models.values_mut() {
            model.router = Some(RouterQueue { requests: next(), bytes: next() });
        }
        let (assessment, report) = step(&mut Fleet::default(), &models);
        for demand in assessment.demand.values() {
            prop_assert!(demand.is_finite() && *demand >= 0.0);
        }
        for variant in assessment.variants.values() {
            prop_assert!(variant.per_replica.is_finite() && variant.per_replica > 0.0);
        }
        prop_assert!(report.model.balance.required.is_finite() && report.model.utilisation.is_finite());
    }
}

#[test]
fn the_queue_threshold_decides_what_is_full() {
    let instance = InstanceInput {
        kv_usage: Some(0.25),
        kv_capacity: Some(KvTokens(16_000.0)),
        waiting: Some(4.0),
        input_tokens: Some(10.0),
        output_tokens: Some(120.0),
        hit_rate: None,
    };
    let variant = TokenVariantInput {
        role: ServingRole::Both,
        accelerator: Accelerator::Unresolved,
        gpus: Gpus(1),
        engine: None,
        fingerprint: None,
        ready: Replicas(1),
        pending: Replicas::ZERO,
        instances: [(Arc::from("a"), instance)].into_iter().collect(),
    };
    let capacity = |queue: f64| {
        let mut policy = Policy::usual();
        policy.thresholds.queue_length_threshold = queue;
        let (assessment, _) =
            step(&mut Fleet::default(), &models(std::slice::from_ref(&variant), policy));
        assessment.variants.values().next().unwrap().per_replica
    };
    assert!(is_near(capacity(5.0), 12_800.0));
    assert!(is_near(capacity(4.9), 4_000.0));
}
