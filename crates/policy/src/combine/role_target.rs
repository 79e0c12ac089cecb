//! What a role must gain, may lose, or why it stays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::claim::{VoteDirection, Weighed, weigh};
use super::liveness::Liveness;
use super::voter::View;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::key::VariantKey;
use crate::reason::{BlockReason, CapacitySource, ViewGap};
use crate::units::Cost;

/// What an optimizer is asked to do with one role of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RoleTarget {
    /// Add capacity until every claim is met.
    Grow(Weighed),
    /// Take capacity away while every claim, of live voters, leaves it.
    Release(Weighed),
    Hold(BlockReason),
}

impl BlockReason {
    /// The hold of a voter whose liveness is not known yet; `None` for others.
    pub fn undetermined(analyzer: AnalyzerName, liveness: Liveness) -> Option<Self> {
        match liveness {
            Liveness::Undetermined { asked_for, limit } => {
                Some(Self::Undetermined { analyzer, asked_for, limit })
            }
            Liveness::Live | Liveness::Silent => None,
        }
    }
}

/// Up on any voter, down on all live ones.
pub(super) fn decide(
    role: ServingRole,
    anchor: &CapacitySource,
    views: &[View<'_>],
    costs: &BTreeMap<VariantKey, Cost>,
) -> RoleTarget {
    if !matches!(anchor, CapacitySource::Sized { .. }) {
        return RoleTarget::Hold(BlockReason::Unsized { anchor: anchor.clone() });
    }
    let all: Vec<&View<'_>> = views.iter().collect();
    let is_short =
        |view: &&View<'_>| view.roles.get(&role).is_some_and(|balance| balance.required > 0.0);
    if all.iter().any(is_short) {
        return RoleTarget::Grow(weigh(VoteDirection::Up, role, &all, costs));
    }
    let undetermined =
        |view: &&View<'_>| BlockReason::undetermined(view.result.analyzer, view.result.liveness);
    if let Some(hold) = all.iter().find_map(undetermined) {
        return RoleTarget::Hold(hold);
    }
    let live: Vec<&View<'_>> =
        all.into_iter().filter(|view| view.result.liveness == Liveness::Live).collect();
    if let Some(hold) = obstacle(role, &live) {
        return RoleTarget::Hold(hold);
    }
    RoleTarget::Release(weigh(VoteDirection::Down, role, &live, costs))
}

fn obstacle(role: ServingRole, live: &[&View<'_>]) -> Option<BlockReason> {
    if live.is_empty() {
        return Some(BlockReason::NoLiveVoter);
    }
    if let Some(view) = live.iter().find(|view| view.result.assessment.is_none()) {
        return Some(BlockReason::Awaited {
            analyzer: view.result.analyzer,
            gap: ViewGap::default(),
        });
    }
    let mut has_view = false;
    for view in live {
        if let Some(balance) = view.roles.get(&role) {
            has_view = true;
            if balance.spare <= 0.0 {
                let lacks = balance.demand > balance.supply * view.result.band.scale_up;
                let is_covered = lacks && balance.anticipated > balance.supply;
                return Some(BlockReason::Vetoed {
                    analyzer: view.result.analyzer,
                    utilization: (balance.supply > 0.0).then(|| balance.demand / balance.supply),
                    anticipated: is_covered.then(|| balance.demand / balance.anticipated),
                    gated: false,
                });
            }
        }
    }
    (!has_view).then_some(BlockReason::NoView)
}
