//! What GPUs allow of the growth of all models together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::multi_analyzer::{apply_change, kept};
use super::rescaled::{Sharing, share_budgets, withdraw};
use super::scale_to_zero::{self, Start};
use super::{Cycle, Work, unserved};
use crate::accelerator::Accelerator;
use crate::change::CountChange;
use crate::gpu::{
    Budget, GpuCount, GpuPod, GpuPool, GpuPools, ManagedUse, Physical, PoolFigures, UncountedUse,
};
use crate::key::{ModelKey, TargetKind, VariantKey};
use crate::limit::{GrowthRequest, allocate};
use crate::optimize::{Contender, Contest, cost_aware, share};
use crate::pending_decision::PendingDecision;
use crate::plan::PlanStage;
use crate::reason::{Method, Reason};
use crate::saturation;
use crate::snapshot::{ClusterSnapshot, GpuInventory, PodView, Readiness, TargetView, VariantView};
use crate::units::{Gpus, Replicas};

/// Limits growth, if the settings say so, and returns what is left. Nothing is lowered by it, unless a
/// budget is to be shared by priority: what was published, and what exists, stays.
///
/// First come replicas that are decided already: those published and those of minima. Then models at
/// zero that are requested, or that must not be there, are started, each before the
/// growth of models that are not of higher priority, whether a budget is shared by priority or not.
pub(super) fn apply(
    cycle: &Cycle<'_>,
    snapshot: &ClusterSnapshot,
    works: &mut [Work<'_>],
) -> Option<GpuPools> {
    if !cycle.settings.limits_growth() {
        return None;
    }
    let mut pools = open_pools(cycle, snapshot, works);
    withdraw(works, &pools);
    for work in works.iter_mut() {
        reserve(work, &mut pools);
    }
    aside_minima(works, &BTreeMap::new(), &mut pools, |works, pools| {
        for work in works {
            scale_to_zero::hold_for_pair(cycle, work, pools);
        }
    });
    share_budgets(cycle, works, &mut pools);
    for work in works.iter_mut() {
        reserve_owed(work, &mut pools);
    }
    start_all(cycle, works, &mut pools);
    grow(works, &mut pools, |_| true);
    Some(pools)
}

/// Starts what GPUs allow. What lacks some still holds those that are free from models of less priority.
fn start_all(cycle: &Cycle<'_>, works: &mut [Work<'_>], pools: &mut GpuPools) {
    let mut refused: Vec<usize> = Vec::new();
    for index in scale_to_zero::asked_at_zero(cycle, works) {
        let priority = priority_of(works, index);
        let is_next = |last: &usize| priority_of(works, *last) > priority;
        if refused.last().is_some_and(is_next) {
            hold_all(cycle, works, &refused, pools);
            refused.clear();
        }
        if is_preceded(works, index, pools) {
            grow(works, pools, |work| work.policy.priority > priority);
        }
        if let Some(work) = works.get_mut(index)
            && scale_to_zero::start(cycle, work, Some(pools)) == Start::Refused
        {
            refused.push(index);
        }
    }
    hold_all(cycle, works, &refused, pools);
}

/// Holds GPUs for refused starts of one priority, once what is not of less priority has grown.
fn hold_all(cycle: &Cycle<'_>, works: &mut [Work<'_>], refused: &[usize], pools: &mut GpuPools) {
    if let Some(first) = refused.first() {
        let priority = priority_of(works, *first);
        grow(works, pools, |work| work.policy.priority >= priority);
    }
    for index in refused {
        if let Some(work) = works.get(*index) {
            scale_to_zero::hold(cycle, work, pools);
        }
    }
}

