//! Why a variant is in transition.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::Replicas;

/// Why a variant is in transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TransitionReason {
    /// Replicas exist that are not ready, or the target's status lags behind its specification.
    Pending { since: Duration, current: Replicas, ready: Replicas },
    /// Replicas wait behind a scheduling gate: they are asked for, and no start has begun.
    Gated {
        /// How long the newest one does.
        since: Duration,
        gated: Replicas,
        current: Replicas,
    },
    /// The published count is not the current one.
    Unapplied { since: Duration, desired: Replicas, current: Replicas },
    /// Not every replica reports.
    Silent {
        since: Duration,
        /// Replicas with usable metrics.
        reporting: Replicas,
        current: Replicas,
    },
}

impl TransitionReason {
    /// The cause without its numbers.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pending { .. } => "replicas are not ready yet",
            Self::Gated { .. } => "replicas are gated",
            Self::Unapplied { .. } => "the published count is not applied yet",
            Self::Silent { .. } => "not every replica reports",
        }
    }

    pub(crate) fn is_overdue(&self) -> bool {
        matches!(self, Self::Pending { .. } | Self::Gated { .. })
    }
}

wva_base::display_of! { TransitionReason:
    Self::Pending { since, current, ready } if ready >= current =>
        "the status of the target has been older than its specification for {}s", since.as_secs();
    Self::Pending { since, current, ready } =>
        "pending for {}s ({ready} of {current} replicas ready)", since.as_secs();
    Self::Gated { since, gated, current } =>
        "gated for {}s (scheduling gates hold {gated} of {current} replicas)", since.as_secs();
    Self::Unapplied { since, desired, current } =>
        "not applied for {}s (desired({desired})!=current({current}))", since.as_secs();
    Self::Silent { since, reporting, current } =>
        "silent for {}s (metrics({reporting})!=current({current}))", since.as_secs();
}
