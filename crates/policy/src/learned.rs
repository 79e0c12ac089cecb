//! What is remembered from one collection to the next. Every replica learns, so that a new leader
//! knows what the old one knew.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::backlog::{Backlogs, RouterBacklogs};
use super::combine::{AnalyzerLog, AskedLog};
use super::key::VariantKey;
use super::queueing::learned::LearnedParameters;
use super::scale_down_memory::ScaleDownMemory;
use super::slo::LearnedSlo;
use super::startup::StartTimes;
use super::throughput::LearnedThroughput;
use super::tokens::LearnedTokens;
use super::units::Replicas;
use super::zero::{ActivityLog, WakeLog};
use wva_base::moment::Since;

/// Version of the layout of [`Learned`]; stored snapshots of another version are refused.
pub const LEARNED_VERSION: u32 = 2;

/// The layout of stored state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LearnedVersion(u32);

impl Default for LearnedVersion {
    fn default() -> Self {
        Self(LEARNED_VERSION)
    }
}

/// Learned state of the whole fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Layout version, see [`LEARNED_VERSION`].
    pub version: LearnedVersion,
    /// When the collection ended that was taken in last, on the clock of the process. One
    /// collection teaches once, however often it is looked at.
    #[serde(default)]
    pub collected: Option<Duration>,
    /// Whether the replicas of each variant report. A variant without an entry has not been seen by
    /// a collection of this process.
    #[serde(default)]
    pub reporting: BTreeMap<VariantKey, Reporting>,
    /// What engines can hold.
    #[serde(default)]
    pub tokens: LearnedTokens,
    /// Service times of replicas.
    #[serde(default)]
    pub queueing: LearnedParameters,
    /// Latency lines and rates of engines, and how long each role has wanted the same.
    #[serde(default)]
    pub throughput: LearnedThroughput,
    /// Requests, needs and latency curves.
    #[serde(default, skip_serializing_if = "LearnedSlo::is_empty")]
    pub slo: LearnedSlo,
    /// How long replicas take to be ready.
    #[serde(default)]
    pub starts: StartTimes,
    /// When each analyzer was last informative.
    #[serde(default)]
    pub analyzers: AnalyzerLog,
    /// When each was first asked.
    #[serde(default)]
    pub asked: AskedLog,
    /// Releases that did not last.
    #[serde(default)]
    pub relapses: ScaleDownMemory,
    /// Since when requests wait for each model.
    #[serde(default)]
    pub backlogs: Backlogs,
    /// Since when they wait in its router, and do not become fewer.
    #[serde(default, skip_serializing_if = "RouterBacklogs::is_empty")]
    pub router_backlogs: RouterBacklogs,
    /// When each model was last in use.
    #[serde(default)]
    pub activity: ActivityLog,
    /// Variants that were to have no replicas.
    #[serde(default)]
    pub at_zero: BTreeSet<VariantKey>,
    /// Variants that were started from zero recently.
    #[serde(default)]
    pub wakes: WakeLog,
}

/// Whether as many replicas report as the target has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reporting {
    /// They do.
    Complete,
    /// Fewer or more do.
    Silent {
        /// Since when. Starts anew when replicas are added: those deserve the whole limit.
        since: Since,
        /// Replicas that the target had at the last collection.
        current: Replicas,
    },
}