fn priority_of(works: &[Work<'_>], index: usize) -> f64 {
    works.get(index).map_or(0.0, |work| work.policy.priority)
}

fn grow(works: &mut [Work<'_>], pools: &mut GpuPools, which: impl Fn(&Work<'_>) -> bool) {
    let mut chosen: Vec<&mut Work<'_>> = works.iter_mut().filter(|work| which(work)).collect();
    share_growth(&mut chosen, pools);
    cut_growth(&mut chosen, pools);
}

/// Whether a model of higher priority than one that is to start wants to grow out of the same pools.
fn is_preceded(works: &[Work<'_>], index: usize, pools: &GpuPools) -> bool {
    let Some(starting) = works.get(index) else {
        return false;
    };
    let own = drawn(starting, pools);
    works.iter().any(|work| {
        work.policy.priority > starting.policy.priority
            && (work.growth.is_some() || requests(work).next().is_some())
            && !own.is_disjoint(&drawn(work, pools))
    })
}

pub(super) fn drawn(work: &Work<'_>, pools: &GpuPools) -> BTreeSet<GpuPool> {
    (work.drafts.iter())
        .flat_map(|draft| pools.drawn_by(&draft.view.key.namespace, &draft.view.accelerator))
        .collect()
}

/// Acts on pools without the GPUs of minima that are not taken yet, as they are of models that share a budget
/// by priority. `counts` are the counts that sharing led to so far.
pub(super) fn aside_minima<T>(
    works: &mut [Work<'_>],
    counts: &BTreeMap<VariantKey, Replicas>,
    pools: &mut GpuPools,
    act: impl FnOnce(&mut [Work<'_>], &mut GpuPools) -> T,
) -> T {
    let drafts = works.iter().flat_map(|work| &work.drafts);
    let minima: Vec<(Arc<str>, Accelerator, Gpus)> = drafts
        .filter_map(|draft| {
            let key = &draft.view.key;
            let taken = draft.scale.current_excluding_surge().0.saturating_add(draft.reserved.0);
            let has = counts.get(key).copied().unwrap_or_default();
            let (least, _) = draft.bounds.clamp(Replicas::ZERO);
            let more = least.saturating_sub(has.max(Replicas(taken)));
            let owed = gpus(draft).times(more);
            let place = || (Arc::clone(&key.namespace), draft.view.accelerator.clone());
            (owed > Gpus::ZERO)
                .then(place)
                .map(|(namespace, accelerator)| (namespace, accelerator, owed))
        })
        .collect();
    for (namespace, accelerator, owed) in &minima {
        pools.take(namespace, accelerator, *owed);
    }
    let done = act(works, pools);
    for (namespace, accelerator, owed) in &minima {
        pools.give_back(namespace, accelerator, *owed);
    }
    done
}

/// Marks variants whose minimum lacks replicas while more is in use of a pool than it holds: a minimum holds
/// against GPUs, and its pods wait for them.
pub(super) fn mark_minima(works: &mut [Work<'_>], pools: &GpuPools) {
    for draft in works.iter_mut().flat_map(|work| &mut work.drafts) {
        let (min, _) = draft.bounds.clamp(Replicas::ZERO);
        let (count, _) = draft.bounds.clamp(draft.count());
        if count != min || draft.scale.ready >= min {
            continue;
        }
        let all = pools.figures(&draft.view.key.namespace, &draft.view.accelerator);
        let own = gpus(draft).times(min);
        if own == Gpus::ZERO {
            continue;
        }
        let is_over = |pool: &PoolFigures| matches!(pool.limit, Budget::Finite(cap) if pool.used.max(own) > cap);
        let by: Vec<PoolFigures> = all.into_iter().filter(is_over).collect();
        if !by.is_empty() {
            draft.keep(PlanStage::Limit, Reason::MinimumAboveGpus { min, by });
        }
    }
}

/// Names the starts that hold GPUs of the pools of a variant whose growth was cut.
pub(super) fn mark_held(works: &mut [Work<'_>], pools: &GpuPools) {
    for work in works {
        for draft in work.drafts.iter_mut().filter(|draft| draft.lacks_gpus()) {
            let view = draft.view;
            let drawn = pools.drawn_by(&view.key.namespace, &view.accelerator);
            let drawn = drawn.into_iter().collect();
            let mut by = pools.held(&drawn);
            by.retain(|held| held.model != *work.key);
            if !by.is_empty() {
                draft.keep(PlanStage::Limit, Reason::HeldForStart { by });
            }
        }
    }
}

pub(super) fn figures(works: &[Work<'_>], pools: &GpuPools) -> Vec<PoolFigures> {
    let drawn: BTreeSet<(&Arc<str>, &Accelerator)> = (works.iter())
        .flat_map(|work| &work.drafts)
        .map(|draft| (&draft.view.key.namespace, &draft.view.accelerator))
        .collect();
    let all: BTreeMap<GpuPool, PoolFigures> = drawn
        .into_iter()
        .flat_map(|(namespace, accelerator)| pools.figures(namespace, accelerator))
        .map(|figures| (figures.pool(), figures))
        .collect();
    all.into_values().collect()
}

/// An inventory that is not watched is not known, unless quotas are stated: then those bind alone.
fn open_pools(cycle: &Cycle<'_>, snapshot: &ClusterSnapshot, works: &[Work<'_>]) -> GpuPools {
    let limiters = cycle.settings.saturation.limiters().unwrap_or_default();
    // Quotas alone replace what nodes offer, even where that is known.
    let gpus_of_nodes = (snapshot.gpus.as_deref()).filter(|_| cycle.settings.wants_nodes());
    let physical = match gpus_of_nodes {
        Some(inventory) => inventory.physical(&cycle.settings.node_selector),
        None if limiters.is_empty() => Physical::Unknown,
        None => Physical::Unlimited,
    };
    let drafts = works.iter().flat_map(|work| &work.drafts);
    let seen =
        drafts.map(|draft| (draft.view, gpus(draft).times(draft.scale.current_excluding_surge())));
    let mut managed = ManagedUse::new();
    for (view, held) in seen.chain(unseen(snapshot)) {
        let kind: Arc<str> = view.accelerator.label().into();
        let namespace = Arc::clone(&view.key.namespace);
        let sum = managed.entry(namespace).or_default().entry(kind).or_default();
        *sum = sum.plus(held);
    }
    let mut pools = GpuPools::new(physical, limiters, managed);
    pools.uncounted = uncounted(snapshot, works);
    pools.leaving = gpus_of_nodes
        .map(|inventory| inventory.leaving(&cycle.settings.node_selector))
        .unwrap_or_default();
    if let Some(GpuInventory::Nodes { pods, .. }) = gpus_of_nodes {
        let holders = Holders::of(pods);
        for draft in works.iter().flat_map(|work| &work.drafts) {
            let unplaced = gpus(draft).times(unplaced(draft, &holders));
            pools.take_physical(&draft.view.accelerator, unplaced);
        }
    }
    pools
}

/// Types of GPUs that replicas hold by resource claims, which exist or that nothing keeps from existing.
fn uncounted(snapshot: &ClusterSnapshot, works: &[Work<'_>]) -> UncountedUse {
    let drafts = works.iter().flat_map(|work| &work.drafts);
    let seen = drafts.filter(|draft| draft.guaranteed() > Replicas::ZERO);
    let unseen = unseen(snapshot).filter(|(view, _)| view.desired > Some(Replicas::ZERO));
    let mut uncounted = UncountedUse::new();
    for view in (seen.map(|draft| draft.view)).chain(unseen.map(|(view, _)| view)) {
        if matches!(view.template.gpu_count, GpuCount::Claimed { .. }) {
            let types = uncounted.entry(Arc::clone(&view.key.namespace));
            types.or_default().insert(view.accelerator.label().into());
        }
    }
    uncounted
}

/// Variants whose replicas cannot be counted just now, with the GPUs that they were last to have: they are
/// there all the same. Of a target that was never seen each replica holds at least one.
fn unseen(snapshot: &ClusterSnapshot) -> impl Iterator<Item = (&VariantView, Gpus)> {
    let views = snapshot.variants.values().map(|view| &**view);
    views.filter_map(|view| {
        let is_there = match &view.target {
            TargetView::Unknown { .. } | TargetView::Malformed { .. } => true,
            // The target of several is there once.
            TargetView::Contested { claimants, .. } => {
                let mut ours = claimants.iter();
                ours.find(|key| snapshot.variants.contains_key(*key)) == Some(&view.key)
            }
            TargetView::Resolved(_)
            | TargetView::NotFound { .. }
            | TargetView::UnsupportedKind { .. } => false,
        };
        let each = view.template.gpus_taken();
        is_there.then_some((view, each.times(view.desired?)))
    })
}

/// The pods that hold GPUs, by namespace and name, where known.
struct Holders<'a>(BTreeSet<(&'a str, &'a str)>);

impl<'a> Holders<'a> {
    fn of(pods: &'a [GpuPod]) -> Self {
        // A pod without a node holds no GPUs yet.
        let holding = pods.iter();
        let holding = holding.filter(|pod| pod.node.is_some() || pod.containers.is_empty());
        let named = holding.filter_map(|pod| pod.named.as_ref());
        Self(named.map(|(namespace, name)| (&**namespace, &**name)).collect())
    }

    /// Whether pods of a variant hold GPUs: its replicas request them and are a pod each, or one of
    /// them is listed as a holder. Of a group only the leader is known, which may need none.
    fn concern(&self, view: &VariantView) -> bool {
        let is_pod = (view.target.resolved())
            .is_some_and(|target| target.key.kind != TargetKind::LeaderWorkerSet);
        let asks = is_pod && view.template.gpus_per_replica() > Gpus::ZERO;
        !self.0.is_empty() && (asks || view.pods.iter().any(|pod| self.contains(view, pod)))
    }

    fn contains(&self, view: &VariantView, pod: &PodView) -> bool {
        self.0.contains(&(&*view.key.namespace, &*pod.name))
    }
}

/// Replicas that exist and hold no GPU of any node yet: without a pod, or with one that has neither a node nor devices.
/// They were granted their GPUs before, and will take them. Pods of variants and those that hold GPUs are watched each
/// by itself: what has a node by the one and is not shown by the other holds its GPUs, too. Claims are allocated
/// before their pod gets its node, so that the other shows what has none.
fn unplaced(draft: &PendingDecision<'_>, holders: &Holders<'_>) -> Replicas {
    let view = draft.view;
    let is_placed = |pod: &&PodView| {
        let has_node = pod.readiness == Readiness::Ready || pod.node.is_some();
        has_node || holders.contains(view, pod)
    };
    let are_named = holders.concern(view);
    let placed = view.pods.iter().filter(is_placed);
    let (known, missed): (Vec<&PodView>, Vec<&PodView>) =
        placed.partition(|pod| !are_named || holders.contains(view, pod));
    let (known, missed) = (Replicas::from_len(known.len()), Replicas::from_len(missed.len()));
    let scale = draft.scale;
    let waiting = scale.current.saturating_sub(known.max(scale.ready));
    waiting.max(missed)
}

pub(super) fn gpus(draft: &PendingDecision<'_>) -> Gpus {
    draft.view.template.gpus_taken()
}

/// What a variant has or was granted before: replicas that exist, but for those that a rollout has for a
/// while, that were published, or that have their GPUs.
fn granted(draft: &PendingDecision<'_>) -> Replicas {
    let existing = draft.scale.current_excluding_surge();
    draft.base().max(existing.plus(draft.reserved))
}

/// Takes the GPUs of replicas up to `count` that do not exist, as far as they are not taken yet.
pub(super) fn take(draft: &mut PendingDecision<'_>, count: Replicas, pools: &mut GpuPools) {
    let missing = count.saturating_sub(draft.scale.current_excluding_surge());
    let more = missing.saturating_sub(draft.reserved);
    let view = draft.view;
    let taken = gpus(draft).times(more);
    pools.take(&view.key.namespace, &view.accelerator, taken);
    draft.reserved = draft.reserved.max(missing);
}

/// Published replicas and minima take their GPUs before any other. A model that may share a budget by priority
/// claims its own anew, minima included, beyond what was published.
fn reserve(work: &mut Work<'_>, pools: &mut GpuPools) {
    if matches!(work.sharing, Sharing::Asked(_)) {
        for draft in &mut work.drafts {
            let kept = draft.base().min(draft.count());
            take(draft, kept, pools);
        }
    } else {
        reserve_owed(work, pools);
    }
}

/// Published replicas and minima take their GPUs.
fn reserve_owed(work: &mut Work<'_>, pools: &mut GpuPools) {
    for draft in &mut work.drafts {
        let owed = draft.guaranteed();
        take(draft, owed, pools);
    }
}

fn share_growth(works: &mut [&mut Work<'_>], pools: &mut GpuPools) {
    let contests: BTreeMap<ModelKey, Contest> =
        works.iter().filter_map(|work| Some((work.key.clone(), contest(work)?))).collect();
    if contests.is_empty() {
        return;
    }
    let shares = share(&contests, pools);
    for work in works {
        let Some(growth) = work.growth.take() else {
            continue;
        };
        let rest = cost_aware(&growth.candidates, &growth.role_targets, Method::Greedy).changes;
        for draft in &mut work.drafts {
            let key = &draft.view.key;
            match shares.get(key) {
                Some(change) => take_share(draft, change),
                None => apply_change(draft, rest.get(key), &growth.guard),
            }
        }
    }
}

fn contest(work: &Work<'_>) -> Option<Contest> {
    let growth = work.growth.as_ref()?;
    let contenders = work.drafts.iter().filter_map(|draft| {
        let key = &draft.view.key;
        let mut candidate = growth.candidates.get(key)?.clone();
        // One that was started from zero in this cycle counts.
        candidate.standing = candidate.standing.max(draft.started());
        let contender = Contender {
            accelerator: draft.view.accelerator.clone(),
            gpus: gpus(draft),
            gpu_count: draft.view.template.gpu_count.clone(),
            reserved: draft.reserved.saturating_sub(candidate.ordered()),
            candidate,
        };
        Some((key.clone(), contender))
    });
    Some(Contest {
        priority: work.policy.priority,
        contenders: contenders.collect(),
        role_targets: growth.role_targets.clone(),
    })
}

/// The model lacks capacity, so what was published stays even where nothing is granted. What a rollout
/// has for a while was counted on, and takes its GPUs afterwards.
fn take_share(draft: &mut PendingDecision<'_>, shared: &CountChange) {
    let standing = draft.count();
    if shared.to > draft.committed() {
        let taken = shared.to.saturating_sub(draft.scale.current);
        draft.reserved = draft.reserved.max(taken);
    }
    let why = match &shared.why {
        Reason::Granted { .. } if shared.to <= standing => Reason::CountedOn { standing },
        why => why.clone(),
    };
    let to = kept(draft.scale, shared.to).max(standing);
    draft.step(PlanStage::Optimizer, to, why);
}

/// Requests the growth that is not shared. A step by percentages, or for a queue, that GPUs refuse falls to the next
/// variant of its model, as that of a variant at its maximum does.
fn cut_growth(works: &mut [&mut Work<'_>], pools: &mut GpuPools) {
    let mut is_asking = true;
    while is_asking {
        let requests: Vec<GrowthRequest> = works.iter().flat_map(|work| requests(work)).collect();
        let grants = allocate(&requests, pools);
        for draft in works.iter_mut().flat_map(|work| &mut work.drafts) {
            let key: &VariantKey = &draft.view.key;
            if let Some(grant) = grants.get(key) {
                draft.step(PlanStage::Limit, grant.change.to, grant.change.why.clone());
            }
        }
        is_asking = false;
        for work in works.iter_mut() {
            is_asking |= saturation::pass_on(&mut work.drafts);
            is_asking |= unserved::pass_on(&mut work.drafts);
        }
    }
}

fn requests<'a>(work: &'a Work<'_>) -> impl Iterator<Item = GrowthRequest> + 'a {
    work.drafts
        .iter()
        .filter(|draft| !draft.is_cut())
        .filter(|draft| draft.count() > granted(draft))
        .map(|draft| GrowthRequest {
            key: draft.view.key.clone(),
            accelerator: draft.view.accelerator.clone(),
            current: granted(draft),
            target: draft.count(),
            floor: draft.bounds.min,
            max: draft.bounds.max,
            gpus: gpus(draft),
            count: draft.view.template.gpu_count.clone(),
            priority: work.policy.priority,
            spare: draft.figures.spare_kv,
            cost: draft.view.cost,
        })
}
