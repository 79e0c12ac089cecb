//! The boundary between no replicas and some.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::limits::{gpus, take};
use super::{Cycle, Work};
use crate::accelerator::Accelerator;
use crate::analyzers::{DecisionMode, load_of, queued_at};
use crate::bounds::ZeroPolicy;
use crate::capacity::ServingRole;
use crate::gpu::{Budget, GpuCount, GpuPools, GpuSupply, PoolFigures};
use crate::key::VariantKey;
use crate::pending_decision::PendingDecision;
use crate::plan::PlanStage;
use crate::reason::{Reason, WakeCause, WakeObstacle};
use crate::snapshot::VariantView;
use crate::units::{Gpus, Replicas};
use crate::zero::{
    ModelActivity, Restart, ServingMember, Wake, WakeMember, ZeroMember, ZeroRule, to_zero, wake,
};

/// Wakes models at zero that are requested, the highest priority first, sends idle ones to zero,
/// and keeps a serving set of those that must not be there. `pools` is what GPUs leave, where they
/// limit growth.
pub(super) fn apply(cycle: &Cycle<'_>, works: &mut [Work<'_>], mut pools: Option<&mut GpuPools>) {
    for index in by_priority(works) {
        if let Some(work) = works.get_mut(index) {
            apply_one(cycle, work, pools.as_deref_mut());
        }
    }
}

/// Positions of the models, the highest priority first, then by key.
fn by_priority(works: &[Work<'_>]) -> Vec<usize> {
    let mut ordered: Vec<(usize, &Work<'_>)> = works.iter().enumerate().collect();
    ordered.sort_by(|(_, one), (_, other)| {
        (other.policy.priority.total_cmp(&one.policy.priority)).then_with(|| one.key.cmp(other.key))
    });
    ordered.into_iter().map(|(index, _)| index).collect()
}

pub(super) fn asked_at_zero(cycle: &Cycle<'_>, works: &[Work<'_>]) -> Vec<usize> {
    let asks = |index: &usize| {
        works.get(*index).is_some_and(|work| {
            is_whole(work) && matches!(judge(cycle, work, None), Some(Wake::Start { .. }))
        })
    };
    by_priority(works).into_iter().filter(asks).collect()
}

/// Whether every variant of a model is seen, and there is one.
fn is_whole(work: &Work<'_>) -> bool {
    !work.drafts.is_empty() && work.group.unseen().is_empty()
}

fn apply_one(cycle: &Cycle<'_>, work: &mut Work<'_>, mut pools: Option<&mut GpuPools>) {
    if !is_whole(work) {
        return;
    }
    match (start(cycle, work, pools.as_deref_mut()), pools) {
        (Start::Refused, Some(pools)) => hold(cycle, work, pools),
        (Start::NotDue, pools) if work.zero == ZeroPolicy::Enabled => {
            scale_down_idle(cycle, work, pools.as_deref());
        }
        _ => {}
    }
}

/// Whether a model may be without replicas. By percentages each variant keeps its own minimum, and no more.
fn policy(work: &Work<'_>) -> ZeroPolicy {
    if work.approach == DecisionMode::Percentage { ZeroPolicy::Enabled } else { work.zero }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Made,
    /// GPUs do not allow it.
    Refused,
    NotDue,
}

/// What is to be started; `None` where the model is served, or its start is on its way. Without
/// pools, GPUs do not limit it.
fn judge(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    pools: Option<(&GpuPools, GpuSupply)>,
) -> Option<Wake> {
    let serves_alone = |draft: &PendingDecision<'_>| {
        draft.view.template.role == ServingRole::Both && wake_member(work, draft, None).serves()
    };
    if work.drafts.iter().any(serves_alone) {
        return None;
    }
    let queued = queued_at(work.key, work.subject(cycle));
    let members: BTreeMap<VariantKey, WakeMember> = work
        .drafts
        .iter()
        .map(|draft| (draft.view.key.clone(), wake_member(work, draft, pools)))
        .collect();
    let fits = |decode: &VariantKey, prefill: &VariantKey| {
        let demands: Vec<(&Accelerator, Gpus)> = (work.drafts.iter())
            .filter(|draft| [decode, prefill].contains(&&draft.view.key))
            .filter(|draft| !has_gpus(draft))
            .map(|draft| (&draft.view.accelerator, gpus(draft)))
            .collect();
        pools.is_none_or(|(pools, supply)| pools.fits(&decode.namespace, &demands, supply))
    };
    Some(wake(&members, queued, policy(work), fits))
}

