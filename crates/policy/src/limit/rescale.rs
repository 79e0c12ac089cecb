//! Sharing a contended budget of GPUs by priority: who holds more than its share gives replicas up,
//! and who holds less takes what is free. What is given up in one cycle is taken in a later one, once
//! the pods are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::rescale_candidate::RescaleCandidate;
use super::water_filling::{Bidder, water_fill};
use crate::change::CountChange;
use crate::gpu::{Budget, GpuPool, GpuPools};
use crate::key::{ModelKey, VariantKey};
use crate::units::{Gpus, Replicas};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rescaled {
    pub changes: BTreeMap<VariantKey, CountChange>,
    /// Models that were handled; nothing else must optimize them in this cycle.
    pub handled: BTreeSet<ModelKey>,
    /// Models of groups whose floors alone are more than the budget.
    pub conflicts: BTreeSet<ModelKey>,
    pub claims: BTreeMap<ModelKey, BudgetClaim>,
}

/// What one model claimed and got of a contended budget, in GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetClaim {
    /// What is free, will be once deleted pods are gone, or is held by those who share.
    pub budget: Gpus,
    pub held: Gpus,
    /// What its demand needs.
    pub wanted: Gpus,
    /// What it gets in any case: its minima.
    pub floor: Gpus,
    /// What it gets at most: what it wants, within its maxima, and its floor at least.
    pub cap: Gpus,
    /// Between floor and cap GPUs go in proportion to this: priority by demand, in the unit of the
    /// analyzer that sizes those who share, or in GPUs where several do.
    pub weight: f64,
    pub share: Gpus,
}

wva_base::display_of! { BudgetClaim:
    Self { budget, held, wanted, floor, cap, weight, share } =>
        "share {share} of {budget} GPUs: held {held}, wanted {wanted}, floor {floor}, cap {cap}, weight {weight:.3}";
}

/// Models that draw from the same pools, in the order in which groups are served: by accelerator,
/// the cluster's budget before those of namespaces.
type SharingKey = (Arc<str>, Option<Arc<str>>, BTreeSet<GpuPool>);

type Members<'a> = BTreeMap<&'a ModelKey, &'a RescaleCandidate>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub priority: f64,
    pub pools: &'a BTreeSet<GpuPool>,
    changes: &'a BTreeMap<VariantKey, CountChange>,
}

impl Turn<'_> {
    pub(crate) fn counts(&self) -> BTreeMap<VariantKey, Replicas> {
        let changes = self.changes.iter();
        (changes.map(|(key, change)| (key.clone(), change.to))).collect()
    }
}

/// A start from zero that lacks GPUs, of a model that does not share.
#[derive(Debug, Clone)]
pub(crate) struct AwaitedStart {
    pub priority: f64,
    pub pools: BTreeSet<GpuPool>,
    pub gpus: Gpus,
}

