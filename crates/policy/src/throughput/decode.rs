//! What is learned of the engine of one variant that generates tokens.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::average::median;
use super::input::DecodeReading;
use super::line::{Fit, LatencyLine};
use super::shape::RequestShape;
use super::supply::{full_sequences, rate_at};
use super::window::{Domain, ObservationWindow, Proof};
use wva_base::moment::Moment;

pub(crate) const SATURATED_USAGE: f64 = 0.85;
/// Latency of a token on an idle engine, in seconds, while none was fitted.
const DEFAULT_INTERCEPT: f64 = 0.006;
/// Deviation of the modelled from the observed decode rate that counts as a mismatch.
const MISMATCH: f64 = 0.15;
/// Fullness from which on the rates are compared.
const MISMATCH_USAGE: f64 = 0.30;
/// Cycles in a row after which the window is thrown away.
const MISMATCH_CYCLES: u8 = 3;
/// Cycles whose latency of a full replica is smoothed.
const SMOOTHED_CYCLES: usize = 5;
/// Cycles before a capacity is more than a first impression.
const SETTLING_CYCLES: usize = 2;

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LatencyModelSource {
    /// Fitted to the window.
    #[serde(rename = "T1-ols")]
    Fitted,
    /// Slope of this cycle, intercept of the last fit.
    #[serde(rename = "T2-pinned")]
    Pinned,
    /// Slope of this cycle, intercept by default.
    #[serde(rename = "T2-default")]
    Default,
    /// No valid line.
    #[serde(rename = "T2-failed")]
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyModel {
    /// The line; none with [`LatencyModelSource::Failed`].
    pub line: Option<LatencyLine>,
    pub source: LatencyModelSource,
    /// What a fitted line explains of the variance (R²).
    pub determination: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DecodeEngine {
    pub(super) window: ObservationWindow,
    /// Of the last fit, in seconds.
    pub(super) intercept: Option<f64>,
    /// The last fit; it outlives the window, since the engine stays what it is when its requests
    /// change.
    pub(super) fitted: Option<LatencyLine>,
    #[serde(default)]
    proof: Option<Proof>,
    pub(super) mismatches: u8,
    /// Latencies of a token on a full replica, one for each cycle. They do not depend on the shape of
    /// the requests, so smoothing them does not blur a change of shape.
    full_latencies: VecDeque<f64>,
    /// Tokens per second of a full replica, with the smoothed latency.
    pub(super) per_replica: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sight {
    pub(super) shape: RequestShape,
    pub(super) is_new: bool,
    /// Mean requests of that shape that fill a replica.
    pub(super) full: Option<f64>,
    /// Requests that a replica works on at once.
    pub(super) max_sequences: Option<f64>,
}

impl DecodeEngine {
    /// Learns from one cycle; `readings` are of the replicas that have served enough.
    pub(super) fn learn(&mut self, readings: &[DecodeReading], sight: Sight, now: Moment) {
        if sight.is_new {
            self.window.clear();
            self.mismatches = 0;
        }
        let points = readings.iter().map(|one| (one.fullness, one.latency));
        self.window.learn(points, Domain::USAGE, now);
        let model = self.model(readings);
        if let (LatencyModelSource::Fitted, Some(line)) = (model.source, model.line) {
            self.intercept = Some(line.intercept);
            self.fitted = Some(line);
            self.proof = Proof::extend(self.proof, &self.window);
        }
        self.settle(readings, model);
        if let Some((full, latency)) = sight.full.zip(self.full_latency()) {
            self.per_replica = Some(SATURATED_USAGE * full / latency);
        }
        self.compare(readings, sight, model);
    }

    /// Fitted where the window allows, else through this cycle's readings and the intercept of the last fit.
    pub(super) fn model(&self, readings: &[DecodeReading]) -> LatencyModel {
        if let Some(Fit { line, determination }) = self.window.fit(Domain::USAGE) {
            return LatencyModel {
                line: Some(line),
                source: LatencyModelSource::Fitted,
                determination: Some(determination),
            };
        }
        let current: Vec<_> =
            readings.iter().map(|reading| (reading.fullness, reading.latency)).collect();
        let line = LatencyLine::pinned(&current, self.intercept.unwrap_or(DEFAULT_INTERCEPT))
            .filter(|line| line.is_valid(SATURATED_USAGE));
        let source = match (line, self.intercept) {
            (None, _) => LatencyModelSource::Failed,
            (Some(_), Some(_)) => LatencyModelSource::Pinned,
            (Some(_), None) => LatencyModelSource::Default,
        };
        LatencyModel { line, source, determination: None }
    }

    /// Whether the last fitted line rests on two rate windows.
    pub(crate) fn is_proven(&self) -> bool {
        self.fitted.is_some() && self.proof.is_some_and(Proof::is_given)
    }

    /// Latency of a token on a full replica in seconds, the median of the last cycles.
    pub(crate) fn full_latency(&self) -> Option<f64> {
        median(self.full_latencies.iter().copied())
    }

    /// Whether the capacity rests on more than a first impression.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_proven() || self.full_latencies.len() >= SETTLING_CYCLES
    }

    /// Takes a latency in, unless it was guessed from engines that are all but idle: there the
    /// intercept drowns the slope, and a full replica looks several times slower than it is.
    fn settle(&mut self, readings: &[DecodeReading], model: LatencyModel) {
        let is_loaded = readings.iter().any(|reading| reading.fullness >= Domain::USAGE.least);
        let is_reliable = model.source == LatencyModelSource::Fitted || is_loaded;
        if let Some(line) = model.line.filter(|_| is_reliable) {
            while self.full_latencies.len() >= SMOOTHED_CYCLES {
                self.full_latencies.pop_front();
            }
            self.full_latencies.push_back(line.at(SATURATED_USAGE));
        }
    }

    fn compare(&mut self, readings: &[DecodeReading], sight: Sight, model: LatencyModel) {
        let is_contradicted =
            model.line.is_some_and(|line| readings.iter().any(|one| one.contradicts(sight, line)));
        self.mismatches = if is_contradicted { self.mismatches.saturating_add(1) } else { 0 };
        if self.mismatches >= MISMATCH_CYCLES {
            self.window.clear();
            self.fitted = None;
            self.proof = None;
            self.mismatches = 0;
        }
    }
}

impl DecodeReading {
    fn contradicts(&self, sight: Sight, line: LatencyLine) -> bool {
        let full = full_sequences(self.kv_capacity, sight.shape, sight.max_sequences);
        let modelled = full.and_then(|full| rate_at(self.fullness, full, line));
        self.fullness >= MISMATCH_USAGE
            && (modelled.zip(self.decode_rate)).is_some_and(|(modelled, observed)| {
                (modelled - observed).abs() / observed > MISMATCH
            })
    }
}
