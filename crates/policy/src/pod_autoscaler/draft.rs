//! A decision on its way: what sources need, then what evidence, time, steps and bounds leave of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::amounts::{DemandRange, TargetValue, exceeds};
use super::check::{AutoscalerPolicy, ScalingStrategy};
use super::decide::{AutoscalerAlgorithm as Algorithm, AutoscalerOutcome, AutoscalerView};
use super::demand::{MeasuredDemand, SourceGap, SourceReading, measure};
use super::forecast::ForecastMode;
use super::formula::{WindowMeans, apa, is_kept_by_now, is_tolerated, kpa, limited, wanted};
use super::reason::{
    AutoscalerReason as Why, AutoscalerStage as Stage, AutoscalerStep, SourceFigures,
};
use super::schedule::EffectiveBounds;
use super::source::MetricSource;
use super::state::AutoscalerState;
use crate::bounds::ZeroPolicy;
use crate::signal::Signal;
use crate::units::Replicas;
use wva_base::moment::Moment;

struct SourceResult {
    source: Arc<str>,
    demand: Result<(MeasuredDemand, WindowMeans), SourceGap>,
    /// The low end that is expected.
    expected: Option<f64>,
    seen: Duration,
}

pub(super) struct Draft<'a> {
    pub(super) policy: &'a AutoscalerPolicy,
    pub(super) view: &'a AutoscalerView,
    pub(super) now: Moment,
    pub(super) state: AutoscalerState,
    pub(super) count: Replicas,
    pub(super) steps: Vec<AutoscalerStep>,
    pub(super) bounds: EffectiveBounds,
}

