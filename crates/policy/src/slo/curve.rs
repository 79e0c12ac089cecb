//! Inter-token latency over work, learned from what replicas show.
//!
//! A step of an engine takes a fixed time, a time for each sequence, and a time for each prompt token that is
//! computed with it. Let `r` be the work that a replica does per second and `n` the sequences that it generates
//! at once; by Little's law `n` is its generated tokens per second times the latency of a token. Then the
//! latency is `a / (1 - r / R)`: `a` of an empty engine, and without bound as the work nears `R`. Its inverse is
//! a straight line over the work, which is fitted. It needs no gauge of a moment, no size of the KV cache and no
//! arguments of the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rounding;
use wva_base::moment::Moment;

const MAX_AGE: Duration = Duration::from_hours(6);
/// Weight of a new observation in its point.
const GAIN: f64 = 0.2;
/// Weight of a lower rate at which requests waited.
const FULL_GAIN: f64 = 0.05;
/// Points that double the work.
const POINTS_PER_OCTAVE: f64 = 2.0;
/// Share of the most work seen from which on waiting requests show that a replica is full. Below, they waited
/// for a moment of the window that work is averaged over.
const NEAR_MOST: f64 = 0.8;
/// Looks at a point that count.
const MOST_SEEN: u32 = 20;
/// Time constant by which a point loses weight.
const RECENT: Duration = Duration::from_mins(10);
/// Weight of a point that is not recent, to that of a recent one. Old points may be of other requests; they
/// keep the slope known while work does not vary.
const LASTING: f64 = 0.1;
/// Ratio of the most to the least work from which on a line is fitted.
const SPREAD: f64 = 1.9;
/// The same from which on points that were each seen so often bound the law that is assumed until then.
const SOME_SPREAD: f64 = 1.4;
const OFTEN: u32 = 8;
/// Most work of a fitted law, to that of the line through its ends. Many looks at much the same work give a
/// slope that is noise.
const BEYOND: f64 = 1.5;
/// Sequences that fit into the KV cache to those whose work doubles the latency of an empty engine, where no slope is
/// known. Source: the engines that the simulator is fitted to have 2 to 5.2, with prompts and answers of chat.
const DOUBLING: f64 = 4.0;

/// Latency of a token at one rate of work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Work per second.
    pub work: f64,
    /// Tokens per second of one sequence: the inverse of the latency.
    pub pace: f64,
    /// When it was seen last.
    pub at: Moment,
    /// How often it was seen, up to 20.
    pub seen: u32,
}

/// What is known of the latency of one engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyCurve {
    points: BTreeMap<u32, CurvePoint>,
    /// Work at which requests had to wait, smoothed.
    full: Option<f64>,
}

/// Latency as a function of work: `idle / (1 - work / most)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyLaw {
    /// Seconds between tokens of an engine without other work.
    pub idle: f64,
    /// Work per second that no engine of the kind reaches.
    pub most: f64,
    /// Whether work varied too little for a slope, so that the latency at more of it is a guess.
    pub is_assumed: bool,
}

impl LatencyLaw {
    /// Seconds between tokens at a rate of work below the most.
    pub fn at(self, work: f64) -> f64 {
        self.idle / (1.0 - work / self.most)
    }

    /// Work at which the latency is so long; 0 where it is longer without any.
    pub fn work_within(self, latency: f64) -> f64 {
        self.most * (1.0 - self.idle / latency).max(0.0)
    }

    /// Work at which so many sequences are generated at once, where a part of the work is generated tokens.
    pub fn work_of(self, sequences: f64, generated: f64) -> f64 {
        sequences / (generated * self.idle + sequences / self.most)
    }
}

impl LatencyCurve {
    /// Takes one replica in: work per second, seconds between tokens, and whether requests waited for it.
    pub fn observe(&mut self, work: f64, latency: f64, is_queued: bool, now: Moment) {
        let pace = latency.recip();
        let is_usable = work.is_finite() && work > 0.0 && pace.is_finite() && pace > 0.0;
        if !is_usable {
            return;
        }
        let is_queued = is_queued && work >= self.most() * NEAR_MOST;
        let octave = rounding::floor(work.max(1.0).log2() * POINTS_PER_OCTAVE);
        let point =
            self.points.entry(octave).or_insert(CurvePoint { work, pace, at: now, seen: 0 });
        point.work = blend(point.work, work);
        point.pace = blend(point.pace, pace);
        point.at = now;
        point.seen = (point.seen + 1).min(MOST_SEEN);
        self.full = match self.full {
            None => is_queued.then_some(work),
            Some(full) if work > full => Some(work),
            // The window may have begun before requests waited.
            Some(full) if is_queued => Some(FULL_GAIN.mul_add(work - full, full)),
            known => known,
        };
    }

