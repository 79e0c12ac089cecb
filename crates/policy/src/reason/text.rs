//! Reasons in words, with their numbers.

use std::fmt;

use super::gap::write_gap;
use super::{Abstention, MissingInput, MissingSignal, Reason, ReleaseObstacle, listed};
use crate::capacity::{AnalyzerName, ServingRole};
use crate::optimize::WantedAmount;
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
            Self::Shrunk { left } => {
                write!(f, "the most expensive variant shrinks, which leaves {left}")
            }
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
            other => other.fmt_optimizer(f),
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

    /// What the optimizer made of the analyzers' votes.
    fn fmt_optimizer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScaledUp { method, required } => write!(
                f,
                "V2 scale-up (optimizer: {}, required: {})",
                method.as_str(),
                Amounts(required)
            ),
            Self::ScaledDown { method, releasable } => write!(
                f,
                "V2 scale-down (optimizer: {}, releasable: {})",
                method.as_str(),
                Amounts(releasable)
            ),
            Self::NotChosen { method } => write!(
                f,
                "V2 steady state (optimizer: {}): other variants meet the need",
                method.as_str()
            ),
            Self::Straggles { straggler } => write!(
                f,
                "a replica holds {} requests within the latency objectives, one of the other variants {}: {}",
                straggler.sequences,
                straggler.others,
                if straggler.is_replaced {
                    "those serve what is needed"
                } else {
                    "those grow first"
                }
            ),
            Self::Gated { cause } => write!(f, "{cause}"),
            Self::StartsStalled => {
                f.write_str("other variants grow first: its last replicas are late or gated")
            }
            Self::Ordered { standing } => write!(
                f,
                "more capacity is needed, and its {standing} replicas, published or its minimum, are \
                 counted on"
            ),
            Self::NeedAtMaximum { max } => {
                write!(f, "more capacity is needed, but the maximum is {max}")
            }
            Self::FedByPrefill { reached } => write!(
                f,
                "prefill is at its maximum and reaches {:.1}% of its need: decode follows",
                reached * 100.0
            ),
            Self::NotSized => f.write_str("no analyzer knows the capacity of one replica"),
            Self::NotReleased {
                releasable,
                obstacle,
            } => {
                write!(f, "V2 steady state: releasable: {}, ", Amounts(releasable))?;
                stays(f, obstacle, releasable.len() > 1)
            }
            Self::ModelGrows => f.write_str("another role of the model needs capacity"),
            Self::Held { hold } => write!(f, "V2 steady state: {hold}"),
            Self::NotMeasured {
                analyzer,
                by,
                missing,
                because,
            } => not_measured(f, (*analyzer, *by), missing, because),
            Self::LeftToSaturation => {
                f.write_str("the queueing model has no opinion to follow: saturation decides alone")
            }
            other => other.fmt_gpus(f),
        }
    }

    /// What GPUs and quotas allowed.
    fn fmt_gpus(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGrowing { target, current } => {
                write!(f, "no scale-up (target={target}, current={current})")
            }
            Self::Granted { gpus, added } => {
                write!(f, "allocated {gpus} GPUs for +{added} replicas")
            }
            Self::Limited {
                gpus, added, by, ..
            } => {
                write!(f, "limited: allocated {gpus} GPUs for +{added} replicas")?;
                limited_by(f, by)
            }
            Self::ShareLimited {
                gpus,
                added,
                wanted,
                by,
            } => {
                let unmet = wanted.saturating_sub(*added);
                write!(
                    f,
                    "limited: allocated {gpus} GPUs for +{added} replicas of +{wanted} wanted, +{unmet} \
                     unmet"
                )?;
                limited_by(f, by)
            }
            Self::BudgetUnknown {
                added,
                wanted,
                pools,
            } => {
                write!(f, "BudgetUnknown: +{added} of +{wanted} replicas")?;
                pools
                    .iter()
                    .try_for_each(|pool| write!(f, "; {pool} is not known"))
            }
            Self::GpusNotCounted(why) => write!(f, "{why}"),
            Self::CountedOn { standing } => write!(
                f,
                "its {standing} replicas, published or its minimum, are counted on"
            ),
            Self::ServedByOthers => f.write_str("other variants of its role meet the need"),
            Self::Reclaimed { held, share } => write!(
                f,
                "rescale: the role holds {held} GPUs, its share is {share}"
            ),
            Self::Filled { gpus, share } => write!(
                f,
                "rescale: takes {gpus} free GPUs towards a share of {share}"
            ),
            Self::ShareKept { held, share } => write!(
                f,
                "rescale: kept, the role holds {held} GPUs of a share of {share}"
            ),
            other => other.fmt_later_stages(f),
        }
    }

    /// What the stages after the optimizer made of a count.
    fn fmt_later_stages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Withheld(why) => write!(f, "{why}"),
            Self::MinimumAboveGpus { min, by } => {
                write!(f, "the minimum of {min} exceeds its GPUs")?;
                limited_by(f, by)
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
            Self::NoView {
                role,
                missing,
                abstaining,
            } => no_view(f, *role, missing, abstaining),
            Self::Arbitrated { reason, .. } => f.write_str(reason),
            Self::TargetUnusable { problem } => write!(f, "{problem}"),
            other => other.fmt_zero(f),
        }
    }

    /// What the boundary between no replicas and some made of a count.
    fn fmt_zero(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRequests { idle, retention } => write!(
                f,
                "No requests in retention period, scaling to zero (idle for {}s of {}s)",
                idle.as_secs(),
                retention.as_secs()
            ),
            Self::ZeroBlocked { block } => write!(f, "{block}"),
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
            Self::AwaitsDecode { decode } => {
                write!(f, "prefill starts once decode is ready: waits for {decode}")
            }
            Self::WakeSignalFailed { why } => {
                write!(f, "whether requests wait for it is not known: {why}")
            }
            Self::WakeRefused {
                cause,
                obstacle,
                gpus,
                by,
                claims,
            } => wake_refused(f, (*obstacle, *gpus, by), claims, *cause),
            _ => Ok(()),
        }
    }
}

