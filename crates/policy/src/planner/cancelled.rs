//! Releases that are published, not applied, and no longer wanted.

use std::collections::BTreeSet;

use super::{Cycle, Work, unserved};
use crate::analyzers::waiting_of;
use crate::capacity::ServingRole;
use crate::pending_decision::PendingDecision;
use crate::reason::Reason;
use crate::units::Replicas;

/// Cancels the unapplied releases of every role that grows, of every model whose router has a standing backlog, and of
/// every role without an opinion while requests wait or its caches are full: their replicas still serve, so keeping
/// them costs nothing and acts at once. Percentages have done so already, instead of growing.
pub(super) fn apply(cycle: &Cycle<'_>, works: &mut [Work<'_>]) {
    for work in works {
        if !(work.drafts.iter()).any(|draft| draft.unapplied_release().is_some()) {
            continue;
        }
        let waiting = waiting_of(work.key, work.subject(cycle));
        let leaves_none =
            (work.drafts.iter()).all(|draft| draft.bounds.clamp(draft.count()).0 == Replicas::ZERO);
        let each = work.policy.thresholds.queue_length_threshold;
        let has_backlog = waiting.is_backlog(if leaves_none { 0.0 } else { each });
        let is_routed = unserved::standing(cycle, work).is_some();
        let role = |draft: &PendingDecision<'_>| draft.view.template.role;
        let lacking: BTreeSet<ServingRole> = (work.drafts.iter())
            .filter(|draft| {
                let is_lacking = has_backlog || is_full(draft);
                is_routed || draft.grows() || (is_lacking && is_unjudged(cycle, draft))
            })
            .map(role)
            .collect();
        for draft in &mut work.drafts {
            // A budget that is shared by priority took its replicas; they are not its own to keep.
            if lacking.contains(&role(draft)) && !draft.is_rescaled() {
                draft.cancel_release();
            }
        }
    }
}

pub(super) fn is_full(draft: &PendingDecision<'_>) -> bool {
    draft.figures.reporting > 0 && draft.figures.non_saturated == 0
}

/// Whether a variant is silent, or no analyzer has an opinion about what its role needs.
fn is_unjudged(cycle: &Cycle<'_>, draft: &PendingDecision<'_>) -> bool {
    let is_silent = draft.scale.current > Replicas::ZERO && !cycle.is_reporting(draft);
    // Where the queueing model has nothing to say, saturation decides, and did so before.
    let left = |why: &Reason| matches!(why, Reason::LeftToSaturation);
    is_silent || !draft.last_of_load(|why| !left(why)).is_some_and(Reason::is_opinion)
}
