//! The boundary between no replicas and some.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Cycle, Work};
use crate::policy::analyzers::{Approach, load_of};
use crate::policy::bounds::ZeroPolicy;
use crate::policy::capacity::ServingRole;
use crate::policy::change::Change;
use crate::policy::draft::Draft;
use crate::policy::key::VariantKey;
use crate::policy::limit::{Budget, Pools};
use crate::policy::plan::{Stage, Why};
use crate::policy::units::Replicas;
use crate::policy::zero::{
    Refusal, ServingMember, Wake, WakeMember, WhyZero, ZeroMember, ZeroRule, at_least_one, to_zero,
    wake,
};

/// Wakes a model at zero that somebody asks for, sends an idle one to zero, and keeps a serving set
/// of one that must not be there. `pools` is what GPUs leave, where they limit growth.
pub(super) fn cross(cycle: &Cycle<'_>, work: &mut Work<'_>, pools: Option<&mut Pools>) {
    if work.drafts.is_empty() || !work.group.unseen().is_empty() {
        return;
    }
    if start(cycle, work, pools) {
        return;
    }
    if work.zero == ZeroPolicy::Enabled {
        leave(cycle, work);
    } else if work.approach != Approach::Percentage {
        let members = members(cycle, work);
        apply(&mut work.drafts, &at_least_one(work.zero, &members));
    }
}

/// Starts the next variant of a model that nothing serves; whether one is started, or would have to
/// be and may not.
fn start(cycle: &Cycle<'_>, work: &mut Work<'_>, pools: Option<&mut Pools>) -> bool {
    let serves_alone = |draft: &Draft<'_>| {
        draft.view.template.role == ServingRole::Both && draft.scale.current > Replicas::ZERO
    };
    if work.drafts.iter().any(serves_alone) {
        return false;
    }
    let load = load_of(work.key, work.subject(cycle));
    let members: BTreeMap<VariantKey, WakeMember> = work
        .drafts
        .iter()
        .map(|draft| {
            let view = draft.view;
            let budget = pools.as_ref().map_or(Budget::Unlimited, |pools| {
                pools.budget(&view.key.namespace, &view.accelerator)
            });
            let member = WakeMember {
                serving: serving(draft),
                current: draft.scale.current,
                ready: draft.scale.ready,
                max: draft.bounds.max,
                gpus: view.template.gpus_per_replica(),
                budget,
            };
            (view.key.clone(), member)
        })
        .collect();
    let (variant, queued) = match wake(&members, load.queued) {
        Wake::Start { variant, queued } => (variant, queued),
        Wake::NoServingSet { refusals } => {
            refuse(work, &refusals);
            return load.queued.is_some_and(|queued| queued > 0.0);
        }
        Wake::NoSignal => {
            say_blind(cycle, work);
            return false;
        }
        _ => return false,
    };
    // One that was started is on its way.
    let is_waiting = |draft: &Draft<'_>| draft.scale.current == Replicas::ZERO;
    let mut waiting = work.drafts.iter().filter(|draft| is_waiting(draft));
    if queued.is_some() && waiting.any(|draft| draft.count() > Replicas::ZERO) {
        return true;
    }
    let source = cycle.listener.queued(work.key).map(|queue| queue.source);
    for draft in &mut work.drafts {
        if draft.view.key == variant && draft.count() == Replicas::ZERO {
            let source = queued.and(source);
            draft.step(Stage::Zero, Replicas::ONE, Why::Woken { queued, source });
            if let Some(pools) = pools {
                let view = draft.view;
                let gpus = view.template.gpus_per_replica();
                pools.take(&view.key.namespace, &view.accelerator, gpus);
            }
            return true;
        }
    }
    true
}

/// Says of each variant that is needed what keeps it from starting.
fn refuse(work: &mut Work<'_>, refusals: &BTreeMap<VariantKey, Refusal>) {
    for draft in &mut work.drafts {
        let refusal = refusals.get(&draft.view.key).copied();
        if let Some(refusal) = refusal.filter(|_| draft.count() == Replicas::ZERO) {
            draft.keep(Stage::Zero, Why::Zero(WhyZero::WakeRefused { refusal }));
        }
    }
}

/// Says of variants at zero that routers were asked for their requests and did not answer.
fn say_blind(cycle: &Cycle<'_>, work: &mut Work<'_>) {
    let Some(why) = cycle.listener.router_failure(work.key) else {
        return;
    };
    let why = Why::WakeSignalFailed {
        why: Arc::clone(why),
    };
    for draft in &mut work.drafts {
        if draft.count() == Replicas::ZERO {
            draft.keep(Stage::Zero, why.clone());
        }
    }
}

/// Sends an idle model to zero, or says what keeps it.
fn leave(cycle: &Cycle<'_>, work: &mut Work<'_>) {
    let rule = ZeroRule {
        policy: work.zero,
        retention: cycle.settings.scale_to_zero.retention(work.key),
    };
    let members = members(cycle, work);
    let load = load_of(work.key, work.subject(cycle));
    let idle = cycle.learned.activity.idle_for(work.key, cycle.now);
    let mut changes = to_zero(&rule, &members, &load, idle);
    if work.approach == Approach::Percentage {
        // What keeps a model is no news where nothing but percentages is looked at.
        changes.retain(|_, change| change.from != change.to);
    }
    apply(&mut work.drafts, &changes);
}

fn members(cycle: &Cycle<'_>, work: &Work<'_>) -> BTreeMap<VariantKey, ZeroMember> {
    work.drafts
        .iter()
        .map(|draft| {
            let key = &draft.view.key;
            let woken = cycle.woken_floor(work.key, key);
            let member = ZeroMember {
                serving: serving(draft),
                count: draft.count(),
                min: draft.bounds.min.max(woken),
            };
            (key.clone(), member)
        })
        .collect()
}

fn serving(draft: &Draft<'_>) -> ServingMember {
    ServingMember {
        role: draft.view.template.role,
        cost: draft.view.cost,
    }
}

fn apply(drafts: &mut [Draft<'_>], changes: &BTreeMap<VariantKey, Change<WhyZero>>) {
    for draft in drafts {
        if let Some(change) = changes.get(&draft.view.key) {
            draft.step(Stage::Zero, change.to, Why::Zero(change.why.clone()));
        }
    }
}
