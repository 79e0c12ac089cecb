//! Policies that are metrics behind an HPA: with its arithmetic, dead band, windows and rates.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::signals::{ModelSignals, Peer, PeerDecision, PeerModel};
use crate::hpa::{
    Behavior, ExternalMetricSpec, ExternalMetricTarget, History, HpaSpec, Observed, Policy,
    ScalingDirection, ScalingRules, Size, decide,
};
use crate::milli::Milli;
use crate::router::FlowControl;

const SYNC: Duration = Duration::from_secs(15);
/// How long KEDA keeps the last replica after its metrics have gone to zero.
const COOLDOWN: Duration = Duration::from_mins(5);
/// Bytes of a prompt token, by which the router measures its queue.
const BYTES_PER_TOKEN: f64 = 4.0;
/// The least share of the objective in which queued prompts may be computed, where a prompt takes nearly all of it.
const LEAST_QUEUED: f64 = 0.1;

type Metric = fn(&ModelSignals) -> Option<f64>;

pub(super) struct HpaPeer {
    spec: HpaSpec,
    metrics: Vec<Metric>,
    history: History,
    /// KEDA's own part, which an HPA alone does not have.
    zero: Option<ZeroStep>,
    /// Tokens of prompts per second that count as one unit of the first metric.
    prefill: Option<f64>,
}

/// The steps between zero and one replica, which KEDA takes by itself.
#[derive(Debug, Default)]
pub(in crate::lab) struct ZeroStep {
    idle_since: Option<Duration>,
}

impl ZeroStep {
    pub(in crate::lab) fn step(
        &mut self,
        is_active: bool,
        wanted: u32,
        cooldown: Duration,
        now: Duration,
    ) -> Option<u32> {
        if is_active {
            self.idle_since = None;
            return (wanted == 0).then_some(1);
        }
        let since = *self.idle_since.get_or_insert(now);
        let is_over = now.saturating_sub(since) >= cooldown;
        (wanted == 0 || is_over).then_some(0)
    }
}

/// The behavior of llm-d's ScaledObject: no window upwards, 100 % in 15 s both ways.
fn guide() -> Behavior {
    let rules = |direction, window| ScalingRules {
        window: Duration::from_secs(window),
        policies: vec![Policy { size: Size::Percent(100), period: SYNC }],
        ..ScalingRules::standard(direction)
    };
    Behavior { up: rules(ScalingDirection::Up, 0), down: rules(ScalingDirection::Down, 300) }
}

/// How full the servers are: 1 at the set points at which a router holds requests.
fn saturation(signals: &ModelSignals) -> Option<f64> {
    if signals.ready == 0 {
        // The router shows 1 for a pool without servers.
        return Some(1.0);
    }
    let mean = |sum: f64| sum / f64::from(signals.ready);
    let full = FlowControl::default();
    let queue = signals.scraped.waiting.map(mean)? / full.queue_depth;
    let kv_usage = signals.scraped.kv_usage.map(mean)? / full.kv_usage;
    Some(queue.max(kv_usage))
}

impl HpaPeer {
    fn new(
        model: &PeerModel,
        metrics: Vec<(&str, f64, Metric)>,
        behavior: Option<Behavior>,
    ) -> Self {
        let metric = |(name, target, _): &(&str, f64, Metric)| ExternalMetricSpec {
            name: (*name).to_owned(),
            selector: LabelSelector::default(),
            target: ExternalMetricTarget::AverageValue(
                Milli::of(*target).unwrap_or(Milli::units(1)),
            ),
        };
        Self {
            spec: HpaSpec {
                // An HPA never takes the last replica away.
                min: model.min.max(1),
                max: model.max,
                metrics: metrics.iter().map(metric).collect(),
                behavior,
            },
            metrics: metrics.into_iter().map(|(_, _, read)| read).collect(),
            history: History::default(),
            zero: None,
            prefill: None,
        }
    }

    /// The same below KEDA, which may take the last replica away where the bounds allow it.
    fn below_keda(mut self, model: &PeerModel) -> Self {
        self.zero = (model.min == 0).then(ZeroStep::default);
        self
    }

    pub(super) fn queue(model: &PeerModel, target: f64) -> Self {
        let waiting: Metric = |signals| signals.scraped.waiting;
        Self::new(model, vec![("queue", target, waiting)], None)
    }

