//! Releases that are not repeated because they did not last.

use std::collections::BTreeSet;

use super::{Cycle, Work};
use crate::capacity::ServingRole;
use crate::pending_decision::PendingDecision;
use crate::plan::PlanStage;
use crate::reason::Reason;
use crate::scale_down_memory::{FailedScaleDown, Fleet};
use crate::units::Replicas;

/// Cuts releases short that lead to fleets which were not enough for as much as is held now.
pub(super) fn hold(cycle: &Cycle<'_>, work: &mut Work<'_>) {
    let roles: BTreeSet<ServingRole> = work.drafts.iter().map(role).collect();
    for role in roles {
        // Each round takes part of a release back, so this ends where nothing is released.
        while let Some((relapse, now)) = {
            let known = &cycle.learned.relapses;
            known.against(work.key, role, &fleet(&work.drafts, role))
        } {
            let Some(draft) = cheapest_release(&mut work.drafts, role, relapse) else {
                break;
            };
            let failed = replicas(relapse, draft);
            let why = Reason::Relapsed {
                replicas: failed,
                occupancy: relapse.occupancy.0,
                now: now.map(|now| now.0),
            };
            let to = failed.plus_one().min(draft.base());
            draft.step(PlanStage::Relapse, to, why);
        }
    }
}

fn role(draft: &PendingDecision<'_>) -> ServingRole {
    draft.view.template.role
}

fn fleet(drafts: &[PendingDecision<'_>], of: ServingRole) -> Fleet {
    drafts
        .iter()
        .filter(|draft| role(draft) == of)
        .map(|draft| (draft.view.key.clone(), draft.count()))
        .collect()
}

fn replicas(relapse: &FailedScaleDown, draft: &PendingDecision<'_>) -> Replicas {
    let known = relapse.fleet.get(&draft.view.key);
    known.copied().unwrap_or(Replicas::ZERO)
}

/// The cheapest variant that was to be released; one that makes the fleet more than it was then comes
/// first.
fn cheapest_release<'d, 'a>(
    drafts: &'d mut [PendingDecision<'a>],
    of: ServingRole,
    relapse: &FailedScaleDown,
) -> Option<&'d mut PendingDecision<'a>> {
    let released =
        |draft: &&mut PendingDecision<'_>| role(draft) == of && draft.count() < draft.base();
    drafts.iter_mut().filter(released).min_by_key(|draft| {
        let is_no_more = draft.base() <= replicas(relapse, draft);
        (is_no_more, draft.view.cost, draft.view.key.clone())
    })
}
