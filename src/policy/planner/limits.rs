//! What GPUs allow of the growth of all models together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::rescaled::share_budgets;
use super::voted::reached;
use super::{Cycle, Work};
use crate::policy::change::Change;
use crate::policy::draft::Draft;
use crate::policy::key::{ModelKey, VariantKey};
use crate::policy::limit::{GrowthRequest, ManagedUse, Physical, Pools, allocate};
use crate::policy::optimize::{Contender, Contest, Method, WhyShared, cost_aware, share};
use crate::policy::plan::{Stage, Why};
use crate::policy::snapshot::ClusterSnapshot;
use crate::policy::units::{Gpus, Replicas};

/// Limits growth, if the settings say so, and returns what is left. Nothing is lowered by it, unless a
/// budget is to be shared by priority: what was published, and what exists, stays.
pub(super) fn apply(
    cycle: &Cycle<'_>,
    snapshot: &ClusterSnapshot,
    works: &mut [Work<'_>],
) -> Option<Pools> {
    if !cycle.settings.limits_growth() {
        return None;
    }
    let mut pools = open_pools(cycle, snapshot, works);
    reserve(works, &mut pools);
    share_budgets(cycle, works, &mut pools);
    share_growth(works, &mut pools);
    cut_growth(works, &mut pools);
    Some(pools)
}

/// An inventory that nobody looks at is not known, unless quotas are stated: then those bind alone.
fn open_pools(cycle: &Cycle<'_>, snapshot: &ClusterSnapshot, works: &[Work<'_>]) -> Pools {
    let limiters = cycle.settings.saturation.limiters().unwrap_or_default();
    let physical = match &snapshot.gpus {
        Some(inventory) => inventory.physical(&cycle.settings.node_selector),
        None if limiters.is_empty() => Physical::Unknown,
        None => Physical::Unlimited,
    };
    let mut managed = ManagedUse::new();
    for draft in works.iter().flat_map(|work| &work.drafts) {
        let held = gpus(draft).times(draft.scale.current);
        let kind: Arc<str> = draft.view.accelerator.label().into();
        let namespace = Arc::clone(&draft.view.key.namespace);
        let sum = managed
            .entry(namespace)
            .or_default()
            .entry(kind)
            .or_default();
        *sum = sum.plus(held);
    }
    Pools::new(physical, limiters, managed)
}

fn gpus(draft: &Draft<'_>) -> Gpus {
    draft.view.template.gpus_per_replica()
}

/// What a variant has or was granted before: replicas that exist or were published.
fn granted(draft: &Draft<'_>) -> Replicas {
    draft.base().max(draft.scale.current)
}

/// Published replicas that do not exist yet take their GPUs before anybody else does. Models that
/// wait for a share claim theirs anew.
fn reserve(works: &[Work<'_>], pools: &mut Pools) {
    let settled = works.iter().filter(|work| work.growth.is_none());
    for draft in settled.flat_map(|work| &work.drafts) {
        let kept = draft.base().min(draft.count());
        let missing = kept.saturating_sub(draft.scale.current);
        let view = draft.view;
        pools.take(
            &view.key.namespace,
            &view.accelerator,
            gpus(draft).times(missing),
        );
    }
}

/// Serves the growth of voted models out of shared pools.
fn share_growth(works: &mut [Work<'_>], pools: &mut Pools) {
    let contests: BTreeMap<ModelKey, Contest> = works
        .iter()
        .filter_map(|work| Some((work.key.clone(), contest(work)?)))
        .collect();
    if contests.is_empty() {
        return;
    }
    let shares = share(&contests, pools);
    for work in works {
        let Some(growth) = work.growth.take() else {
            continue;
        };
        let rest = cost_aware(&growth.candidates, &growth.mandates, Method::Greedy).changes;
        for draft in &mut work.drafts {
            let key = &draft.view.key;
            match (shares.get(key), rest.get(key)) {
                (Some(change), _) => take_share(draft, change),
                (None, Some(kept)) => {
                    let to = reached(draft.count(), kept).unwrap_or_else(|| draft.count());
                    draft.step(Stage::Optimizer, to, Why::Optimized(kept.why.clone()));
                }
                (None, None) => {
                    let state = draft.metrics;
                    draft.keep(Stage::Optimizer, Why::NoUsableMetrics { state });
                }
            }
        }
    }
}

fn contest(work: &Work<'_>) -> Option<Contest> {
    let growth = work.growth.as_ref()?;
    let contenders = work.drafts.iter().filter_map(|draft| {
        let key = &draft.view.key;
        let contender = Contender {
            candidate: growth.candidates.get(key)?.clone(),
            accelerator: draft.view.accelerator.clone(),
            gpus: gpus(draft),
        };
        Some((key.clone(), contender))
    });
    Some(Contest {
        priority: work.policy.priority,
        contenders: contenders.collect(),
        mandates: growth.mandates.clone(),
    })
}

/// The model lacks capacity, so what was published stays even where nothing is granted.
fn take_share(draft: &mut Draft<'_>, shared: &Change<WhyShared>) {
    let to = shared.to.max(draft.count());
    draft.step(Stage::Optimizer, to, Why::Shared(shared.why));
}

/// Cuts the growth of all other models to what is left.
fn cut_growth(works: &mut [Work<'_>], pools: &mut Pools) {
    let requests: Vec<GrowthRequest> = works.iter().flat_map(requests).collect();
    let grants = allocate(&requests, pools);
    for draft in works.iter_mut().flat_map(|work| &mut work.drafts) {
        let key: &VariantKey = &draft.view.key;
        if let Some(grant) = grants.get(key) {
            let why = Why::Limited(grant.change.why.clone());
            draft.step(Stage::Limit, grant.change.to, why);
        }
    }
}

fn requests<'a>(work: &'a Work<'_>) -> impl Iterator<Item = GrowthRequest> + 'a {
    let shared = |draft: &&Draft<'_>| !draft.is_shared();
    work.drafts
        .iter()
        .filter(shared)
        .filter(|draft| draft.count() > granted(draft))
        .map(|draft| GrowthRequest {
            key: draft.view.key.clone(),
            accelerator: draft.view.accelerator.clone(),
            current: granted(draft),
            target: draft.count(),
            floor: draft.bounds.min,
            max: draft.bounds.max,
            gpus: gpus(draft),
            priority: work.policy.priority,
            spare: draft.figures.spare_kv,
            cost: draft.view.cost,
        })
}
