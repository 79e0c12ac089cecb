//! One model that shares a budget: what it claims, and how it moves towards its share.

use std::collections::{BTreeMap, BTreeSet};

use super::water_filling::{Bidder, water_fill};
use crate::accelerator::Accelerator;
use crate::bounds::{Bounds, CEILING};
use crate::capacity::ServingRole;
use crate::change::CountChange;
use crate::gpu::GpuPools;
use crate::key::{ModelKey, VariantKey};
use crate::reason::Reason;
use crate::rounding;
use crate::units::{Cost, Gpus, Replicas};

/// The most GPUs that a model claims: of any number of GPUs, no more replicas than [`CEILING`] exist.
const MOST: Gpus = Gpus(CEILING.0);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShareVariant {
    pub role: ServingRole,
    pub accelerator: Accelerator,
    /// GPUs of one replica; none counts as one.
    pub gpus: Gpus,
    pub current: Replicas,
    /// Further ones that were published and have their GPUs.
    pub ordered: Replicas,
    pub bounds: Bounds,
    pub cost: Cost,
    /// What one replica supplies, in the unit of the demand.
    pub per_replica: f64,
}

impl ShareVariant {
    fn held(&self) -> Replicas {
        self.current.plus(self.ordered)
    }
}

/// A model that shares. One whose demand is not known must not be given: it would look idle.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RescaleCandidate {
    pub priority: f64,
    /// What each role is asked for, in a unit that all models have in common.
    pub demand: BTreeMap<ServingRole, f64>,
    pub variants: BTreeMap<VariantKey, ShareVariant>,
}

impl RescaleCandidate {
    /// The same with demands and capacities in GPUs of the variants that serve most cheaply.
    pub(crate) fn in_gpus(mut self) -> Self {
        let units: BTreeMap<ServingRole, f64> = (self.demand.keys())
            .filter_map(|role| {
                let (_, best) = self.cheapest_first(*role).into_iter().next()?;
                Some((*role, best.per_replica / best.gpus.at_least_one().to_f64()))
            })
            .collect();
        for (role, unit) in units {
            if let Some(demand) = self.demand.get_mut(&role) {
                *demand /= unit;
            }
            let variants = self.variants.values_mut();
            for variant in variants.filter(|variant| variant.role == role) {
                variant.per_replica /= unit;
            }
        }
        self
    }

    /// The same with a replica of each variant that was started from zero.
    pub(super) fn with_started(&self, started: &BTreeSet<VariantKey>) -> Self {
        let mut model = self.clone();
        for (key, variant) in &mut model.variants {
            if started.contains(key) && variant.held() == Replicas::ZERO {
                variant.current = Replicas::ONE;
            }
        }
        model
    }

    fn roles(&self) -> BTreeSet<ServingRole> {
        self.variants.values().map(|variant| variant.role).collect()
    }

    fn of(&self, role: Option<ServingRole>) -> impl Iterator<Item = (&VariantKey, &ShareVariant)> {
        self.variants
            .iter()
            .filter(move |(_, variant)| role.is_none_or(|role| variant.role == role))
    }

    pub(super) fn held(&self, role: Option<ServingRole>) -> Gpus {
        self.sum(role, |variant| Some(variant.held())).unwrap_or_default()
    }

    /// GPUs of as many replicas of each variant; none where one has no number.
    fn sum(
        &self,
        role: Option<ServingRole>,
        of: impl Fn(&ShareVariant) -> Option<Replicas>,
    ) -> Option<Gpus> {
        let gpus = |variant: &ShareVariant| Some(variant.gpus.at_least_one().times(of(variant)?));
        let all: Option<Vec<Gpus>> = self.of(role).map(|(_, variant)| gpus(variant)).collect();
        Some(total(all?.into_iter()))
    }

