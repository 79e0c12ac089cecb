//! Reasons in words, with their numbers.

use std::fmt;

use super::{Abstention, MissingSignal, Reason, listed};
use crate::capacity::ServingRole;
use crate::router_queue::QueueSource;
use crate::zero::{WakeCause, wake_refused};

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LastDesired => f.write_str("starts from the count published last"),
            Self::CurrentReplicas => f.write_str("starts from what exists: none was published yet"),
            Self::Grown { trigger } => write!(f, "{trigger}: the cheapest eligible variant grows"),
            Self::GrownElsewhere { chosen } => {
                write!(f, "spare capacity is low: {chosen} grows instead")
            }
            Self::GrowthWaits { landed, ago } => write!(
                f,
                "spare capacity is low by peaks that reach back before the last start: a replica of {landed} is ready for {}s",
                ago.as_secs()
            ),
            Self::AtMaximum { max } => write!(f, "spare capacity is low, but the maximum is {max}"),
            Self::Shrunk { left } => write!(f, "the dearest variant shrinks, which leaves {left}"),
            Self::ShrunkElsewhere { chosen } => {
                write!(f, "capacity to spare: {chosen} shrinks instead")
            }
            Self::AwaitsScaler { published, current } => write!(
                f,
                "{published} replicas would be enough, and nothing scales the {current} that exist"
            ),
            Self::AtFloor { floor } => write!(f, "capacity to spare, but the floor is {floor}"),
            Self::Steady { spare } => write!(f, "capacity is in balance: {spare}"),
            Self::NoReplicas => f.write_str("no replicas, nothing to measure"),
            Self::InTransition { causes } => {
                f.write_str("in transition, keeps its own target: ")?;
                listed(f, causes)
            }
            Self::TransitionExpired { causes } => {
                f.write_str("limit reached, no longer held back: ")?;
                listed(f, causes)
            }
            Self::NoUsableMetrics { state, queue: None } => {
                write!(f, "{state}: nothing is lowered")
            }
            Self::NoUsableMetrics {
                state,
                queue: Some(queue),
            } => write!(f, "{state}: its count stays; {queue}"),
            Self::ShrinkWaits { .. }
            | Self::ShrinkOnStale { .. }
            | Self::ShrinkOnStaleRouter
            | Self::ShrinkOnPartial { .. }
            | Self::ShrinkOnSilent { .. } => self.fmt_shrink_obstacle(f),
            Self::RaisedToMinimum { .. }
            | Self::CutToMaximum { .. }
            | Self::CutToCeiling { .. }
            | Self::BoundsConflict { .. }
            | Self::WithinBounds { .. } => self.fmt_bounds(f),
            other => other.fmt_later_stages(f),
        }
    }
}

impl Reason {
    /// What keeps a model from shrinking by percentages.
    fn fmt_shrink_obstacle(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShrinkWaits { transitions } => {
                f.write_str("capacity to spare, but shrinking waits for ")?;
                listed(f, transitions)
            }
            Self::ShrinkOnStale { replicas } => {
                write!(
                    f,
                    "no shrinking on old samples: replicas concerned {replicas}"
                )
            }
            Self::ShrinkOnStaleRouter => f.write_str("no shrinking on old samples of the router"),
            Self::ShrinkOnPartial {
                without_kv,
                without_queue,
            } => {
                write!(
                    f,
                    "no shrinking on half reports: replicas without KV sample {without_kv}, "
                )?;
                write!(f, "without queue sample {without_queue}")
            }
            Self::ShrinkOnSilent { reporting, current } => {
                write!(
                    f,
                    "no shrinking while only {reporting} of {current} replicas report"
                )
            }
            _ => Ok(()),
        }
    }

    /// What bounds made of a count.
    fn fmt_bounds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RaisedToMinimum { min, source } => {
                write!(f, "raised to the minimum of {min} ({source})")
            }
            Self::CutToMaximum { max } => write!(f, "cut to the maximum of {max} (maxReplicas)"),
            Self::CutToCeiling { ceiling } => write!(
                f,
                "cut to {ceiling}, the most replicas that a scale subresource holds"
            ),
            Self::BoundsConflict { min, max } => write!(
                f,
                "minReplicas {min} is above maxReplicas {max}: the maximum holds"
            ),
            Self::WithinBounds { min, max: None } => write!(f, "within bounds: at least {min}"),
            Self::WithinBounds {
                min,
                max: Some(max),
            } => write!(f, "within bounds: {min} to {max}"),
            _ => Ok(()),
        }
    }

    /// What analyzers, limits and the boundary to zero said.
    fn fmt_later_stages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Optimized(why) => write!(f, "{why}"),
            Self::Shared(why) => write!(f, "{why}"),
            Self::Rescaled(why) => write!(f, "{why}"),
            Self::Withheld(why) => write!(f, "{why}"),
            Self::Limited(why) => write!(f, "{why}"),
            Self::MinimumAboveGpus { min, by } => {
                write!(f, "the minimum of {min} exceeds its GPUs")?;
                by.iter()
                    .try_for_each(|pool| write!(f, "; limited by {pool}"))
            }
            Self::HeldForStart { by } => {
                f.write_str("GPUs are held for starts from zero: ")?;
                listed(f, by)
            }
            Self::Relapsed {
                replicas,
                occupancy,
                now,
            } => {
                write!(
                    f,
                    "{replicas} replicas did not last when {occupancy:.2} KV caches were in use"
                )?;
                now.map_or(Ok(()), |now| write!(f, ", and {now:.2} are now"))
            }
            Self::ReleaseCancelled { published, current } => write!(
                f,
                "more is needed: the release from {current} to {published} is cancelled before it is applied"
            ),
            Self::Unserved { lasts, because } => write!(
                f,
                "requests have waited for {}s and nothing grows: {because}",
                lasts.as_secs()
            ),
            Self::Zero(why) => write!(f, "{why}"),
            Self::Woken {
                cause: WakeCause::MinimumOfOne,
                ..
            } => f.write_str(
                "Preserving minimum replica on cheapest variant (scale-to-zero disabled)",
            ),
            Self::Woken { cause, source } => {
                write!(f, "started from zero: {cause}")?;
                let is_said = *source == Some(QueueSource::Router);
                f.write_str(if is_said { ", as it says itself" } else { "" })
            }
            Self::WakeSignalFailed { why } => {
                write!(f, "nobody knows whether requests wait for it: {why}")
            }
            Self::NoView {
                role,
                missing,
                abstaining,
            } => no_view(f, *role, missing, abstaining),
            Self::WakeRefused {
                cause,
                obstacle,
                gpus,
                by,
            } => wake_refused(f, (*obstacle, *gpus, by), *cause),
            Self::Arbitrated { reason, .. } => f.write_str(reason),
            Self::TargetUnusable { problem } => write!(f, "{problem}"),
            _ => Ok(()),
        }
    }
}

fn no_view(
    f: &mut fmt::Formatter<'_>,
    role: ServingRole,
    missing: &[MissingSignal],
    abstaining: &[Abstention],
) -> fmt::Result {
    write!(f, "no analyzer has a view on role {role}")?;
    let mut separator = ": ";
    if !missing.is_empty() {
        f.write_str(", missing: ")?;
        listed(f, missing)?;
        separator = "; ";
    }
    for why in abstaining {
        write!(f, "{separator}{why}")?;
        separator = "; ";
    }
    Ok(())
}
