//! Models whose requests wait although something could be done about it.

use super::multi_analyzer::held_queue;
use super::{Cycle, Work};
use crate::pending_decision::PendingDecision;
use crate::plan::{DecisionOutcome, MetricsState, PlanStage, Reason};
use crate::units::Replicas;

/// Records for every variant that could grow, and does not, that requests wait for its model, and why it
/// does not: what an analyzer cannot see must not look like balance. A model without replicas has its
/// own words for what keeps it there.
pub(super) fn apply(cycle: &Cycle<'_>, works: &mut [Work<'_>]) {
    for work in works {
        name_queue(cycle, work);
        let standing = cycle.learned.backlogs.standing(work.key, cycle.now);
        let serves = |draft: &PendingDecision<'_>| draft.scale.ready > Replicas::ZERO;
        let is_coming = |draft: &PendingDecision<'_>| {
            draft.scale.is_pending() || draft.count() > draft.scale.current
        };
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
