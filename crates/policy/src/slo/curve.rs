//! Inter-token latency over concurrency, learned from what replicas show.
//!
//! Generated tokens per second times the latency of a token is the mean number of sequences that were
//! generated at once (Little's law), over one and the same window. So the pair needs no gauge of a
//! moment, no size of the KV cache and no arguments of the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rounding;
use crate::throughput::line::LatencyLine;
use wva_base::moment::Moment;

/// How long a point counts.
const MAX_AGE: Duration = Duration::from_hours(6);
/// Weight of a new observation in its point.
const GAIN: f64 = 0.2;
/// Points that double the concurrency.
const POINTS_PER_OCTAVE: f64 = 2.0;
/// Share of the largest concurrency seen from which on waiting requests show that a replica is full. Below,
/// they waited for a moment of the window that concurrency is averaged over.
const NEAR_MOST: f64 = 0.8;
/// Looks at a point that count.
const MOST_SEEN: u32 = 20;
/// Time constant by which a point loses weight.
const RECENT: Duration = Duration::from_mins(10);
/// Weight of a point that is not recent, to that of a recent one. Old points may be of other requests; they
/// keep the slope known while concurrency does not vary.
const LASTING: f64 = 0.02;
/// Ratio of the largest to the smallest concurrency from which on a line is fitted.
const SPREAD: f64 = 1.9;

/// Latency of a token at one concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Sequences that are generated at once.
    pub concurrency: f64,
    /// Seconds between tokens.
    pub latency: f64,
    /// When it was seen last.
    pub at: Moment,
    /// How often it was seen, up to [`MOST_SEEN`].
    pub seen: u32,
}

/// What is known of the latency of one engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyCurve {
    points: BTreeMap<u32, CurvePoint>,
    /// Concurrency at which requests had to wait, smoothed.
    full: Option<f64>,
}

impl LatencyCurve {
    /// Takes one replica in: tokens per second, seconds between tokens, and whether requests waited
    /// for it.
    pub fn observe(&mut self, tokens_per_second: f64, latency: f64, is_queued: bool, now: Moment) {
        let concurrency = tokens_per_second * latency;
        let is_usable = concurrency.is_finite() && concurrency > 0.0 && latency > 0.0;
        if !is_usable {
            return;
        }
        let is_queued = is_queued && concurrency >= self.most() * NEAR_MOST;
        let place = rounding::floor(concurrency.max(1.0).log2() * POINTS_PER_OCTAVE);
        let seen = CurvePoint {
            concurrency,
            latency,
            at: now,
            seen: 0,
        };
        let point = self.points.entry(place).or_insert(seen);
        point.concurrency = blend(point.concurrency, concurrency);
        point.latency = blend(point.latency, latency);
        point.at = now;
        point.seen = (point.seen + 1).min(MOST_SEEN);
        if is_queued {
            let before = self.full.unwrap_or(concurrency);
            self.full = Some(blend(before, concurrency));
        } else if self.full.is_some_and(|full| concurrency > full) {
            self.full = Some(concurrency);
        }
    }

    /// The largest concurrency that was seen.
    fn most(&self) -> f64 {
        let last = self.points.values().next_back();
        last.map_or(0.0, |point| point.concurrency)
    }

    /// Drops points that are too old.
    pub fn prune(&mut self, now: Moment) {
        self.points
            .retain(|_, point| now.since(point.at) <= MAX_AGE);
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Concurrency at which requests had to wait, if they ever had.
    pub fn full(&self) -> Option<f64> {
        self.full
    }

    /// The latency line, by least squares over points that weigh as often and as recently as they were seen.
    /// Where concurrency varied too little for a slope, the latency is taken to double at a third of
    /// `resident`, the sequences that fit into the KV cache.
    pub fn line(&self, resident: Option<f64>, now: Moment) -> Option<LatencyLine> {
        let weighted: Vec<(f64, &CurvePoint)> = (self.points.values())
            .map(|point| (point.weight(now), point))
            .collect();
        let whole: f64 = weighted.iter().map(|(weight, _)| weight).sum();
        let mean = |read: fn(&CurvePoint) -> f64| {
            let sum: f64 = weighted
                .iter()
                .map(|(weight, point)| weight * read(point))
                .sum();
            (whole > 0.0).then_some(sum / whole)
        };
        let concurrency = mean(|point| point.concurrency)?;
        let latency = mean(|point| point.latency)?;
        let (mut covariance, mut variance) = (0.0, 0.0);
        for (weight, point) in &weighted {
            let distance = point.concurrency - concurrency;
            covariance += weight * distance * (point.latency - latency);
            variance += weight * distance * distance;
        }
        let through = |slope: f64| LatencyLine {
            slope,
            intercept: slope.mul_add(-concurrency, latency),
        };
        let fitted = (self.has_spread() && variance > 0.0).then(|| through(covariance / variance));
        let is_sound = |line: &LatencyLine| line.slope >= 0.0 && line.intercept > 0.0;
        fitted.filter(is_sound).or_else(|| {
            let doubles_at = resident.filter(|resident| *resident > 0.0)? / 3.0;
            Some(through(latency / (doubles_at + concurrency)))
        })
    }

    fn has_spread(&self) -> bool {
        let mut points = self.points.values();
        let first = points.next().map_or(0.0, |point| point.concurrency);
        self.most() >= first * SPREAD
    }
}

impl CurvePoint {
    fn weight(&self, now: Moment) -> f64 {
        let age = now.since(self.at).as_secs_f64() / RECENT.as_secs_f64();
        f64::from(self.seen) * ((-age).exp() + LASTING)
    }
}

fn blend(known: f64, seen: f64) -> f64 {
    GAIN.mul_add(seen - known, known)
}