/// Takes the GPUs of the prefill that a decode variant needs which was started from zero, so that
/// they are free once decode is ready: alone it would hold its own and serve no request.
pub(super) fn hold_for_pair(cycle: &Cycle<'_>, work: &mut Work<'_>, pools: &mut GpuPools) {
    if !is_whole(work) {
        return;
    }
    let next = match judge(cycle, work, Some((pools, GpuSupply::Left))) {
        Some(Wake::AwaitDecode { next, .. }) => next,
        // Ordered in an earlier cycle, and not applied yet.
        Some(Wake::Start { next, .. }) if is_on_its_way(work) => next,
        _ => None,
    };
    if let Some(next) = next {
        take_partner(work, &next, pools);
    }
}

fn take_partner(work: &mut Work<'_>, key: &VariantKey, pools: &mut GpuPools) {
    if let Some(draft) = find(work, key) {
        take(draft, Replicas::ONE, pools);
        let view = draft.view;
        let place = (&*key.namespace, &view.accelerator);
        pools.note_partner(work.key, place, view.template.gpus_taken());
    }
}

fn find<'a, 'b>(work: &'b mut Work<'a>, key: &VariantKey) -> Option<&'b mut PendingDecision<'a>> {
    work.drafts.iter_mut().find(|draft| draft.view.key == *key)
}

/// Keeps what is free for a start that lacks GPUs, so that growth of less priority does not take them one by
/// one for ever. Only where the pools could ever hold what it needs.
pub(super) fn hold(cycle: &Cycle<'_>, work: &Work<'_>, pools: &mut GpuPools) {
    for (view, gpus) in needs(cycle, work, pools) {
        let place = (&*view.key.namespace, &view.accelerator);
        pools.hold(work.key, place, gpus);
    }
}

/// GPUs that the next start of a model needs and that its pools do not leave, though they could ever hold them.
pub(super) fn awaited(cycle: &Cycle<'_>, work: &Work<'_>, pools: &GpuPools) -> Gpus {
    match judge(cycle, work, Some((pools, GpuSupply::Left))) {
        Some(Wake::NoServingSet { .. }) if !is_on_its_way(work) => {
            (needs(cycle, work, pools)).into_iter().map(|(_, gpus)| gpus).sum()
        }
        _ => Gpus::ZERO,
    }
}

/// GPUs that each variant of the next start needs, as far as the pools could ever hold them.
fn needs<'a>(cycle: &Cycle<'_>, work: &Work<'a>, pools: &GpuPools) -> Vec<(&'a VariantView, Gpus)> {
    let Some(Wake::Start { variant, next, .. }) =
        judge(cycle, work, Some((pools, GpuSupply::Limit)))
    else {
        return Vec::new();
    };
    let first = work.drafts.iter().filter(|draft| draft.view.key == variant);
    let second = (work.drafts.iter()).filter(|draft| Some(&draft.view.key) == next.as_ref());
    (first.chain(second))
        .filter(|draft| !has_gpus(draft))
        .map(|draft| (draft.view, gpus(draft)))
        .collect()
}

/// Replicas that a variant has, or gets by its own minimum, whatever is started here. A model that must
/// not be at zero has those that are left to it, once its growth is served.
fn kept(work: &Work<'_>, draft: &PendingDecision<'_>) -> Replicas {
    if policy(work) == ZeroPolicy::Disabled && work.growth.is_none() {
        return draft.bounds.clamp(draft.count()).0;
    }
    let (raised, _) = draft.bounds.clamp(Replicas::ZERO);
    draft.scale.current.max(raised)
}

fn has_gpus(draft: &PendingDecision<'_>) -> bool {
    draft.reserved > Replicas::ZERO || draft.scale.current > Replicas::ZERO
}

fn wake_member(
    work: &Work<'_>,
    draft: &PendingDecision<'_>,
    pools: Option<(&GpuPools, GpuSupply)>,
) -> WakeMember {
    let view = draft.view;
    let budget = pools.map_or(Budget::Unlimited, |(pools, supply)| {
        let budget = pools.supply(&view.key.namespace, &view.accelerator, supply);
        view.template.gpu_count.within_for_the_first(budget)
    });
    let budget = if has_gpus(draft) { Budget::Unlimited } else { budget };
    let kept = kept(work, draft);
    WakeMember {
        serving: ServingMember { role: draft.view.template.role, cost: view.cost },
        kept,
        ready: draft.scale.ready.min(kept),
        prospect: draft.prospect,
        max: draft.bounds.max,
        gpus: view.template.gpus_per_replica(),
        budget,
    }
}

