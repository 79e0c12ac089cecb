//! Replicas behind scheduling gates, in a word of their own. No count depends on it.

use std::collections::BTreeMap;

use super::{Cycle, Work};
use crate::analyzers::Opinions;
use crate::capacity::ServingRole;
use crate::combine::Consensus;
use crate::pending_decision::PendingDecision;
use crate::plan::PlanStage;
use crate::reason::Reason;
use crate::units::Replicas;

/// Names the replicas of each variant that wait behind gates, once where percentages stand in for analyzers.
pub(super) fn name(drafts: &mut [PendingDecision<'_>]) {
    for draft in drafts {
        if let Some(cause) = draft.transitions.gated() {
            draft.keep_still(PlanStage::Base, Reason::Gated { cause });
        }
    }
}

/// Sets them apart from the replicas on their way, as long as analyzers count them among those.
pub(super) fn set_apart(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    opinions: &mut Opinions,
    consensus: &mut Consensus,
) {
    let mut roles: BTreeMap<ServingRole, Replicas> = BTreeMap::new();
    for draft in &work.drafts {
        let Some((count, _)) = draft.view.gated() else {
            continue;
        };
        let expired = cycle.outlook().gated_too_long(draft.view);
        let counted = count.saturating_sub(expired).min(draft.scale.pending());
        if counted > Replicas::ZERO {
            let sum = roles.entry(draft.view.template.role).or_default();
            *sum = sum.plus(counted);
        }
    }
    consensus.name_gated(&roles);
    for (role, figures) in opinions.slo.iter_mut().flat_map(|slo| &mut slo.roles) {
        let gated = roles.get(role).map(|gated| figures.starting.min(*gated));
        figures.gated = gated.filter(|gated| *gated > Replicas::ZERO);
    }
}
