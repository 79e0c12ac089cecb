//! Why an autoscaler decided what it did, with the numbers that it compared.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::amounts::DemandRange;
use super::demand::{PodCounts, SourceGap};
use super::schedule::ReplicaBounds;
use crate::units::Replicas;
use wva_base::duration::format_duration;

wva_base::named! {
    /// A part of the decision.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AutoscalerStage {
        /// The bounds in force.
        Schedule = "schedule",
        /// A count outside of the bounds, or at zero.
        BoundaryCheck = "boundary",
        /// One metric source.
        Metric = "metric",
        /// The demand that is expected of one source.
        Forecast = "forecast",
        /// A burst.
        Panic = "panic",
        /// The largest need of all sources.
        Combine = "combine",
        /// Whether a release rests on enough samples.
        Evidence = "evidence",
        /// Recommendations over time.
        Stabilise = "stabilise",
        /// The size of one step.
        RateLimit = "rate-limit",
        /// The last replica.
        Zero = "zero",
        /// The bounds.
        Bounds = "bounds",
        /// The generated object.
        Hpa = "hpa",
    }
}

/// What one part did to the count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutoscalerStep {
    /// The part.
    pub stage: AutoscalerStage,
    /// The count before; of a metric, the current one.
    pub from: Replicas,
    /// The count after; of a metric, what it needs.
    pub to: Replicas,
    /// Why.
    pub why: AutoscalerReason,
}

/// Figures of one metric source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceFigures {
    /// The source.
    pub source: Arc<str>,
    /// What one replica is to carry.
    pub target: f64,
    /// The demand of all replicas now.
    pub now: DemandRange,
    /// Its mean over the long window.
    pub stable: DemandRange,
    /// Its mean over the short window.
    pub panic: DemandRange,
    /// The pods behind it; `None` of a total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodCounts>,
    /// Whether it is a total that is no longer fresh.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_old: bool,
    /// Whether demand lies within the tolerances.
    pub tolerated: bool,
}

/// Why a part did what it did: in JSON a code with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code")]
pub enum AutoscalerReason {
    /// No schedule is active.
    BaseBounds {
        /// The bounds.
        bounds: ReplicaBounds,
    },
    /// A schedule is active.
    ScheduleActive {
        /// Its name.
        name: Arc<str>,
        /// The bounds.
        bounds: ReplicaBounds,
    },
    /// A person scaled the target to zero, and no schedule states a minimum.
    DisabledAtZero,
    /// The current count exceeds the maximum.
    AboveMaximum {
        /// The maximum.
        max: Replicas,
    },
    /// The current count is below the minimum.
    BelowMinimum {
        /// The minimum.
        min: Replicas,
    },
    /// A source has a demand.
    Measured {
        /// Its figures.
        figures: Box<SourceFigures>,
    },
    /// A source has none.
    Unmeasured {
        /// The source.
        source: Arc<str>,
        /// Why.
        why: SourceGap,
    },
    /// What a source is expected to have.
    Forecast {
        /// The source.
        source: Arc<str>,
        /// The demand of all replicas.
        demand: f64,
        /// What it needs alone.
        replicas: Replicas,
        /// How far ahead.
        horizon: Duration,
        /// Whether it may raise the count.
        acts: bool,
    },
    /// A generated object forecasts nothing.
    ForecastWithoutEffect,
    /// A burst began or goes on.
    Panic {
        /// The largest count since it began.
        peak: Replicas,
        /// Time since it began.
        lasting: Duration,
        /// Time until it ends, unless the threshold is exceeded again.
        left: Duration,
    },
    /// A burst ended.
    PanicEnded,
    /// The source with the largest need.
    LargestNeed {
        /// It.
        source: Arc<str>,
    },
    /// No source has a demand.
    NothingMeasured,
    /// A release waits for a source without a demand.
    ReleaseNeedsSource {
        /// The source.
        source: Arc<str>,
    },
    /// A release waits for samples of more pods.
    ReleaseNeedsCoverage {
        /// The source.
        source: Arc<str>,
    },
    /// A release waits for a fresh total.
    ReleaseNeedsFreshTotal {
        /// The source.
        source: Arc<str>,
    },
    /// A release waits until demand was seen for a whole window.
    ReleaseNeedsHistory {
        /// The source.
        source: Arc<str>,
        /// Time that it was seen.
        seen: Duration,
        /// Length of the window.
        needed: Duration,
    },
    /// A smaller recommendation of the window holds growth back.
    GrowthStabilised {
        /// The window.
        window: Duration,
    },
    /// A larger recommendation of the window holds a release back.
    ReleaseStabilised {
        /// The window.
        window: Duration,
    },
    /// One step leads no further.
    RateLimited {
        /// The factor or the divisor.
        rate: f64,
    },
    /// Load alone does not lead to zero.
    ZeroNotEnabled,
    /// No source has a demand without pods, and no router is known.
    ZeroNeedsTotal,
    /// The routers hold requests, or do not report.
    ZeroNeedsRouter,
    /// Requests wait in routers while nothing serves.
    RequestsHeld {
        /// How many.
        requests: f64,
    },
    /// The target was not idle for long enough.
    ZeroNeedsIdle {
        /// Time that it is idle.
        idle: Duration,
        /// Time that is needed.
        needed: Duration,
    },
    /// Cut to the maximum.
    CutToMaximum {
        /// The maximum.
        max: Replicas,
    },
    /// Raised to the minimum.
    RaisedToMinimum {
        /// The minimum.
        min: Replicas,
    },
    /// Nothing to do.
    WithinBounds {
        /// The bounds.
        bounds: ReplicaBounds,
    },
    /// A generated object decides.
    Delegated {
        /// Its name.
        hpa: Arc<str>,
    },
}