/// Starts the next variant of a model that nothing serves, or says what refuses it.
pub(super) fn start(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    mut pools: Option<&mut GpuPools>,
) -> Start {
    if let Some(pools) = &mut pools {
        pools.release_held(work.key);
    }
    let left = pools.as_deref().map(|pools| (pools, GpuSupply::Left));
    let Some(wake) = judge(cycle, work, left) else {
        return Start::NotDue;
    };
    match wake {
        Wake::Start { variant, next, .. } if is_on_its_way(work) => {
            name_decode(work, &variant, |key| Some(key) == next.as_ref());
            Start::Made
        }
        Wake::NoServingSet { .. } if is_on_its_way(work) => Start::Made,
        Wake::Start { ref variant, .. } if keeps_instead(work, variant) => Start::NotDue,
        Wake::Start { variant, next, cause } => {
            begin(cycle, work, &variant, cause);
            if let Some(pools) = &mut pools {
                if let Some(draft) = find(work, &variant) {
                    take(draft, Replicas::ONE, pools);
                }
                if let Some(next) = &next {
                    take_partner(work, next, pools);
                }
            }
            name_decode(work, &variant, |key| Some(key) == next.as_ref());
            Start::Made
        }
        Wake::NoServingSet { cause, obstacles } => {
            refuse(&mut work.drafts, cause, &obstacles, pools.as_deref());
            Start::Refused
        }
        Wake::NoSignal => {
            say_blind(cycle, work);
            Start::NotDue
        }
        Wake::AwaitDecode { decode, next } => {
            name_decode(work, &decode, |key| next.as_ref().is_none_or(|next| key == next));
            Start::NotDue
        }
        Wake::Serving | Wake::NotWanted => Start::NotDue,
    }
}

fn name_decode(work: &mut Work<'_>, decode: &VariantKey, follows: impl Fn(&VariantKey) -> bool) {
    let is_coming = find(work, decode)
        .is_some_and(|draft| draft.bounds.clamp(draft.count()).0 > Replicas::ZERO);
    let waits = |draft: &PendingDecision<'_>| {
        is_coming
            && draft.view.template.role == ServingRole::Prefill
            && draft.count() == Replicas::ZERO
            && draft.bounds.leaves_room_above(Replicas::ZERO)
            && follows(&draft.view.key)
    };
    for draft in work.drafts.iter_mut().filter(|draft| waits(draft)) {
        let decode = decode.clone();
        draft.keep_still(PlanStage::Zero, Reason::AwaitsDecode { decode });
    }
}

/// Keeps replicas that serve like a variant without any that is to be started, where their release is not applied
/// yet. Returns whether there are any.
fn keeps_instead(work: &mut Work<'_>, variant: &VariantKey) -> bool {
    let cold = find(work, variant).filter(|draft| draft.scale.current == Replicas::ZERO);
    let role = cold.map(|draft| draft.view.template.role);
    let mut is_kept = false;
    for draft in &mut work.drafts {
        is_kept |= Some(draft.view.template.role) == role && draft.cancel_release();
    }
    is_kept
}

fn begin(cycle: &Cycle<'_>, work: &mut Work<'_>, variant: &VariantKey, cause: WakeCause) {
    let source = cycle.reader.queued(work.key).map(|queue| queue.source);
    let source = source.filter(|_| matches!(cause, WakeCause::Queued(_)));
    if let Some(draft) = find(work, variant) {
        draft.step(PlanStage::Zero, Replicas::ONE, Reason::Woken { cause, source });
    }
}

/// Starts the next variant of a model if its GPUs are free, and returns it. A refusal is not final before all
/// growth is served, so it leaves no record.
pub(super) fn start_if_free(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    pools: &mut GpuPools,
) -> Option<VariantKey> {
    pools.release_held(work.key);
    let wake = judge(cycle, work, Some((pools, GpuSupply::Left)));
    let Some(Wake::Start { variant, .. }) = wake.filter(|_| !is_on_its_way(work)) else {
        return None;
    };
    (start(cycle, work, Some(pools)) == Start::Made).then_some(variant)
}

/// Whether the next start of a model was ordered already: of what serves, or of the prefill of a decode that
/// runs. Prefill alone serves no request.
fn is_on_its_way(work: &Work<'_>) -> bool {
    let decodes = work.drafts.iter().any(|draft| {
        draft.view.template.role == ServingRole::Decode && wake_member(work, draft, None).serves()
    });
    work.drafts.iter().any(|draft| {
        let role = draft.view.template.role;
        kept(work, draft) == Replicas::ZERO
            && draft.count() > Replicas::ZERO
            && decodes == (role == ServingRole::Prefill)
    })
}