/// Shares every contended budget whose scope, a namespace or the cluster, `is_shared` allows. A budget that is
/// unknown, unlimited or overdrawn is left alone, as is a model on several accelerators. A budget is shared without
/// the GPUs of `awaited` starts of more priority than every model that shares it, so that those give up what the
/// start lacks.
///
/// `start` starts models from zero that come before the models of a turn, takes their GPUs, and returns the
/// variants that were started. Each counts as a replica that exists.
pub(crate) fn rescale(
    models: &BTreeMap<ModelKey, RescaleCandidate>,
    is_shared: impl Fn(Option<&str>) -> bool,
    pools: &mut GpuPools,
    awaited: &[AwaitedStart],
    mut start: impl FnMut(&Turn<'_>, &mut GpuPools) -> Vec<VariantKey>,
) -> Rescaled {
    let mut rescaled = Rescaled::default();
    let mut started = BTreeSet::new();
    for ((_, _, drawn), members) in &groups(models, is_shared, pools) {
        let standing: Vec<(&ModelKey, RescaleCandidate)> =
            members.iter().map(|(key, model)| (*key, model.with_started(&started))).collect();
        let members: Members<'_> = standing.iter().map(|(key, model)| (*key, model)).collect();
        let awaited = gpus_before(&members, drawn, awaited);
        let Some((budget, is_awaited)) = contended_budget(&members, pools, awaited) else {
            continue;
        };
        let bidders: BTreeMap<&ModelKey, Bidder> =
            members.iter().map(|(key, model)| (*key, model.bidder(budget))).collect();
        let filled = water_fill(budget, &bidders);
        let mut ordered: Vec<(&ModelKey, &RescaleCandidate)> = members.into_iter().collect();
        ordered.sort_by(|one, other| {
            (other.1.priority.total_cmp(&one.1.priority)).then_with(|| one.0.cmp(other.0))
        });
        for (key, model) in ordered {
            let turn = Turn { priority: model.priority, pools: drawn, changes: &rescaled.changes };
            started.extend(start(&turn, pools));
            let share = filled.shares.get(key).copied().unwrap_or_default();
            let now = model.with_started(&started);
            for (role, share) in now.split(share) {
                let share = if is_awaited { now.whole_replicas(role, share) } else { share };
                let changes = now.settle(key, role, share, pools);
                rescaled.changes.extend(changes);
            }
            if let Some(bidder) = bidders.get(key) {
                let claim = BudgetClaim {
                    budget,
                    held: model.held(None),
                    wanted: model.wanted(),
                    floor: bidder.floor,
                    cap: bidder.cap,
                    weight: bidder.weight,
                    share,
                };
                rescaled.claims.insert(key.clone(), claim);
            }
            rescaled.handled.insert(key.clone());
            if filled.is_conflict {
                rescaled.conflicts.insert(key.clone());
            }
        }
    }
    rescaled
}

/// GPUs of starts that come before every member.
fn gpus_before(members: &Members<'_>, drawn: &BTreeSet<GpuPool>, awaited: &[AwaitedStart]) -> Gpus {
    let highest = members.values().fold(f64::NEG_INFINITY, |most, model| most.max(model.priority));
    let before =
        |start: &&AwaitedStart| start.priority > highest && !start.pools.is_disjoint(drawn);
    awaited.iter().filter(before).map(|start| start.gpus).sum()
}

pub(super) fn groups<'a>(
    models: &'a BTreeMap<ModelKey, RescaleCandidate>,
    is_shared: impl Fn(Option<&str>) -> bool,
    pools: &GpuPools,
) -> BTreeMap<SharingKey, Members<'a>> {
    let mut groups: BTreeMap<SharingKey, Members<'a>> = BTreeMap::new();
    for (key, model) in models {
        let group = group_of(key, model, pools);
        if let Some(group) = group.filter(|(_, scope, _)| is_shared(scope.as_deref())) {
            groups.entry(group).or_default().insert(key, model);
        }
    }
    groups
}

fn group_of(key: &ModelKey, model: &RescaleCandidate, pools: &GpuPools) -> Option<SharingKey> {
    let mut variants = model.variants.values();
    let accelerator = &variants.next()?.accelerator;
    if variants.any(|variant| variant.accelerator != *accelerator) {
        return None;
    }
    let pools: BTreeSet<GpuPool> =
        pools.drawn_by(&key.namespace, accelerator).into_iter().collect();
    let is_own = |pool: &GpuPool| matches!(pool, GpuPool::NamespaceQuota { .. });
    let scope = pools.iter().any(is_own);
    let (GpuPool::Inventory { accelerator: kind }
    | GpuPool::NoNode { accelerator: kind, .. }
    | GpuPool::ClusterQuota { accelerator: kind, .. }
    | GpuPool::NamespaceQuota { accelerator: kind, .. }) = pools.first()?;
    let kind = Arc::clone(kind);
    Some((kind, scope.then(|| Arc::clone(&key.namespace)), pools))
}

/// What is free and what the members hold, less what is awaited, and whether anything is; none where that is enough
/// for all, or is no number. Nothing is awaited of models that cannot give it up.
fn contended_budget(
    members: &Members<'_>,
    pools: &GpuPools,
    awaited: Gpus,
) -> Option<(Gpus, bool)> {
    let needed = sum(members, RescaleCandidate::needed);
    let whole = finite_budget(members, pools)?;
    let least = sum(members, RescaleCandidate::least).plus(awaited);
    let is_awaited = awaited > Gpus::ZERO && least <= whole;
    let budget = if is_awaited { whole.saturating_sub(awaited) } else { whole };
    (needed > budget).then_some((budget, is_awaited))
}

fn sum(members: &Members<'_>, of: fn(&RescaleCandidate) -> Gpus) -> Gpus {
    members.values().map(|model| of(model)).sum()
}

/// What is free, what will be once deleted pods are gone, and what the members hold; none where that
/// is no number. Without the second, who gave replicas up would have to give up more until their pods
/// are gone.
pub(super) fn finite_budget(members: &Members<'_>, pools: &GpuPools) -> Option<Gpus> {
    let (key, first) = members.first_key_value()?;
    let accelerator = &first.variants.values().next()?.accelerator;
    if pools.is_overdrawn(&key.namespace, accelerator) {
        return None;
    }
    let Budget::Finite(free) = pools.budget_once_gone(&key.namespace, accelerator) else {
        return None;
    };
    Some(free.plus(sum(members, |model| model.held(None))))
}