/// An amount with at most three decimals.
pub(super) fn amount(amount: f64) -> f64 {
    (amount * 1000.0).round() / 1000.0
}

fn range(range: DemandRange) -> String {
    let (low, high) = (amount(range.low), amount(range.high));
    if high > low {
        format!("{low} to {high}")
    } else {
        low.to_string()
    }
}

impl fmt::Display for SourceFigures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: {} now, {} in the short window, {} in the long one, at {} a replica",
            self.source,
            range(self.now),
            range(self.panic),
            range(self.stable),
            self.target
        )?;
        if let Some(pods) = self.pods {
            write!(formatter, " ({pods})")?;
        }
        if self.tolerated {
            formatter.write_str(": within tolerance")?;
        }
        Ok(())
    }
}

impl AutoscalerReason {
    fn fmt_pace(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |length: &Duration| format_duration(*length);
        match self {
            Self::ReleaseNeedsSource { source } => {
                write!(
                    formatter,
                    "a release needs every source: {source} has no demand"
                )
            }
            Self::ReleaseNeedsCoverage { source } => write!(
                formatter,
                "a release needs fresh samples of half of the serving pods: {source} has fewer"
            ),
            Self::ReleaseNeedsFreshTotal { source } => {
                write!(formatter, "a release needs a fresh total: {source} is old")
            }
            Self::ReleaseNeedsHistory {
                source,
                seen,
                needed,
            } => write!(
                formatter,
                "not enough history for a release: {source} was seen for {} of {}",
                time(seen),
                time(needed)
            ),
            Self::GrowthStabilised { window } => {
                write!(formatter, "the smallest recommendation of {}", time(window))
            }
            Self::ReleaseStabilised { window } => {
                write!(formatter, "the largest recommendation of {}", time(window))
            }
            Self::RateLimited { rate } => write!(formatter, "one step changes by at most {rate}"),
            Self::ZeroNotEnabled => {
                formatter.write_str("scale-to-zero is not true: one replica stays")
            }
            Self::ZeroNeedsTotal => formatter
                .write_str("nothing could wake it: add an external source, or an InferencePool and the label model.aibrix.ai/name; one replica stays"),
            Self::ZeroNeedsRouter => formatter.write_str(
                "its routers hold requests, or are not read: one replica stays",
            ),
            Self::RequestsHeld { requests } => write!(
                formatter,
                "requests in its routers: {}",
                amount(*requests)
            ),
            Self::ZeroNeedsIdle { idle, needed } => write!(
                formatter,
                "idle for {} of {}: one replica stays",
                time(idle),
                time(needed)
            ),
            Self::CutToMaximum { max } => write!(formatter, "cut to the maximum of {max}"),
            Self::RaisedToMinimum { min } => write!(formatter, "raised to the minimum of {min}"),
            Self::WithinBounds { bounds } => {
                write!(formatter, "within bounds: {} to {}", bounds.min, bounds.max)
            }
            Self::Delegated { hpa } => write!(formatter, "HorizontalPodAutoscaler {hpa} decides"),
            // The others hold nothing back.
            _ => Ok(()),
        }
    }
}

impl fmt::Display for AutoscalerReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |length: &Duration| format_duration(*length);
        match self {
            Self::BaseBounds { bounds } => {
                write!(
                    formatter,
                    "no schedule is active: {} to {}",
                    bounds.min, bounds.max
                )
            }
            Self::ScheduleActive { name, bounds } => {
                write!(
                    formatter,
                    "schedule {name}: {} to {}",
                    bounds.min, bounds.max
                )
            }
            Self::DisabledAtZero => formatter.write_str("scaling disabled: current replicas is 0"),
            Self::AboveMaximum { max } => {
                write!(formatter, "current replicas exceed maximum {max}")
            }
            Self::BelowMinimum { min } => {
                write!(formatter, "current replicas below minimum {min}")
            }
            Self::Measured { figures } => figures.fmt(formatter),
            Self::Unmeasured { source, why } => write!(formatter, "{source}: {why}"),
            Self::Forecast {
                source,
                demand,
                horizon,
                acts,
                ..
            } => write!(
                formatter,
                "{source}: {} expected in {}{}",
                amount(*demand),
                time(horizon),
                if *acts { "" } else { ", mode Preview" }
            ),
            Self::ForecastWithoutEffect => {
                formatter.write_str("spec.predictive has no effect with strategy HPA; remove it")
            }
            Self::Panic {
                peak,
                lasting,
                left,
            } => write!(
                formatter,
                "in panic for {}: at least {peak} for {} more",
                time(lasting),
                time(left)
            ),
            Self::PanicEnded => formatter.write_str("panic ended: one long window below threshold"),
            Self::LargestNeed { source } => write!(formatter, "{source} needs most"),
            Self::NothingMeasured => {
                formatter.write_str("no source has a demand: the current count is held")
            }
            other => other.fmt_pace(formatter),
        }
    }
}