    /// GPUs that it keeps whatever others need: its minima, and one replica of each role that serves.
    pub(super) fn least(&self) -> Gpus {
        total(self.roles().into_iter().map(|role| {
            let serving =
                (self.of(Some(role))).filter(|(_, variant)| variant.current > Replicas::ZERO);
            let smallest = serving.map(|(_, variant)| variant.gpus.at_least_one()).min();
            self.floor(Some(role)).max(smallest.unwrap_or_default())
        }))
    }

    /// The part of a share that whole replicas of a role make up, where all hold as many GPUs.
    pub(super) fn whole_replicas(&self, role: ServingRole, share: Gpus) -> Gpus {
        let each = self.of(Some(role)).map(|(_, variant)| variant.gpus.at_least_one());
        let most = each.max().unwrap_or_default();
        most.at_least_one().times(share.replicas(most.at_least_one()))
    }

    pub(super) fn wanted(&self) -> Gpus {
        let roles = self.demand.keys();
        total(roles.map(|role| self.wanted_by(*role)))
    }

    /// What it takes of a budget that has enough for all: for each role what it wants, and its minima at least.
    pub(super) fn needed(&self) -> Gpus {
        let needed = |role| self.wanted_by(role).max(self.floor(Some(role)));
        total(self.roles().into_iter().map(needed))
    }

    /// GPUs of as many whole replicas as a role needs of the variant that serves it most cheaply, at most
    /// [`MOST`]; none where no variant can serve it.
    fn wanted_by(&self, role: ServingRole) -> Gpus {
        let best = self.cheapest_first(role).into_iter().next();
        best.map_or(Gpus::ZERO, |(_, best)| {
            let replicas = rounding::ceil(self.asked(role) / best.per_replica);
            let gpus = best.gpus.at_least_one().times(Replicas(replicas));
            gpus.min(MOST)
        })
    }

    /// What each role gets at most: what it needs, within its maxima, and its minima at least. What one role
    /// cannot take serves no other.
    fn caps(&self) -> BTreeMap<ServingRole, Gpus> {
        let cap = |role: ServingRole| {
            let wanted = self.wanted_by(role);
            let most = self.sum(Some(role), |variant| variant.bounds.max);
            self.floor(Some(role)).max(most.unwrap_or(wanted).min(wanted))
        };
        let roles = self.roles().into_iter();
        roles.map(|role| (role, cap(role))).collect()
    }

    /// Demand of a role; none for one that no variant can serve.
    fn asked(&self, role: ServingRole) -> f64 {
        let demand = self.demand.get(&role).copied().unwrap_or(0.0);
        if demand.is_finite() && !self.cheapest_first(role).is_empty() {
            demand.max(0.0)
        } else {
            0.0
        }
    }

    pub(super) fn bidder(&self, budget: Gpus) -> Bidder {
        let asked: f64 = self.demand.keys().map(|role| self.asked(*role)).sum();
        let floor = self.floor(None);
        let most = self.sum(None, |variant| variant.bounds.max).unwrap_or(budget);
        Bidder {
            weight: self.priority * asked,
            floor,
            cap: floor.max(total(self.caps().into_values()).min(most)),
        }
    }

    fn floor(&self, role: Option<ServingRole>) -> Gpus {
        let least = |variant: &ShareVariant| {
            let Bounds { min, max, .. } = variant.bounds;
            Some(max.map_or(min, |max| min.min(max)))
        };
        self.sum(role, least).unwrap_or_default()
    }

