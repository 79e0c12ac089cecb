//! Why a role stays as it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::gap::{MissingInput, ViewGap};
use crate::capacity::{AnalyzerName, ServingRole};
use wva_base::text::listed;

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

/// The analyzer that sizes a model, or why none can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CapacitySource {
    /// Saturation where it votes, else the SLO analyzer, else the one other voter.
    Sized {
        /// The analyzer.
        by: AnalyzerName,
    },
    /// No voter is live and informative: there is nothing to size with.
    #[serde(rename = "Nobody")]
    NoVoter,
    /// Several voters besides these two are, and none of them comes first.
    Ambiguous {
        /// These.
        candidates: Vec<AnalyzerName>,
    },
}
