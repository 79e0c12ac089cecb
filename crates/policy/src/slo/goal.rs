//! The latency objectives that a model is sized for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::params::{LatencyGoal, LatencyTargets};

/// Objectives of a model of which no service class and no entry names any. Source: the targets that
/// published comparisons of autoscalers for chat models use most.
const DEFAULT_TARGETS: LatencyTargets = LatencyTargets {
    time_to_first_token: Duration::from_secs(2),
    inter_token_latency: Duration::from_millis(50),
};

/// Latency objectives in seconds, and where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SloGoal {
    /// Longest time to the first token.
    pub time_to_first_token: f64,
    /// Longest mean time between tokens.
    pub inter_token_latency: f64,
    /// Where both come from.
    pub source: GoalSource,
}

wva_base::named! {
    /// Where objectives come from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum GoalSource {
        /// The model's entry of the queueing-model ConfigMap.
        Entry = "of the model's entry",
        /// A service class.
        Class = "of its service class",
        /// The built-in objectives.
        Default = "built in",
    }
}

impl SloGoal {
    fn of(targets: LatencyTargets, source: GoalSource) -> Self {
        Self {
            time_to_first_token: targets.time_to_first_token.as_secs_f64(),
            inter_token_latency: targets.inter_token_latency.as_secs_f64(),
            source,
        }
    }
}

impl Default for SloGoal {
    fn default() -> Self {
        Self::of(DEFAULT_TARGETS, GoalSource::Default)
    }
}

impl From<LatencyGoal<'_>> for SloGoal {
    fn from(goal: LatencyGoal<'_>) -> Self {
        match goal {
            LatencyGoal::Explicit(targets) => Self::of(targets, GoalSource::Entry),
            LatencyGoal::Class { targets, .. } => Self::of(targets, GoalSource::Class),
            LatencyGoal::Inferred { .. } => Self::default(),
        }
    }
}
