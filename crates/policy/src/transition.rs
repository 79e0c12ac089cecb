//! What keeps a variant from taking a step: replicas that are not ready, a published count that
//! is not applied, replicas that do not report. Each may hold it back for a limited time only.

use std::collections::BTreeMap;
use std::time::Duration;

use super::key::VariantKey;
use super::learned::Reporting;
use super::plan::VariantFigures;
use super::reason::TransitionReason;
use super::snapshot::{ResolvedTarget, VariantView};
use super::startup::GATED_FOR;
use super::units::Replicas;
use crate::params::TransitionLimits;
use wva_base::moment::{Moment, Since};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Transitions {
    /// Causes within their limits: the variant keeps its target.
    pub(super) holding: Vec<TransitionReason>,
    /// Causes beyond their limits: said, and without effect on growth.
    pub(super) expired: Vec<TransitionReason>,
    /// How many of its replicas report, limit or not.
    pub(super) coverage: Coverage,
}

/// How many replicas of a variant report. One that does not may be under load, so the silence of a replica that
/// serves never shrinks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Coverage {
    /// As many replicas report as exist.
    #[default]
    Complete,
    /// Fewer or more report than exist, but every ready one does: the others carry no load.
    ReadyOnly,
    /// A ready replica does not report.
    Incomplete,
}

impl Transitions {
    pub(super) fn of(
        view: &VariantView,
        target: &ResolvedTarget,
        figures: &VariantFigures,
        reporting: &BTreeMap<VariantKey, Reporting>,
        limits: &TransitionLimits,
        now: Moment,
    ) -> Self {
        let mut found = Self {
            coverage: Coverage::of(target, figures.ready, figures.reporting),
            ..Self::default()
        };
        let gated = view.gated();
        if target.is_starting(gated) {
            let cause = TransitionReason::Pending {
                since: elapsed(view.pending_since, now),
                current: target.current,
                ready: target.ready,
            };
            found.sort_in(cause, limits.pending);
        }
        if let Some((count, newest)) = gated {
            let cause = TransitionReason::Gated {
                since: now.wall.since(newest),
                gated: count,
                current: target.current,
            };
            found.sort_in(cause, GATED_FOR);
        }
        if let Some(desired) = view.desired.filter(|desired| !target.is_applied(*desired)) {
            let cause = TransitionReason::Unapplied {
                since: elapsed(view.unapplied_since, now),
                desired,
                current: target.current,
            };
            found.sort_in(cause, limits.unapplied);
        }
        if found.coverage != Coverage::Complete {
            let since = match reporting.get(&view.key) {
                Some(Reporting::Silent { since, .. }) => Some(*since),
                Some(Reporting::Complete) | None => None,
            };
            let cause = TransitionReason::Silent {
                since: elapsed(since, now),
                reporting: Replicas(figures.reporting),
                current: target.current,
            };
            // Replicas that are not ready report nothing: beyond their limit that holds no variant, either.
            let is_overdue = found.coverage == Coverage::ReadyOnly
                && figures.reporting < target.current.0
                && found.expired.iter().any(TransitionReason::is_overdue);
            if is_overdue {
                found.expired.push(cause);
            } else {
                found.sort_in(cause, limits.silent);
            }
        }
        found
    }

    /// The replicas behind scheduling gates, limit or not.
    pub(super) fn gated(&self) -> Option<TransitionReason> {
        let mut causes = self.holding.iter().chain(&self.expired);
        let is_gated = |cause: &&TransitionReason| matches!(cause, TransitionReason::Gated { .. });
        causes.find(is_gated).copied()
    }

    pub(super) fn holds(&self) -> bool {
        !self.holding.is_empty()
    }

    /// Whether no variant of the model may shrink because of this one.
    pub(super) fn hold_shrink_of_model(&self) -> bool {
        self.holds() || self.coverage == Coverage::Incomplete
    }

    /// Whether enough of the variant reports to shrink it. Replicas that have not been ready for longer
    /// than their limit carry no load, so what they do not report is not missing.
    pub(super) fn may_shrink(&self) -> bool {
        let are_fewer = |cause: &TransitionReason| matches!(cause, TransitionReason::Silent { reporting, current, .. } if reporting < current);
        match self.coverage {
            Coverage::Complete => true,
            Coverage::ReadyOnly => {
                self.expired.iter().any(TransitionReason::is_overdue)
                    && self.expired.iter().any(are_fewer)
            }
            Coverage::Incomplete => false,
        }
    }

    fn sort_in(&mut self, cause: TransitionReason, limit: Duration) {
        let (TransitionReason::Pending { since, .. }
        | TransitionReason::Gated { since, .. }
        | TransitionReason::Unapplied { since, .. }
        | TransitionReason::Silent { since, .. }) = cause;
        if since < limit {
            self.holding.push(cause);
        } else {
            self.expired.push(cause);
        }
    }
}

impl Coverage {
    /// Compares the replicas that report with those that exist and those that serve.
    pub(super) fn of(target: &ResolvedTarget, ready_pods: u32, reporting: u32) -> Self {
        let serving = ready_pods.max(target.ready.min(target.current).0);
        if reporting < serving {
            Self::Incomplete
        } else if reporting == target.current.0 {
            Self::Complete
        } else {
            Self::ReadyOnly
        }
    }
}

/// A state whose beginning was not noted is taken to begin now.
fn elapsed(since: Option<Since>, now: Moment) -> Duration {
    since.map_or(Duration::ZERO, |since| since.elapsed(now))
}
