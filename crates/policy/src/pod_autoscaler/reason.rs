//! Why an autoscaler decided what it did, with the numbers that it compared.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::amounts::DemandRange;
use super::demand::{PodCounts, SourceGap};
use super::schedule::ReplicaBounds;
use crate::units::Replicas;
use wva_base::duration::format_duration;
use wva_base::text::number;

wva_base::named! {
    /// A part of the decision.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AutoscalerStage {
        /// The bounds in force.
        Schedule = "schedule",
        /// A count outside of the bounds, or at zero.
        BoundaryCheck = "boundary",
        Metric = "metric",
        Forecast = "forecast",
        /// A burst.
        Panic = "panic",
        /// The largest need of all sources.
        Combine = "combine",
        /// Whether a release rests on enough samples.
        Evidence = "evidence",
        /// Recommendations over time.
        Stabilise = "stabilise",
        RateLimit = "rate-limit",
        /// The last replica.
        Zero = "zero",
        Bounds = "bounds",
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceFigures {
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
    /// Whether the means would lower the count, and what is seen now keeps it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept_by_now: bool,
}

/// Why a part did what it did: in JSON a code with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code")]
pub enum AutoscalerReason {
    /// No schedule is active.
    BaseBounds { bounds: ReplicaBounds },
    /// A schedule is active.
    ScheduleActive { name: Arc<str>, bounds: ReplicaBounds },
    /// A person scaled the target to zero, and no schedule states a minimum.
    DisabledAtZero,
    /// The current count exceeds the maximum.
    AboveMaximum { max: Replicas },
    /// The current count is below the minimum.
    BelowMinimum { min: Replicas },
    /// A source has a demand.
    Measured { figures: Box<SourceFigures> },
    /// A source has none.
    Unmeasured { source: Arc<str>, why: SourceGap },
    /// What a source is expected to have.
    Forecast {
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
    LargestNeed { source: Arc<str> },
    /// No source has a demand.
    NothingMeasured,
    /// A release waits for a source without a demand.
    ReleaseNeedsSource { source: Arc<str> },
    /// A release waits for samples of more pods.
    ReleaseNeedsCoverage { source: Arc<str> },
    /// A release waits for a fresh total.
    ReleaseNeedsFreshTotal { source: Arc<str> },
    /// A release waits until demand was seen for a whole window.
    ReleaseNeedsHistory { source: Arc<str>, seen: Duration, needed: Duration },
    /// A smaller recommendation of the window holds growth back.
    GrowthStabilised { window: Duration },
    /// A larger recommendation of the window holds a release back.
    ReleaseStabilised { window: Duration },
    /// One step leads no further: the factor of a growth, the divisor of a release.
    RateLimited { rate: f64 },
    /// Load alone does not lead to zero.
    ZeroNotEnabled,
    /// No source has a demand without pods, and no router is known.
    ZeroNeedsTotal,
    /// The routers hold requests, or do not report.
    ZeroNeedsRouter,
    /// Requests wait in routers while nothing serves.
    RequestsHeld { requests: f64 },
    /// The target was not idle for long enough.
    ZeroNeedsIdle { idle: Duration, needed: Duration },
    /// Cut to the maximum.
    CutToMaximum { max: Replicas },
    /// Raised to the minimum.
    RaisedToMinimum { min: Replicas },
    /// Nothing to do.
    WithinBounds { bounds: ReplicaBounds },
    /// A generated object decides.
    Delegated { hpa: Arc<str> },
}

/// An amount with at most three decimals.
pub(super) fn amount(amount: f64) -> String {
    number((amount * 1000.0).round() / 1000.0)
}

fn range(range: DemandRange) -> String {
    let (low, high) = (amount(range.low), amount(range.high));
    if high == low { low } else { format!("{low} to {high}") }
}

wva_base::display_of! { SourceFigures:
    Self { source, target, now, stable, panic, pods, tolerated, kept_by_now, .. } =>
        "{source}: {} now, {} in the short window, {} in the long one, at {} a replica{}{}",
        range(*now),
        range(*panic),
        range(*stable),
        number(*target),
        pods.map(|pods| format!(" ({pods})")).unwrap_or_default(),
        match (tolerated, kept_by_now) {
            (true, _) => ": within tolerance",
            (_, true) => ": kept by what is seen now",
            _ => "",
        };
}

wva_base::display_of! { AutoscalerReason:
    Self::BaseBounds { bounds } => "no schedule is active: {bounds}";
    Self::ScheduleActive { name, bounds } => "schedule {name}: {bounds}";
    Self::DisabledAtZero => "scaling disabled: current replicas is 0";
    Self::AboveMaximum { max } => "current replicas exceed maximum {max}";
    Self::BelowMinimum { min } => "current replicas below minimum {min}";
    Self::Measured { figures } => "{figures}";
    Self::Unmeasured { source, why } => "{source}: {why}";
    Self::Forecast { source, demand, horizon, acts, .. } =>
        "{source}: {} expected in {}{}",
        amount(*demand),
        format_duration(*horizon),
        if *acts { "" } else { ", mode Preview" };
    Self::Panic { peak, lasting, left } =>
        "in panic for {}: at least {peak} for {} more", format_duration(*lasting), format_duration(*left);
    Self::PanicEnded => "panic ended: one long window below threshold";
    Self::LargestNeed { source } => "{source} needs most";
    Self::NothingMeasured => "no source has a demand: the current count is held";
    Self::ReleaseNeedsSource { source } => "a release needs every source: {source} has no demand";
    Self::ReleaseNeedsCoverage { source } =>
        "a release needs fresh samples of half of the serving pods: {source} has fewer";
    Self::ReleaseNeedsFreshTotal { source } => "a release needs a fresh total: {source} is old";
    Self::ReleaseNeedsHistory { source, seen, needed } =>
        "not enough history for a release: {source} was seen for {} of {}",
        format_duration(*seen),
        format_duration(*needed);
    Self::GrowthStabilised { window } => "the smallest recommendation of {}", format_duration(*window);
    Self::ReleaseStabilised { window } => "the largest recommendation of {}", format_duration(*window);
    Self::RateLimited { rate } => "one step changes by a factor of at most {rate}";
    Self::ZeroNotEnabled => "scale-to-zero is not true: one replica stays";
    Self::ZeroNeedsTotal =>
        "nothing could wake it: add an external source, or an InferencePool and the label model.aibrix.ai/name";
    Self::ZeroNeedsRouter => "its routers hold requests, or are not read: one replica stays";
    Self::RequestsHeld { requests } => "requests in its routers: {}", amount(*requests);
    Self::ZeroNeedsIdle { idle, needed } =>
        "idle for {} of {}: one replica stays", format_duration(*idle), format_duration(*needed);
    Self::CutToMaximum { max } => "cut to the maximum of {max}";
    Self::RaisedToMinimum { min } => "raised to the minimum of {min}";
    Self::WithinBounds { bounds } => "within bounds: {bounds}";
    Self::Delegated { hpa } => "HorizontalPodAutoscaler {hpa} decides";
}