    /// Splits its share over its roles by their demand, for none more than it needs, as long as that is
    /// enough for all of it; where none has any, by what they hold, and else for the first one.
    pub(crate) fn split(&self, share: Gpus) -> BTreeMap<ServingRole, Gpus> {
        let roles = self.roles();
        let asks = |role: &ServingRole| self.asked(*role);
        let holds = |role: &ServingRole| self.held(Some(*role)).to_f64();
        let weights: [&dyn Fn(&ServingRole) -> f64; 3] =
            [&asks, &holds, &|role| f64::from(u8::from(roles.first() == Some(role)))];
        let weigh = weights.into_iter().find(|weigh| roles.iter().any(|role| weigh(role) > 0.0));
        let caps = self.caps();
        let is_enough = total(caps.values().copied()) >= share;
        let bidder = |role: &ServingRole| {
            let floor = self.floor(Some(*role));
            let most = self.sum(Some(*role), |variant| variant.bounds.max);
            Bidder {
                weight: weigh.map_or(0.0, |weigh| weigh(role)),
                floor,
                cap: match caps.get(role) {
                    Some(cap) if is_enough => *cap,
                    _ => floor.max(most.unwrap_or(share)),
                },
            }
        };
        let bidders = roles.iter().map(|role| (*role, bidder(role))).collect();
        water_fill(share, &bidders).shares
    }

    pub(super) fn settle(
        &self,
        key: &ModelKey,
        role: ServingRole,
        share: Gpus,
        pools: &mut GpuPools,
    ) -> BTreeMap<VariantKey, CountChange> {
        let held = self.held(Some(role));
        let mut changes: BTreeMap<VariantKey, CountChange> = (self.of(Some(role)))
            .map(|(variant, given)| {
                let kept = CountChange {
                    from: given.current,
                    to: given.held(),
                    why: Reason::ShareKept { held, share },
                };
                (variant.clone(), kept)
            })
            .collect();
        if held > share {
            self.reclaim(role, share, &mut changes);
        } else {
            self.fill(key, role, share, pools, &mut changes);
        }
        changes
    }

    /// Gives up whole replicas, the most expensive first, at the same cost those that supply least; the
    /// last replica of a role stays.
    fn reclaim(
        &self,
        role: ServingRole,
        share: Gpus,
        changes: &mut BTreeMap<VariantKey, CountChange>,
    ) {
        let held = self.held(Some(role));
        let mut excess = held.saturating_sub(share);
        let counts = (self.of(Some(role))).map(|(_, variant)| variant.current);
        let mut standing: Replicas = counts.sum();
        let mut ordered: Vec<_> = self.of(Some(role)).collect();
        ordered.sort_by(|one, other| {
            (other.1.cost.cmp(&one.1.cost))
                .then(one.1.per_replica.total_cmp(&other.1.per_replica))
                .then_with(|| one.0.cmp(other.0))
        });
        for (key, variant) in ordered {
            let gpus = variant.gpus.at_least_one();
            // Those that do not exist yet go before the last one that does.
            let most = variant.ordered.plus(standing.minus_one());
            let count = excess
                .replicas(gpus)
                .min(variant.held().saturating_sub(variant.bounds.min))
                .min(most);
            if let Some(change) = changes.get_mut(key).filter(|_| count > Replicas::ZERO) {
                excess = excess.saturating_sub(gpus.times(count));
                standing = standing.saturating_sub(count.saturating_sub(variant.ordered));
                change.to = variant.held().saturating_sub(count);
                change.why = Reason::Reclaimed { held, share };
            }
        }
    }

    /// Takes whole replicas of what is free in this cycle: minima first, those of unsized variants
    /// included, then the least cost for the capacity.
    fn fill(
        &self,
        key: &ModelKey,
        role: ServingRole,
        share: Gpus,
        pools: &mut GpuPools,
        changes: &mut BTreeMap<VariantKey, CountChange>,
    ) {
        let mut lack = share.saturating_sub(self.held(Some(role)));
        let minima = (self.of(Some(role))).map(|(variant_key, variant)| {
            let most = variant.bounds.max.unwrap_or(variant.bounds.min);
            (variant_key, variant, variant.bounds.min.min(most))
        });
        let rest = self.cheapest_first(role).into_iter();
        let rest = rest.map(|(variant_key, variant)| {
            let most = variant.bounds.max.unwrap_or(CEILING);
            (variant_key, variant, most)
        });
        for (variant_key, variant, up_to) in minima.chain(rest) {
            let Some(change) = changes.get_mut(variant_key) else {
                continue;
            };
            let gpus = variant.gpus.at_least_one();
            let free = pools.budget(&key.namespace, &variant.accelerator);
            let count = (free.grant(lack).replicas(gpus)).min(up_to.saturating_sub(change.to));
            if count > Replicas::ZERO {
                let taken = gpus.times(count);
                pools.take(&key.namespace, &variant.accelerator, taken);
                lack = lack.saturating_sub(taken);
                change.to = change.to.plus(count);
                let gpus = gpus.times(change.to.saturating_sub(variant.held()));
                change.why = Reason::Filled { gpus, share };
            }
        }
    }