fn limited_by(f: &mut fmt::Formatter<'_>, pools: &[impl fmt::Display]) -> fmt::Result {
    let mut pools = pools.iter();
    pools.try_for_each(|pool| write!(f, "; limited by {pool}"))
}

fn stays(f: &mut fmt::Formatter<'_>, obstacle: &ReleaseObstacle, has_several: bool) -> fmt::Result {
    match obstacle {
        ReleaseObstacle::Minimum(min) => write!(f, "but its minimum is {min}"),
        ReleaseObstacle::NoReplicas => f.write_str("but it has no replicas"),
        ReleaseObstacle::LastOfRole => f.write_str("but the last replica of its role stays"),
        ReleaseObstacle::TooLarge(supply) => {
            f.write_str("but one of its replicas supplies ")?;
            if has_several {
                write!(f, "{} ", supply.analyzer.as_str())?;
            }
            write_amount(f, supply.amount)
        }
        ReleaseObstacle::OthersFirst => f.write_str("and other variants go first"),
    }
}

/// One amount alone needs no name.
struct Amounts<'a>(&'a [WantedAmount]);

impl fmt::Display for Amounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0 {
            return write_amount(f, only.amount);
        }
        for (index, wanted) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} ", wanted.analyzer.as_str())?;
            write_amount(f, wanted.amount)?;
        }
        Ok(())
    }
}

/// Whole numbers from 1 on. Requests per second may be fewer.
fn write_amount(f: &mut fmt::Formatter<'_>, amount: f64) -> fmt::Result {
    let decimals = match amount.abs() {
        0.0 => 0,
        small if small < 0.095 => 4,
        small if small < 0.95 => 2,
        _ => 0,
    };
    write!(f, "{amount:.decimals$}")
}

fn no_view(
    f: &mut fmt::Formatter<'_>,
    role: ServingRole,
    missing: &[MissingSignal],
    abstaining: &[Abstention],
) -> fmt::Result {
    write!(f, "no analyzer has a view on role {role}")?;
    write_gap(f, missing, abstaining)
}

fn not_measured(
    f: &mut fmt::Formatter<'_>,
    (analyzer, by): (AnalyzerName, Option<AnalyzerName>),
    missing: &[MissingSignal],
    because: &Reason,
) -> fmt::Result {
    write!(f, "{} has not measured its replicas yet", analyzer.as_str())?;
    write_gap(f, missing, &[])?;
    match by {
        Some(by) => write!(f, "; {} decides: {because}", by.as_str()),
        None => write!(f, "; percentages decide: {because}"),
    }
}

impl fmt::Display for MissingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arguments => "arguments",
            Self::Signal(signal) => signal.as_str(),
        })
    }
}