impl Draft<'_> {
    fn step(&mut self, stage: Stage, to: Replicas, why: Why) {
        let from = self.count;
        self.count = to;
        self.steps.push(AutoscalerStep { stage, from, to, why });
    }

    pub(super) fn decide(&mut self) -> (Algorithm, AutoscalerOutcome) {
        if self.view.current == Replicas::ZERO {
            // Time at zero is no idle time of the replica that comes next.
            self.state.idle_since = None;
        } else {
            self.state.asleep = false;
        }
        let bounds = self.bounds.bounds;
        let why = match self.bounds.active.clone() {
            Some(name) => Why::ScheduleActive { name, bounds },
            None => Why::BaseBounds { bounds },
        };
        self.step(Stage::Schedule, self.count, why);
        let algorithm = match self.policy.strategy {
            ScalingStrategy::Hpa => {
                let hpa = format!("{}-hpa", self.policy.metadata.name).into();
                self.step(Stage::Hpa, self.count, Why::Delegated { hpa });
                // The HPA controller leaves a target at zero alone, so that what load put to sleep would never wake.
                if self.state.asleep {
                    let min = bounds.min;
                    self.step(Stage::BoundaryCheck, min, Why::BelowMinimum { min });
                }
                return (Algorithm::Hpa, AutoscalerOutcome::Decided);
            }
            ScalingStrategy::Kpa => Algorithm::Kpa,
            ScalingStrategy::Apa => Algorithm::Apa,
        };
        if let Some((to, why)) = self.boundary() {
            self.step(Stage::BoundaryCheck, to, why);
            return (Algorithm::BoundaryCheck, AutoscalerOutcome::Decided);
        }
        (algorithm, self.by_metrics())
    }

    /// What bounds decide without metrics. A target that was scaled to zero by hand stays there; one that load put
    /// to sleep, or may have, does not.
    fn boundary(&self) -> Option<(Replicas, Why)> {
        let (min, max) = (self.bounds.bounds.min, self.bounds.bounds.max);
        let current = self.view.current;
        let may_wake = self.bounds.explicit_min || self.policy.may_sleep() || self.state.asleep;
        if current == Replicas::ZERO && min > Replicas::ZERO && !may_wake {
            return Some((current, Why::DisabledAtZero));
        }
        if current > max {
            return Some((max, Why::AboveMaximum { max }));
        }
        if current < min {
            return Some((min, Why::BelowMinimum { min }));
        }
        // What put it to sleep was switched off meanwhile.
        let why = self.why_not_zero().filter(|_| self.state.asleep)?;
        Some((Replicas::ONE, why))
    }

    /// Why load leads to no zero.
    fn why_not_zero(&self) -> Option<Why> {
        if self.policy.tuning.zero == ZeroPolicy::Disabled {
            Some(Why::ZeroNotEnabled)
        } else {
            (!self.can_wake()).then_some(Why::ZeroNeedsTotal)
        }
    }

    fn can_wake(&self) -> bool {
        self.has_total() || self.view.held.is_some()
    }

    fn has_total(&self) -> bool {
        self.policy.sources.iter().any(MetricSource::is_total)
    }

    /// Whether routers hold nothing. What they do not report counts where nothing else could wake the target.
    fn held_allow_zero(&self) -> bool {
        match self.view.held {
            None | Some(Signal::KnownZero { .. }) => true,
            Some(Signal::Known { .. } | Signal::Stale { .. }) => false,
            Some(Signal::Failed { .. }) => self.has_total(),
        }
    }

    fn by_metrics(&mut self) -> AutoscalerOutcome {
        let current = self.view.current;
        let results = self.measure();
        self.panic(&results);
        let combined = self.combine(&results);
        let Some(wanted) = self.woken().or(combined) else {
            self.step(Stage::Combine, current, Why::NothingMeasured);
            return AutoscalerOutcome::FailedComputeScale;
        };
        if wanted < current
            && let Some(why) = self.lacking(&results)
        {
            self.step(Stage::Evidence, current, why);
            // A held release is a recommendation of the current count: without one, growth would find its window
            // empty.
            self.pace(current);
        } else {
            self.pace(wanted);
        }
        self.last_replica();
        self.bound();
        if self.view.current > Replicas::ZERO {
            self.state.asleep = self.count == Replicas::ZERO;
        }
        if let Some(panic) = &mut self.state.panic {
            panic.peak = panic.peak.max(self.count);
        }
        AutoscalerOutcome::Decided
    }

    /// One replica for requests that wait in routers where nothing serves, whatever sources report.
    fn woken(&mut self) -> Option<Replicas> {
        let requests = self.view.held.and_then(Signal::value)?;
        let is_asleep = self.view.current == Replicas::ZERO && requests > 0.0;
        if !is_asleep || self.count > Replicas::ZERO {
            return None;
        }
        self.step(Stage::Zero, Replicas::ONE, Why::RequestsHeld { requests });
        Some(Replicas::ONE)
    }

    fn measure(&mut self) -> Vec<SourceResult> {
        self.state.keep_for(self.policy.windows);
        let nothing = SourceReading::Pods(BTreeMap::new());
        let mut results = Vec::new();
        for (index, source) in self.policy.sources.iter().enumerate() {
            let reading = self.view.readings.get(index).unwrap_or(&nothing);
            results.push(self.measure_one(source, reading));
        }
        // Windows of sources that the specification names no more.
        let sources = &self.policy.sources;
        let is_named = |name: &String| sources.iter().any(|source| source.identity() == *name);
        self.state.windows.retain(|name, _| is_named(name));
        let idle = |result: &SourceResult| {
            let demand = result.demand.as_ref();
            demand.is_ok_and(|(demand, _)| demand.is_idle())
        };
        let is_idle = self.view.current > Replicas::ZERO
            && results.iter().all(idle)
            && self.held_allow_zero();
        self.state.update_idle(is_idle, self.now);
        results
    }

    fn measure_one(&mut self, source: &MetricSource, reading: &SourceReading) -> SourceResult {
        let lengths = self.policy.windows;
        let view = self.view;
        let (current, per_replica) = (view.current, view.pods_per_replica);
        let demand = measure(reading, &view.pods, current, per_replica, source.target);
        let window = self.state.windows.entry(source.identity()).or_default();
        if let Ok(demand) = &demand {
            window.push(self.now, demand.range, demand.evidence, lengths.stable);
        }
        let mean = |length| window.mean(self.now, length);
        let demand = demand.and_then(|demand| {
            // Both windows hold the demand that was just added.
            let missing = SourceGap::NoSample(demand.pods.unwrap_or_default());
            let stable = mean(lengths.stable).ok_or(missing)?;
            let panic = mean(lengths.panic).ok_or(missing)?;
            let now = demand.range;
            Ok((demand, WindowMeans { now, stable, panic }))
        });
        SourceResult {
            source: source.to_string().into(),
            seen: window.seen(self.now),
            expected: self
                .policy
                .forecast
                .filter(|_| demand.is_ok())
                .and_then(|forecast| window.forecast(self.now, lengths.stable, forecast.horizon)),
            demand,
        }
    }

    fn panic(&mut self, results: &[SourceResult]) {
        if self.policy.strategy != ScalingStrategy::Kpa {
            self.state.panic = None;
            return;
        }
        let (current, tuning) = (self.view.current, &self.policy.tuning);
        let mut measured = self.policy.sources.iter().zip(results);
        let exceeded = measured.any(|(source, result)| {
            let demand = result.demand.as_ref();
            let target = self.replica_target(source);
            demand.is_ok_and(|(_, means)| means.exceed(current, target, tuning))
        });
        let before = self.state.panic;
        let windows = self.policy.windows;
        self.state.update_panic(exceeded, self.view.current, windows, self.now);
        if before.is_some() && self.state.panic.is_none() {
            self.step(Stage::Panic, self.count, Why::PanicEnded);
        }
    }

    /// The largest need; the first of equal ones. `None` if no source has a demand.
    fn combine(&mut self, results: &[SourceResult]) -> Option<Replicas> {
        // At zero no pod can be measured, which is no failure unless another source fails.
        let is_asleep = |result: &SourceResult| {
            matches!(result.demand, Ok(_) | Err(SourceGap::NoServingPod(_)))
        };
        let is_at_zero = self.view.current == Replicas::ZERO && results.iter().all(is_asleep);
        let mut largest: Option<(Replicas, Arc<str>)> = None;
        for (source, result) in self.policy.sources.iter().zip(results) {
            let (wanted, why) = match &result.demand {
                Ok((demand, means)) => self.judge(source, demand, *means),
                Err(why) => {
                    let source = Arc::clone(&result.source);
                    let why = Why::Unmeasured { source, why: *why };
                    (is_at_zero.then_some(Replicas::ZERO), why)
                }
            };
            let from = self.view.current;
            self.steps.push(AutoscalerStep {
                stage: Stage::Metric,
                from,
                to: wanted.unwrap_or(from),
                why,
            });
            let wanted = wanted.map(|wanted| self.look_ahead(source, result, wanted));
            if let Some(wanted) = wanted
                && largest.as_ref().is_none_or(|(most, _)| wanted > *most)
            {
                largest = Some((wanted, Arc::clone(&result.source)));
            }
        }
        let (wanted, source) = largest?;
        self.step(Stage::Combine, wanted, Why::LargestNeed { source });
        if let Some(panic) = self.state.panic {
            // A burst is served until it is over.
            let held = wanted.max(panic.peak).max(self.view.current);
            let stable = self.policy.windows.stable;
            let why = Why::Panic {
                peak: panic.peak,
                lasting: self.now.since(panic.since),
                left: stable.saturating_sub(self.now.since(panic.exceeded)),
            };
            self.step(Stage::Panic, held, why);
        }
        Some(self.count)
    }

    /// The larger of what is measured and what is expected, if a forecast may act.
    fn look_ahead(
        &mut self,
        source: &MetricSource,
        result: &SourceResult,
        measured: Replicas,
    ) -> Replicas {
        let (Some(forecast), Some(demand)) = (self.policy.forecast, result.expected) else {
            return measured;
        };
        let (current, tuning) = (self.view.current, &self.policy.tuning);
        let range = DemandRange::exactly(demand);
        let band = self.band(source);
        let alone = wanted(range, current, band, self.replica_target(source), tuning);
        let needed = alone.max(measured);
        let acts = forecast.mode == ForecastMode::Auto;
        self.steps.push(AutoscalerStep {
            stage: Stage::Forecast,
            from: current,
            to: needed,
            why: Why::Forecast {
                source: Arc::clone(&result.source),
                demand,
                replicas: alone,
                horizon: forecast.horizon,
                acts,
            },
        });
        if acts { needed } else { measured }
    }

    /// What one replica is to carry: a total is shared among replicas, and a value of each pod among its pods.
    fn replica_target(&self, source: &MetricSource) -> TargetValue {
        if source.is_total() {
            source.target
        } else {
            source.target.of_pods(self.view.pods_per_replica)
        }
    }

    /// Replicas that tolerances are a share of. A total is compared with the target itself under KPA, and any total is
    /// demand where there is no replica.
    fn band(&self, source: &MetricSource) -> Replicas {
        let current = self.view.current;
        match self.policy.strategy {
            ScalingStrategy::Kpa if source.is_total() => current.min(Replicas::ONE),
            _ => current,
        }
    }

    /// KPA compares a total with one target, so that a mean near one holds any count. It holds the present one for a
    /// long window, then what is more than one goes.
    fn spare(&mut self, source: &MetricSource, wanted: Replicas, means: WindowMeans) -> Replicas {
        let current = self.view.current;
        let one =
            self.replica_target(source).get() * (1.0 + self.policy.tuning.scale_up_tolerance.get());
        let is_spare = wanted == current
            && self.band(source) < current
            && !exceeds(means.stable.high.max(means.now.high), one);
        let window = self.state.windows.get_mut(&source.identity());
        let lasting = window.map(|window| window.spare(self.now, is_spare));
        let is_over = lasting.is_some_and(|lasting| lasting >= self.policy.windows.stable);
        if is_spare && is_over { Replicas::ONE } else { wanted }
    }

    fn judge(
        &mut self,
        source: &MetricSource,
        demand: &MeasuredDemand,
        means: WindowMeans,
    ) -> (Option<Replicas>, Why) {
        let (current, tuning) = (self.view.current, &self.policy.tuning);
        let target = self.replica_target(source);
        let band = self.band(source);
        let (wanted, judged) = match self.policy.strategy {
            ScalingStrategy::Kpa => {
                let in_panic = self.state.panic.is_some();
                let wanted = kpa(means, in_panic, current, band, target, tuning);
                (wanted, means.stable)
            }
            ScalingStrategy::Apa | ScalingStrategy::Hpa => {
                (apa(means, current, target, tuning), means.of_both())
            }
        };
        let kept_by_now = is_kept_by_now(means, judged, current, band, target, tuning);
        let tolerated = wanted == current && is_tolerated(judged.low, band, target, tuning);
        let wanted = self.spare(source, wanted, means);
        let figures = Box::new(SourceFigures {
            source: source.to_string().into(),
            target: target.get(),
            now: demand.range,
            stable: means.stable,
            panic: means.panic,
            pods: demand.pods,
            is_old: demand.is_old,
            tolerated,
            kept_by_now: kept_by_now && wanted == current,
        });
        (Some(wanted), Why::Measured { figures })
    }

    fn lacking(&self, results: &[SourceResult]) -> Option<Why> {
        results.iter().find_map(|result| {
            let source = Arc::clone(&result.source);
            let needed = self.policy.windows.stable;
            match &result.demand {
                Err(_) => Some(Why::ReleaseNeedsSource { source }),
                Ok((demand, _)) if demand.is_old => Some(Why::ReleaseNeedsFreshTotal { source }),
                Ok((demand, _)) if !demand.allows_release() => {
                    Some(Why::ReleaseNeedsCoverage { source })
                }
                Ok(_) if result.seen < needed => {
                    Some(Why::ReleaseNeedsHistory { source, seen: result.seen, needed })
                }
                Ok(_) => None,
            }
        })
    }

    /// Stabilisation, then the rate limit.
    fn pace(&mut self, wanted: Replicas) {
        let (current, tuning) = (self.view.current, &self.policy.tuning);
        let (up, down) = (tuning.scale_up_window, tuning.scale_down_window);
        let mut stable = self.state.stabilise(wanted, current, (up, down), self.now);
        let (idle, needed) = self.idle();
        let is_last = current == Replicas::ONE && wanted == Replicas::ZERO;
        if is_last && idle >= needed {
            // The idle time covers both windows, and is not waited for twice.
            stable = wanted;
        }
        if stable < wanted {
            let why = Why::GrowthStabilised { window: up };
            self.step(Stage::Stabilise, stable, why);
        } else if stable > wanted {
            let why = Why::ReleaseStabilised { window: down };
            self.step(Stage::Stabilise, stable, why);
        }
        let step = limited(stable, current, tuning);
        if step != stable {
            let rate = if step < stable { tuning.scale_up_rate } else { tuning.scale_down_rate };
            let why = Why::RateLimited { rate: rate.get() };
            self.step(Stage::RateLimit, step, why);
        }
    }

    /// For how long nothing is asked for, and how long that has to be before the last replica goes.
    fn idle(&self) -> (Duration, Duration) {
        let since = self.state.idle_since;
        let idle = since.map_or(Duration::ZERO, |since| self.now.since(since));
        let windows = self.policy.windows;
        (idle, windows.stable.max(self.policy.tuning.scale_down_window))
    }

    /// The last replica goes where it is asked for, and only after a time without demand.
    fn last_replica(&mut self) {
        if self.count > Replicas::ZERO {
            return;
        }
        if self.view.current == Replicas::ZERO {
            if !self.can_wake() {
                self.step(Stage::Zero, Replicas::ZERO, Why::ZeroNeedsTotal);
            }
            return;
        }
        let (idle, needed) = self.idle();
        if let Some(why) = self.why_not_zero() {
            self.step(Stage::Zero, Replicas::ONE, why);
        } else if !self.held_allow_zero() {
            self.step(Stage::Zero, Replicas::ONE, Why::ZeroNeedsRouter);
        } else if idle < needed {
            let why = Why::ZeroNeedsIdle { idle, needed };
            self.step(Stage::Zero, Replicas::ONE, why);
        }
    }

    fn bound(&mut self) {
        let bounds = self.bounds.bounds;
        let (min, max) = (bounds.min, bounds.max);
        if self.count > max {
            self.step(Stage::Bounds, max, Why::CutToMaximum { max });
        } else if self.count < min {
            self.step(Stage::Bounds, min, Why::RaisedToMinimum { min });
        } else {
            self.step(Stage::Bounds, self.count, Why::WithinBounds { bounds });
        }
    }
}