    pub(super) fn most(&self) -> f64 {
        let last = self.points.values().next_back();
        last.map_or(0.0, |point| point.work)
    }

    /// The curve with the point alone that was seen last, which has no slope.
    pub(super) fn newest(&self) -> Self {
        let newest = self.points.iter().max_by_key(|(_, point)| point.at);
        Self {
            points: newest.map(|(place, point)| (*place, *point)).into_iter().collect(),
            full: self.full,
        }
    }

    /// Drops points that are too old.
    pub fn prune(&mut self, now: Moment) {
        self.points.retain(|_, point| now.since(point.at) <= MAX_AGE);
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Work at which requests had to wait, if they ever had.
    pub fn full(&self) -> Option<f64> {
        self.full
    }

    /// The law, by least squares over points that weigh as often and as recently as they were seen. Where work
    /// varied too little for a slope, the latency is taken to double at the work of a quarter of `resident`, the sequences
    /// that fit into the KV cache, if they do nothing but generate: prompts slow tokens down as much as their work says.
    /// Then an empty engine is at least twice as fast as the `objective`, seconds between tokens, which latency that is
    /// seen exceeds: it is that of load.
    pub fn law(&self, resident: Option<f64>, objective: f64, now: Moment) -> Option<LatencyLaw> {
        let weighted: Vec<(f64, &CurvePoint)> =
            (self.points.values()).map(|point| (point.weight(now), point)).collect();
        let whole: f64 = weighted.iter().map(|(weight, _)| weight).sum();
        let mean = |read: fn(&CurvePoint) -> f64| {
            let sum: f64 = (weighted.iter()).map(|(weight, point)| weight * read(point)).sum();
            (whole > 0.0).then_some(sum / whole)
        };
        let work = mean(|point| point.work)?;
        let pace = mean(|point| point.pace)?;
        let (mut covariance, mut variance) = (0.0, 0.0);
        for (weight, point) in &weighted {
            let distance = point.work - work;
            covariance += weight * distance * (point.pace - pace);
            variance += weight * distance * distance;
        }
        let slope = covariance / variance;
        if self.varies_by(SPREAD) && variance > 0.0 && slope < 0.0 {
            let highest = slope.mul_add(-work, pace);
            let end = self.end() * BEYOND;
            return Some(LatencyLaw {
                idle: highest.recip(),
                most: (-highest / slope).min(end),
                is_assumed: false,
            });
        }
        let resident = resident.filter(|resident| *resident > 0.0);
        let by_cache = resident.map(|resident| pace + DOUBLING * work / resident);
        let by_objective = (pace * objective < 1.0).then_some(2.0 / objective);
        let highest = by_cache.into_iter().chain(by_objective).reduce(f64::max)?;
        let assumed = work / (1.0 - pace / highest);
        let most = assumed.min(self.end_by_ends() * BEYOND);
        Some(LatencyLaw { idle: (1.0 - work / most) / pace, most, is_assumed: true })
    }

    /// Where the line through the fastest point and that of the most work ends.
    fn end(&self) -> f64 {
        let points = self.points.values();
        let fastest = points.reduce(|one, other| if other.pace > one.pace { other } else { one });
        let last = self.points.values().next_back();
        let ends = fastest.zip(last).filter(|(one, last)| one.pace > last.pace);
        ends.map_or(f64::INFINITY, |(fastest, last)| {
            let slope = (last.work - fastest.work) / (fastest.pace - last.pace);
            slope.mul_add(last.pace, last.work)
        })
    }

    /// The same where work varied too little for a slope to be fitted, but the first and the last point were seen often.
    fn end_by_ends(&self) -> f64 {
        let points = self.points.values();
        let often = points.filter(|point| point.seen >= OFTEN).count();
        if often == self.points.len() && self.varies_by(SOME_SPREAD) {
            self.end()
        } else {
            f64::INFINITY
        }
    }

    fn varies_by(&self, ratio: f64) -> bool {
        let first = self.points.values().next();
        first.is_some_and(|first| self.most() >= first.work * ratio)
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
