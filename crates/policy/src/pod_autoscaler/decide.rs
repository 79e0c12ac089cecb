//! One decision: from an object, its target, samples and what is remembered, to a count and every step that
//! led to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::amounts::PodsPerReplica;
use super::check::{AutoscalerPolicy, ScalingStrategy};
use super::demand::{AutoscaledPod, SourceReading};
use super::draft::Draft;
use super::forecast::{Forecast, ForecastMode};
use super::hpa::GeneratedHpa;
use super::reason::{AutoscalerReason, AutoscalerStep};
use super::schedule::EffectiveBounds;
use super::state::AutoscalerState;
use crate::signal::Signal;
use crate::units::Replicas;
use wva_base::moment::Moment;

/// What is seen of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoscalerView {
    /// Replicas that the target states.
    pub current: Replicas,
    /// Pods behind each of them.
    pub pods_per_replica: PodsPerReplica,
    /// Its pods, without those that ended.
    pub pods: BTreeMap<Arc<str>, AutoscaledPod>,
    /// What each source reports, in the order of the specification.
    pub readings: Vec<SourceReading>,
    /// Requests that wait in the routers of its model; `None` where none is known to be in front of it.
    pub held: Option<Signal>,
}

wva_base::named! {
    /// How a decision was made.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AutoscalerAlgorithm {
        /// By bounds alone.
        BoundaryCheck = "boundary-check",
        /// KPA.
        Kpa = "kpa",
        /// APA.
        Apa = "apa",
        /// A generated object decides.
        Hpa = "hpa",
    }
}

/// Whether a decision was possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoscalerOutcome {
    /// It was.
    Decided,
    /// No source has a demand: the count is held, and the reason is `FailedComputeScale`.
    FailedComputeScale,
}

/// One decision.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoscalerDecision {
    /// Replicas before.
    pub current: Replicas,
    /// Replicas wanted.
    pub desired: Replicas,
    /// Whether it was possible.
    pub outcome: AutoscalerOutcome,
    /// How it was made.
    pub algorithm: AutoscalerAlgorithm,
    /// The bounds in force.
    pub bounds: EffectiveBounds,
    /// When they change next.
    pub next_boundary: Option<Timestamp>,
    /// What a forecast of mode `Auto` would decide; `None` without a forecast.
    pub would_be: Option<Replicas>,
    /// Every step.
    pub steps: Vec<AutoscalerStep>,
    /// The generated object of the strategy `HPA`.
    pub hpa: Option<GeneratedHpa>,
}

impl AutoscalerDecision {
    /// Whether the target is to be written.
    pub fn should_scale(&self) -> bool {
        self.desired != self.current
    }

    /// The reason as gauge and history hold it.
    pub fn reason(&self) -> String {
        let Self { current, desired, algorithm, .. } = self;
        let last = self.steps.last().map(|step| &step.why);
        let is_below = matches!(last, Some(AutoscalerReason::BelowMinimum { .. }));
        match (self.outcome, algorithm) {
            (AutoscalerOutcome::FailedComputeScale, _) => "FailedComputeScale".to_owned(),
            (_, AutoscalerAlgorithm::BoundaryCheck) if desired < current => {
                "current replicas exceed maximum".to_owned()
            }
            (_, AutoscalerAlgorithm::BoundaryCheck) if is_below => {
                "current replicas below minimum".to_owned()
            }
            (_, AutoscalerAlgorithm::BoundaryCheck | AutoscalerAlgorithm::Hpa) => {
                last.map(ToString::to_string).unwrap_or_default()
            }
            _ if desired > current => format!("{} above target", algorithm.as_str()),
            _ if desired < current => "All metrics below target".to_owned(),
            _ => "stable".to_owned(),
        }
    }
}

/// Decides on one target. The second part is what is to be remembered.
pub fn decide(
    policy: &AutoscalerPolicy,
    view: &AutoscalerView,
    state: &AutoscalerState,
    now: Moment,
) -> (AutoscalerDecision, AutoscalerState) {
    let at = Timestamp::from_millisecond(now.wall.0).unwrap_or_default();
    let bounds = policy.bounds(at);
    let schedules = policy.schedules.as_ref();
    let mut draft = Draft {
        policy,
        view,
        now,
        state: state.clone(),
        count: view.current,
        steps: Vec::new(),
        bounds,
    };
    let (algorithm, outcome) = draft.decide();
    let decision = AutoscalerDecision {
        current: view.current,
        desired: draft.count,
        outcome,
        algorithm,
        would_be: would_be(policy, view, state, now, draft.count),
        next_boundary: schedules.and_then(|schedules| schedules.next_boundary(at)),
        hpa: (policy.strategy == ScalingStrategy::Hpa)
            .then(|| GeneratedHpa::of(policy, draft.bounds.bounds)),
        bounds: draft.bounds,
        steps: draft.steps,
    };
    (decision, draft.state)
}

/// What would be decided if the forecast might raise the count. `decided` is what was.
fn would_be(
    policy: &AutoscalerPolicy,
    view: &AutoscalerView,
    state: &AutoscalerState,
    now: Moment,
    decided: Replicas,
) -> Option<Replicas> {
    let forecast = policy.forecast.filter(|_| policy.strategy != ScalingStrategy::Hpa)?;
    if forecast.mode == ForecastMode::Auto {
        return Some(decided);
    }
    let mut acting = policy.clone();
    acting.forecast = Some(Forecast { mode: ForecastMode::Auto, ..forecast });
    Some(decide(&acting, view, state, now).0.desired)
}
