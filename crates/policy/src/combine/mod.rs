//! From the views of several analyzers on one model to one `RoleTarget` for each role: grow by so
//! much, release so much, or hold.
//!
//! Growth takes one voter that lacks capacity; release takes every live voter. The views keep their
//! units to the end: what a role target hands to an optimizer is one claim for each voter, with the
//! capacities that this voter sees.

mod balance;
mod band;
mod claim;
mod liveness;
mod participation;
mod role_target;
mod voter;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::capacity::{AnalyzerName, ServingRole};
use super::key::VariantKey;
use super::reason::{Awaited, BlockReason, CapacitySource, ViewGap};
use super::units::{Cost, Replicas};

pub use balance::Balance;
pub use band::analyzer_band;
pub use participation::lacks_saturation_vote;
pub use voter::VoterFigures;

pub(crate) use band::{Band, own_entry};
pub(crate) use claim::{CapacityClaim, VoteDirection, Weighed};
#[cfg(test)]
pub(crate) use claim::{Vote, combine_votes};
pub(crate) use liveness::{AnalyzerLog, AskedLog, Liveness};
pub(crate) use participation::{Participation, participation};
pub(crate) use role_target::RoleTarget;
pub(crate) use voter::AnalyzerResult;

/// What the analyzers agreed on for one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consensus {
    /// Who sizes the model.
    pub anchor: CapacitySource,
    /// Every voter's view.
    pub voters: Vec<VoterFigures>,
    /// The outcome by role.
    pub roles: BTreeMap<ServingRole, RoleTarget>,
}

impl Consensus {
    /// Notes that a voter vetoes the release of a role because it waits, and at which measured balance,
    /// where that is known.
    pub(crate) fn name_wait(
        &mut self,
        role: ServingRole,
        analyzer: AnalyzerName,
        awaits: Awaited,
        measured: Option<&Balance>,
    ) {
        let is_its = |hold: &BlockReason| matches!(hold, BlockReason::Vetoed { analyzer: by, .. } if *by == analyzer);
        if let Some(RoleTarget::Hold(hold)) = self.roles.get_mut(&role)
            && is_its(hold)
        {
            *hold = BlockReason::Waiting {
                analyzer,
                awaits,
                utilization: measured
                    .filter(|measured| measured.supply > 0.0)
                    .map(|measured| measured.demand / measured.supply),
            };
        }
    }

    /// Adds to every voter that is waited for what keeps it from a result.
    pub(crate) fn name_gaps(&mut self, gap_of: impl Fn(AnalyzerName) -> ViewGap) {
        for role_target in self.roles.values_mut() {
            if let RoleTarget::Hold(BlockReason::Awaited { analyzer, gap }) = role_target {
                *gap = gap_of(*analyzer);
            }
        }
    }

    /// Notes the replicas behind scheduling gates of every role: they are among those on their way.
    pub(crate) fn name_gated(&mut self, roles: &BTreeMap<ServingRole, Replicas>) {
        for (role, role_target) in &mut self.roles {
            if let RoleTarget::Hold(BlockReason::Vetoed { anticipated: Some(_), gated, .. }) =
                role_target
            {
                *gated = roles.contains_key(role);
            }
        }
    }

    /// Keeps every role from shrinking, since `role` serves and no analyzer could judge it.
    pub(crate) fn hold_partners_of(&mut self, role: ServingRole) {
        for role_target in self.roles.values_mut() {
            if matches!(role_target, RoleTarget::Release(_)) {
                *role_target = RoleTarget::Hold(BlockReason::Unjudged { role });
            }
        }
    }
}

/// Combines the seats of one model. `costs` names its variants; a variant that it does not name
/// cannot be scaled and supplies capacity only.
pub(crate) fn combine(results: &[AnalyzerResult], costs: &BTreeMap<VariantKey, Cost>) -> Consensus {
    let anchor = choose(results);
    let views: Vec<voter::View<'_>> = results
        .iter()
        .filter(|result| result.participation == Participation::Votes)
        .map(voter::View::of)
        .collect();
    let mut roles = BTreeMap::new();
    for view in &views {
        for role in view.roles.keys() {
            roles
                .entry(*role)
                .or_insert_with(|| role_target::decide(*role, &anchor, &views, costs));
        }
    }
    Consensus { anchor, voters: views.into_iter().map(voter::View::figures).collect(), roles }
}

/// Saturation where it votes, is live and says something; else the SLO analyzer, likewise; else the only other voter
/// that does.
fn choose(results: &[AnalyzerResult]) -> CapacitySource {
    let candidates: Vec<AnalyzerName> = results
        .iter()
        .filter(|result| {
            result.participation == Participation::Votes
                && result.liveness == Liveness::Live
                && result
                    .assessment
                    .as_ref()
                    .is_some_and(|assessment| !assessment.variants.is_empty())
        })
        .map(|result| result.analyzer)
        .collect();
    match candidates.as_slice() {
        [] => CapacitySource::NoVoter,
        several if several.contains(&AnalyzerName::Saturation) => {
            CapacitySource::Sized { by: AnalyzerName::Saturation }
        }
        several if several.contains(&AnalyzerName::Slo) => {
            CapacitySource::Sized { by: AnalyzerName::Slo }
        }
        [only] => CapacitySource::Sized { by: *only },
        _ => CapacitySource::Ambiguous { candidates },
    }
}
