//! Models whose requests wait although something could be done about it.

use std::collections::BTreeSet;

use super::cancelled::is_full;
use super::multi_analyzer::held_queue;
use super::{Cycle, Work};
use crate::analyzers::waiting_of;
use crate::backlog::{RouterBacklog, STANDS};
use crate::capacity::ServingRole;
use crate::pending_decision::PendingDecision;
use crate::plan::{DecisionOutcome, PlanStage};
use crate::reason::{MetricsState, Reason};
use crate::startup::StartProspect;
use crate::units::Replicas;

/// Keeps what load would release while a backlog stands in the router of a model, and adds a replica where it does not
/// become smaller and nothing is on its way. The replicas do not serve what arrives then, whatever an analyzer makes of
/// what they report. Of several roles those grow that are full, or all where none is, if they do anything: more replicas
/// that idle serve no more. Without usable metrics the safety net holds everything.
pub(super) fn act(cycle: &Cycle<'_>, work: &mut Work<'_>) {
    let Some((backlog, queued)) = standing(cycle, work) else {
        return;
    };
    let is_unseen = cycle.unusable(&work.drafts).is_some();
    if is_unseen || work.growth.is_some() || !work.drafts.iter().any(serves) {
        return;
    }
    let (requests, lasts) = (queued.unwrap_or(backlog.fewest), backlog.lasts(cycle.now));
    for draft in work.drafts.iter_mut().filter(|draft| draft.count() < draft.base()) {
        draft.step(PlanStage::Backlog, draft.base(), Reason::QueueHoldsRelease { requests, lasts });
    }
    let (fewest, lasts) = (backlog.fewest, backlog.stagnates(cycle.now));
    let may_fall = queued.is_none_or(|queued| queued < fewest) || lasts < STANDS;
    let moves =
        |draft: &PendingDecision<'_>| is_coming(draft) || draft.unapplied_release().is_some();
    if may_fall || work.drafts.iter().any(moves) {
        return;
    }
    let full: BTreeSet<ServingRole> =
        work.drafts.iter().filter(|draft| is_full(draft)).map(role).collect();
    let busy = work.drafts.iter().filter(|draft| is_busy(draft)).map(role);
    let roles = if full.is_empty() { busy.collect() } else { full };
    for role in roles {
        add(&mut work.drafts, role, Reason::QueueStands { requests, fewest, lasts });
    }
}

/// Hands replicas that GPUs refused to the next variants of their roles. Whether there were any.
pub(super) fn pass_on(drafts: &mut [PendingDecision<'_>]) -> bool {
    let roles: BTreeSet<ServingRole> = drafts.iter().map(role).collect();
    let mut is_passed = false;
    for grown in roles {
        let members = drafts.iter().filter(|draft| role(draft) == grown);
        let asked: Vec<_> = members.filter(|draft| draft.added_for_queue().is_some()).collect();
        let is_refused = asked.iter().all(|draft| draft.lacks_gpus() && !is_coming(draft));
        if let Some(why) = asked.iter().find_map(|draft| draft.added_for_queue()).cloned()
            && is_refused
        {
            is_passed |= add(drafts, grown, why);
        }
    }
    is_passed
}

/// Adds a replica to the cheapest variant of a role that may grow and was not to yet. Whether there was one.
fn add(drafts: &mut [PendingDecision<'_>], grown: ServingRole, why: Reason) -> bool {
    let free = drafts.iter_mut().filter(|draft| {
        role(draft) == grown && may_grow(draft) && draft.added_for_queue().is_none()
    });
    let chosen = free.min_by_key(|draft| {
        let is_stalled = draft.prospect == StartProspect::Stalled;
        (is_stalled, draft.view.cost, draft.view.key.clone())
    });
    let Some(draft) = chosen else { return false };
    draft.step(PlanStage::Backlog, draft.count().plus_one(), why);
    true
}

fn role(draft: &PendingDecision<'_>) -> ServingRole {
    draft.view.template.role
}

/// The backlog in the router of a model where it stands, and the requests in it by now, where they are known.
pub(super) fn standing(cycle: &Cycle<'_>, work: &Work<'_>) -> Option<(RouterBacklog, Option<f64>)> {
    let backlog = cycle.learned.router_backlogs.standing(work.key, cycle.now)?;
    let waiting = waiting_of(work.key, work.subject(cycle));
    let is_gone =
        waiting.is_routed_backlog(work.policy.thresholds.queue_length_threshold) == Some(false);
    (!is_gone).then_some((*backlog, waiting.routed))
}

fn is_busy(draft: &PendingDecision<'_>) -> bool {
    draft.figures.max_kv > 0.0 || draft.figures.max_queue > 0.0
}

fn serves(draft: &PendingDecision<'_>) -> bool {
    draft.scale.ready > Replicas::ZERO
}

fn is_coming(draft: &PendingDecision<'_>) -> bool {
    draft.scale.is_pending() || draft.count() > draft.scale.current
}

fn may_grow(draft: &PendingDecision<'_>) -> bool {
    let is_known = matches!(draft.metrics, MetricsState::Available | MetricsState::NoReplicas);
    is_known
        && draft.outcome == DecisionOutcome::Analyzed
        && !draft.is_cut()
        && draft.bounds.leaves_room_above(draft.count())
}

/// Records for every variant that could grow, and does not, that requests wait for its model, and why it
/// does not: what an analyzer cannot see must not look like balance. A model without replicas has its
/// own words for what keeps it there.
pub(super) fn apply(cycle: &Cycle<'_>, works: &mut [Work<'_>]) {
    for work in works {
        name_queue(cycle, work);
        let standing = cycle.learned.backlogs.standing(work.key, cycle.now);
        let Some(lasts) = standing else { continue };
        if !work.drafts.iter().any(serves) || work.drafts.iter().any(is_coming) {
            continue;
        }
        for draft in &mut work.drafts {
            let is_free = draft.bounds.leaves_room_above(draft.count());
            if !is_free || draft.outcome != DecisionOutcome::Analyzed {
                continue;
            }
            if let Some((stage, because)) = draft.judgement() {
                let because = Box::new(because.clone());
                draft.keep(stage, Reason::Unserved { lasts, because });
            }
        }
    }
}

/// Records for a variant without a report, where nothing moved it, that requests wait in the router for its model.
fn name_queue(cycle: &Cycle<'_>, work: &mut Work<'_>) {
    let state = MetricsState::Missing;
    let Some(queue) = held_queue(cycle, work, state) else {
        return;
    };
    for draft in &mut work.drafts {
        let is_silent = draft.scale.current > Replicas::ZERO && !cycle.is_reporting(draft);
        let is_named = (draft.judgement())
            .is_some_and(|(_, why)| matches!(why, Reason::NoUsableMetrics { .. }));
        if is_silent && !is_named && draft.count() == draft.base() {
            let queue = Some(queue);
            draft.keep(PlanStage::SafetyNet, Reason::NoUsableMetrics { state, queue });
        }
    }
}
