//! Dynamo's hybrid planner: its load planner above a floor of forecast demand. Source: ai-dynamo 1.6.1.

use std::time::Duration;

use super::dynamo::DynamoLoad;
use super::signals::{ModelSignals, Peer, PeerDecision, PeerModel};
use crate::number;

const INTERVAL: Duration = Duration::from_mins(3);
/// Replicas by which a floor moves at most.
const STEP: u32 = 8;
/// Samples before a forecast is more than the last of them.
const LEAST: u32 = 5;
/// Noise of the level, of the trend and of a sample.
const NOISE: (f64, f64, f64) = (1.0, 0.1, 10.0);
/// Variance before the first sample.
const UNKNOWN: f64 = 10.0;

/// A Kalman filter of a level and its trend.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TrendFilter {
    level: f64,
    trend: f64,
    /// Variances of level and trend, and their covariance.
    level_variance: f64,
    trend_variance: f64,
    covariance: f64,
    samples: u32,
    last: f64,
}

impl TrendFilter {
    pub(super) fn new() -> Self {
        Self { level_variance: UNKNOWN, trend_variance: UNKNOWN, ..Self::default() }
    }

    pub(super) fn take(&mut self, sample: f64) {
        let (level_noise, trend_noise, sample_noise) = NOISE;
        self.samples += 1;
        self.last = sample;
        if self.samples == 1 {
            self.level = sample;
            return;
        }
        self.level += self.trend;
        self.level_variance += 2.0 * self.covariance + self.trend_variance + level_noise;
        self.covariance += self.trend_variance;
        self.trend_variance += trend_noise;
        let variance = self.level_variance + sample_noise;
        let (level_gain, trend_gain) = (self.level_variance / variance, self.covariance / variance);
        let error = sample - self.level;
        self.level += level_gain * error;
        self.trend += trend_gain * error;
        self.trend_variance -= trend_gain * self.covariance;
        self.level_variance *= 1.0 - level_gain;
        self.covariance *= 1.0 - level_gain;
    }

    pub(super) fn forecast(&self) -> f64 {
        let next = if self.samples < LEAST { self.last } else { self.level + self.trend };
        next.max(0.0)
    }
}

pub(super) struct DynamoHybrid {
    load: DynamoLoad,
    bounds: (u32, u32),
    /// Seconds of a replica that a mean request takes.
    work: f64,
    filter: TrendFilter,
    /// Sum and number of the rates since the last floor.
    rates: (f64, f64),
    next: Duration,
    floor: Option<u32>,
}

impl DynamoHybrid {
    pub(super) fn new(model: &PeerModel, share: f64) -> Self {
        Self {
            load: DynamoLoad::new(model, share),
            bounds: (model.min.max(1), model.max),
            work: work(model, share),
            filter: TrendFilter::new(),
            rates: (0.0, 0.0),
            next: INTERVAL,
            floor: None,
        }
    }

    /// Takes the demand of an interval, and sets the floor for the next one.
    fn refloor(&mut self, replicas: u32) {
        let (sum, count) = std::mem::take(&mut self.rates);
        self.filter.take(sum / count.max(1.0));
        let wanted = number::rounded((self.filter.forecast() * self.work).ceil());
        let before = self.floor.unwrap_or(replicas);
        let least = before.saturating_sub(STEP);
        let floor = wanted.clamp(least, before.saturating_add(STEP));
        self.floor = Some(floor.clamp(self.bounds.0, self.bounds.1));
    }
}

/// Seconds of a replica for the prompt and the answer of a mean request, which one engine does both. An answer is done in
/// the largest batch whose steps keep within the objective and whose contexts fit into the KV cache.
fn work(model: &PeerModel, share: f64) -> f64 {
    let (prompt, output) = model.lengths;
    let timing = model.profile.timing;
    let context = prompt + output / 2.0;
    let sequence = timing.sequence.seconds() + timing.context.seconds() * context;
    let target = model.slo.per_token.as_secs_f64() * share;
    let room = (target - timing.step.seconds()) / sequence.max(1e-12);
    let batch = room.min(f64::from(model.profile.kv_tokens) / context.max(1.0));
    let batch = batch.min(f64::from(model.sequences)).floor().max(1.0);
    let step = timing.step.seconds() + sequence * batch;
    let prefill = timing.prompt.seconds() + timing.prompt_token.seconds() * prompt;
    prefill + output * step / batch
}

impl Peer for DynamoHybrid {
    fn poll(&self) -> Duration {
        self.load.poll()
    }

    fn observe(&mut self, signals: &ModelSignals, _now: Duration) {
        self.rates.0 += signals.rate;
        self.rates.1 += 1.0;
    }

    fn decide(&mut self, signals: &ModelSignals, now: Duration) -> Option<PeerDecision> {
        if now >= self.next {
            self.next = now + INTERVAL;
            self.refloor(signals.wanted);
        }
        let floor = self.floor.unwrap_or(0);
        let load = self.load.decide(signals, now);
        let replicas = load.as_ref().map_or(signals.wanted, |load| load.replicas);
        if replicas >= floor {
            return load;
        }
        let forecast = self.filter.forecast();
        Some(PeerDecision {
            replicas: floor,
            why: format!("floor {floor} for {forecast:.1} requests a second"),
        })
    }
}
