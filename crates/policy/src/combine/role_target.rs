//! What a role must gain, may lose, or why it stays.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::CapacitySource;
use super::balance::View;
use super::claim::{VoteDirection, Weighed, weigh};
use super::liveness::Liveness;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::key::VariantKey;
use crate::reason::{MissingInput, ViewGap};
use crate::units::Cost;
use wva_base::text::listed;

/// What an optimizer is asked to do with one role of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RoleTarget {
    /// Add capacity until every claim is met.
    Grow(Weighed),
    /// Take capacity away while every claim, of live voters, leaves it.
    Release(Weighed),
    Hold(BlockReason),
}

/// Why a role stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BlockReason {
    /// No voter lacks capacity, and this one has none to spare.
    Vetoed {
        analyzer: AnalyzerName,
        /// Its utilization, demand over supply; `None` without supply.
        utilization: Option<f64>,
        /// The same once the replicas on their way serve, where ready ones alone lack capacity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        anticipated: Option<f64>,
        /// Whether scheduling gates hold some of these replicas.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        gated: bool,
    },
    /// A voter wants something and waits: nothing is done on one look.
    Waiting {
        analyzer: AnalyzerName,
        awaits: Awaited,
        /// Its measured utilization, demand over supply; `None` without supply.
        utilization: Option<f64>,
    },
    /// No voter was informative recently: there is no basis to shrink on.
    #[serde(rename = "NobodyLive")]
    NoLiveVoter,
    /// A voter that was informative recently said nothing this cycle, and might have a veto.
    Awaited {
        analyzer: AnalyzerName,
        #[serde(default, skip_serializing_if = "ViewGap::is_empty")]
        gap: ViewGap,
    },
    /// A voter was never informative, and was first asked so lately that it may well be live.
    #[serde(rename = "Unheard")]
    Undetermined {
        analyzer: AnalyzerName,
        /// Time since it was first asked.
        asked_for: Duration,
        /// The longest of these times at which nothing is lowered.
        limit: Duration,
    },
    /// A voter could size nothing, since replicas that work do not report enough.
    Unlearned {
        analyzer: AnalyzerName,
        /// The first signal that is missing.
        signal: MissingInput,
    },
    /// Another role of the model serves and no analyzer could judge it: it might need what this one gives.
    Unjudged { role: ServingRole },
    /// No live voter has a view on the role.
    NoView,
    /// No analyzer can size the model.
    Unsized { anchor: CapacitySource },
}

wva_base::named! {
    shown
    /// What a voter waits for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Awaited {
        SecondCycle = "waits for a second cycle",
        WarmUp = "waits until its capacity is more than a first impression",
        Backlog = "releases nothing while requests wait",
        Objectives = "releases nothing while replicas are over the objectives",
        Horizon = "keeps what was found until needs were seen for the whole horizon",
        OtherNeeds = "does not repeat a release that was taken back",
        ShownLoad = "releases few at once, and waits until the rest show what they bear",
    }
}

wva_base::display_of! { BlockReason:
    Self::Vetoed { analyzer, utilization: Some(utilization), anticipated: Some(anticipated), gated } =>
        "{analyzer} sees nothing to spare at a utilization of {utilization:.3}, which replicas on their way{} lower to \
         {anticipated:.3}",
        if *gated { " or gated" } else { "" };
    Self::Vetoed { analyzer, utilization: Some(utilization), anticipated: None, .. } =>
        "{analyzer} sees nothing to spare at a utilization of {utilization:.3}";
    Self::Vetoed { analyzer, utilization: None, .. } => "{analyzer} sees no capacity to spare";
    Self::Unlearned { analyzer, signal } =>
        "{analyzer} sizes nothing, since replicas that work do not report {signal}: nothing is released by others";
    Self::Waiting { analyzer, awaits, utilization: Some(utilization) } =>
        "{analyzer} {awaits} at a utilization of {utilization:.3}";
    Self::Waiting { analyzer, awaits, utilization: None } => "{analyzer} {awaits}";
    Self::NoLiveVoter => "no analyzer was informative recently";
    Self::Awaited { analyzer, gap } => "{analyzer} said nothing this cycle{gap}";
    Self::Undetermined { analyzer, asked_for, limit } =>
        "{analyzer} has had no result since it was first asked {}s ago; nothing is lowered while that is {}s or less",
        asked_for.as_secs(),
        limit.as_secs();
    Self::Unjudged { role } => "role {role} serves and no analyzer could judge it this cycle";
    Self::NoView => "no analyzer has a view on the role";
    Self::Unsized { anchor: CapacitySource::Ambiguous { candidates } } =>
        "several analyzers could size the model ({}) and none comes first", listed(candidates);
    Self::Unsized { .. } => "no analyzer can size the model";
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