    pub(super) fn kv(model: &PeerModel, target: f64) -> Self {
        let usage: Metric = |signals| signals.scraped.kv_usage;
        Self::new(model, vec![("KV usage", target, usage)], None)
    }

    /// A count that the policy computes itself: the HPA adds its windows and rates alone.
    pub(super) fn counts(model: &PeerModel, up: ScalingRules, down: ScalingRules) -> Self {
        let given: Metric = |_signals| None;
        Self::new(model, vec![("count", 1.0, given)], Some(Behavior { up, down }))
    }

    pub(super) fn router(model: &PeerModel, running: f64) -> Self {
        let metrics: Vec<(&str, f64, Metric)> = vec![
            ("router queue", 1.0, |signals| signals.scraped.router_queue),
            ("running", running, |signals| signals.scraped.router_running),
        ];
        Self::new(model, metrics, Some(guide())).below_keda(model)
    }

    pub(super) fn saturation(model: &PeerModel, running: f64) -> Self {
        let metrics: Vec<(&str, f64, Metric)> = vec![
            ("saturation", 0.7, saturation),
            ("running", running, |signals| signals.scraped.router_running),
        ];
        Self::new(model, metrics, Some(guide())).below_keda(model)
    }

    /// Queued prompt tokens over what a replica computes within the objective, and KV usage.
    pub(super) fn tokens(model: &PeerModel, kv_usage: f64) -> Self {
        let metrics: Vec<(&str, f64, Metric)> = vec![
            ("queued tokens", 1.0, |signals| signals.scraped.router_bytes),
            ("KV usage", kv_usage, |signals| signals.scraped.kv_usage),
        ];
        let speed = 1.0 / model.profile.timing.prompt_token.seconds().max(1e-9);
        let within = model.slo.first_token.as_secs_f64();
        // The prompt itself takes a part of the objective.
        let queued = (within - model.lengths.0 / speed).max(within * LEAST_QUEUED);
        Self {
            prefill: Some(speed * queued * BYTES_PER_TOKEN),
            ..Self::new(model, metrics, Some(guide())).below_keda(model)
        }
    }

    pub(super) fn decide_by(
        &mut self,
        values: &[Option<f64>],
        signals: &ModelSignals,
        now: Duration,
    ) -> Option<PeerDecision> {
        let metrics = values.iter().map(|value| {
            let value = value.ok_or_else(|| "no sample".to_owned())?;
            Milli::of(value).ok_or_else(|| "no number".to_owned())
        });
        let seen = Observed {
            wanted: signals.wanted,
            existing: signals.existing,
            ready: signals.ready,
            metrics: metrics.collect(),
        };
        let values = self.spec.metrics.iter().zip(&seen.metrics);
        let values: Vec<String> = values
            .map(|(metric, value)| {
                let value = value.as_ref().map_or_else(Clone::clone, |value| value.text());
                format!("{} {value}", metric.name)
            })
            .collect();
        if let Some(zero) = &mut self.zero {
            let is_failing = signals.wanted > 0 && seen.metrics.iter().any(Result::is_err);
            let mut metrics = seen.metrics.iter().flatten();
            // KEDA takes nothing to zero while a trigger fails.
            let is_active = is_failing || metrics.any(|metric| *metric > Milli(0));
            if let Some(replicas) = zero.step(is_active, signals.wanted, COOLDOWN, now) {
                let why = values.join(", ");
                return Some(PeerDecision { replicas, why });
            }
        }
        let desired = decide(now, &self.spec, &seen, &mut self.history).desired?;
        if desired != signals.wanted {
            self.history.rescaled(now, &self.spec, signals.wanted, desired);
        }
        Some(PeerDecision { replicas: desired, why: values.join(", ") })
    }
}

impl Peer for HpaPeer {
    fn poll(&self) -> Duration {
        SYNC
    }

    fn is_scraping(&self) -> bool {
        true
    }

    fn decide(&mut self, signals: &ModelSignals, now: Duration) -> Option<PeerDecision> {
        let prefill = self.prefill;
        let values = self.metrics.iter().enumerate().map(|(place, read)| {
            let unit = prefill.filter(|_| place == 0).unwrap_or(1.0);
            read(signals).map(|value| value / unit)
        });
        let values: Vec<Option<f64>> = values.collect();
        self.decide_by(&values, signals, now)
    }
}