    /// Variants that can be sized, the least cost for their capacity first; ties by key.
    pub(super) fn cheapest_first(&self, role: ServingRole) -> Vec<(&VariantKey, &ShareVariant)> {
        let mut variants: Vec<_> = (self.of(Some(role)))
            .filter(|(_, variant)| variant.per_replica.is_finite() && variant.per_replica > 0.0)
            .collect();
        let price = |variant: &ShareVariant| variant.cost.millionths() / variant.per_replica;
        variants.sort_by(|one, other| {
            (price(one.1).total_cmp(&price(other.1))).then_with(|| one.0.cmp(other.0))
        });
        variants
    }
}

fn total(counts: impl Iterator<Item = Gpus>) -> Gpus {
    counts.sum::<Gpus>().min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{ManagedUse, Physical};
    use crate::reason::BoundSource;

    fn variant(role: ServingRole, gpus: u32, ordered: u32, bounds: Bounds) -> ShareVariant {
        ShareVariant {
            role,
            accelerator: Accelerator::Unresolved,
            gpus: Gpus(gpus),
            current: Replicas::ONE,
            ordered: Replicas(ordered),
            bounds,
            cost: Cost::DEFAULT,
            per_replica: 1.0,
        }
    }

    #[test]
    fn no_demand_and_no_minimum_claims_more_gpus_than_replicas_can_exist() {
        let roles = [ServingRole::Prefill, ServingRole::Decode];
        let bounds = Bounds { min: CEILING, source: BoundSource::Object, max: Some(CEILING) };
        let variants = roles.map(|role| {
            let name = VariantKey::new("ns", format!("{role:?}"));
            (name, variant(role, 8, 0, bounds))
        });
        let model = RescaleCandidate {
            priority: 1.0,
            demand: roles.map(|role| (role, 1e15)).into(),
            variants: variants.into(),
        };
        let Bidder { floor, cap, .. } = model.bidder(Gpus(5));
        assert_eq!([model.wanted(), floor, cap], [MOST; 3]);
    }

    #[test]
    fn replicas_that_have_their_gpus_take_no_free_ones() {
        let name = VariantKey::new("ns", "v");
        let filled = |ordered: u32| {
            let bounds = Bounds { min: Replicas::ZERO, source: BoundSource::Object, max: None };
            let variant = variant(ServingRole::Both, 2, ordered, bounds);
            let model = RescaleCandidate {
                priority: 1.0,
                demand: [(ServingRole::Both, 3.0)].into(),
                variants: [(name.clone(), variant)].into(),
            };
            let key = ModelKey::new("ns", "m");
            let mut pools = GpuPools::new(Physical::Unlimited, &[], ManagedUse::new());
            let mut changes = model.settle(&key, ServingRole::Both, Gpus(6), &mut pools);
            changes.remove(&name).map(|change| (change.to, change.why))
        };
        let took = |gpus: u32| {
            let (gpus, share) = (Gpus(gpus), Gpus(6));
            Some((Replicas(3), Reason::Filled { gpus, share }))
        };
        assert_eq!(filled(0), took(4));
        assert_eq!(filled(1), took(2));
    }
}