/// Records for every variant at zero what keeps it there, and which pools lack what it takes.
fn refuse(
    drafts: &mut [PendingDecision<'_>],
    cause: WakeCause,
    obstacles: &BTreeMap<VariantKey, WakeObstacle>,
    pools: Option<&GpuPools>,
) {
    for draft in drafts {
        let view = draft.view;
        let Some(obstacle) = obstacles.get(&view.key).copied() else {
            continue;
        };
        if draft.count() > Replicas::ZERO {
            continue;
        }
        let (gpus, count) = (view.template.gpus_per_replica(), &view.template.gpu_count);
        let obstacle = match (obstacle, count) {
            (WakeObstacle::NoGpus, GpuCount::Claimed { .. }) => WakeObstacle::GpusNotCounted,
            (obstacle, _) => obstacle,
        };
        let lacks = |pool: &PoolFigures| {
            count.within_for_the_first(pool.left).grant(gpus) < gpus
                || obstacle == WakeObstacle::NoGpusForPair
        };
        let all = pools.map(|pools| pools.figures(&view.key.namespace, &view.accelerator));
        let why = Reason::WakeRefused {
            cause,
            obstacle,
            gpus,
            by: all.into_iter().flatten().filter(lacks).collect(),
            claims: count.names(),
        };
        draft.keep_still(PlanStage::Zero, why);
    }
}

/// Records for variants at zero that routers were asked for their requests and did not answer.
fn say_blind(cycle: &Cycle<'_>, work: &mut Work<'_>) {
    let Some(why) = cycle.reader.router_failure(work.key) else {
        return;
    };
    let why = Reason::WakeSignalFailed { why: Arc::clone(why) };
    for draft in &mut work.drafts {
        if draft.count() == Replicas::ZERO {
            draft.keep_still(PlanStage::Zero, why.clone());
        }
    }
}

fn scale_down_idle(cycle: &Cycle<'_>, work: &mut Work<'_>, pools: Option<&GpuPools>) {
    let rule = ZeroRule {
        policy: work.zero,
        retention: cycle.settings.scale_to_zero.retention(work.key),
        restart: restart(work, pools),
    };
    let member = |draft: &PendingDecision<'_>| {
        let (count, min) = (draft.count(), draft.bounds.min);
        let woken = cycle.woken(work.key, draft);
        (draft.view.key.clone(), ZeroMember { count, min, woken })
    };
    let members: BTreeMap<VariantKey, ZeroMember> = work.drafts.iter().map(member).collect();
    let load = load_of(work.key, work.subject(cycle));
    let idle = cycle.learned.activity.idle_for(work.key, cycle.now);
    let mut changes = to_zero(&rule, &members, &load, idle);
    for draft in &mut work.drafts {
        if let Some(change) = changes.remove(&draft.view.key) {
            draft.step(PlanStage::Zero, change.to, change.why);
        }
    }
    let is_leaving = |draft: &PendingDecision<'_>| draft.count() == Replicas::ZERO;
    if load.activity() == ModelActivity::Busy && work.drafts.iter().all(is_leaving) {
        // Requests came back before a scaler removed the last replicas.
        for draft in &mut work.drafts {
            draft.cancel_release();
        }
    }
}

/// Whether limits could let some serving set start again: what it holds is counted, and its budget is known and not
/// smaller.
fn restart(work: &Work<'_>, pools: Option<&GpuPools>) -> Restart {
    let limit = |draft: &PendingDecision<'_>| {
        let view = draft.view;
        pools.map_or(Budget::Unlimited, |pools| {
            pools.supply(&view.key.namespace, &view.accelerator, GpuSupply::Limit)
        })
    };
    let is_counted = |draft: &PendingDecision<'_>| {
        !matches!(draft.view.template.gpu_count, GpuCount::Claimed { .. })
    };
    let can_start = |draft: &PendingDecision<'_>| match limit(draft) {
        Budget::Unlimited => true,
        budget => {
            let one = draft.view.template.gpus_taken();
            is_counted(draft) && budget.grant(one) == one
        }
    };
    let of = |role: ServingRole| {
        (work.drafts.iter()).filter(move |draft| draft.view.template.role == role)
    };
    let can = |role: ServingRole| of(role).any(can_start);
    let is_fed = can(ServingRole::Prefill) || of(ServingRole::Prefill).next().is_none();
    let is_served = can(ServingRole::Both) || can(ServingRole::Decode) && is_fed;
    if is_served || work.drafts.iter().all(can_start) {
        Restart::Possible
    } else if work.drafts.iter().all(is_counted) {
        Restart::NoBudget
    } else {
        Restart::NotCounted
    }
}
