//! Inter-token latency over concurrency, learned from what replicas show.
//!
//! Generated tokens per second times the latency of a token is the mean number of sequences that were
//! generated at once (Little's law), over one and the same window. So the pair needs no gauge of a
//! moment, no size of the KV cache and no arguments of the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rounding;
use crate::throughput::line::{Fit, LatencyLine};
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
        };
        let point = self.points.entry(place).or_insert(seen);
        point.concurrency = blend(point.concurrency, concurrency);
        point.latency = blend(point.latency, latency);
        point.at = now;
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

    /// The latency line, through the point that was seen last: older ones may be of other requests, and
    /// give the slope alone. Where concurrency varied too little for a slope, the latency is taken to
    /// double at a third of `resident`, the sequences that fit into the KV cache.
    pub fn line(&self, resident: Option<f64>) -> Option<LatencyLine> {
        let latest = self.points.values().max_by_key(|point| point.at)?;
        let through = |slope: f64| LatencyLine {
            slope,
            intercept: slope.mul_add(-latest.concurrency, latest.latency),
        };
        let fitted = self.fit().map(|line| through(line.slope));
        fitted.filter(|line| line.intercept > 0.0).or_else(|| {
            let doubles_at = resident.filter(|resident| *resident > 0.0)? / 3.0;
            Some(through(latest.latency / (doubles_at + latest.concurrency)))
        })
    }

    fn fit(&self) -> Option<LatencyLine> {
        let (first, last) = (
            self.points.values().next()?,
            self.points.values().next_back()?,
        );
        let points = self.points.values();
        let fit = (last.concurrency >= first.concurrency * SPREAD)
            .then(|| Fit::of(points.map(|point| (point.concurrency, point.latency))))?;
        fit.map(|fit| fit.line).filter(|line| line.slope >= 0.0)
    }
}

fn blend(known: f64, seen: f64) -> f64 {
    GAIN.mul_add(seen - known, known)
}
