//! The latest observations behind a line.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::line::Fit;
use super::readings::RATE_WINDOW;
use wva_base::moment::Moment;

pub(crate) const WINDOW_SIZE: usize = 20;
pub(crate) const MIN_SAMPLES: usize = 10;
pub(crate) const MAX_AGE: Duration = Duration::from_mins(30);
/// Share of the variance that a line must explain to be one.
pub(crate) const MIN_DETERMINATION: f64 = 0.5;

/// What x may be, and how far it must be spread to separate slope and intercept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Domain {
    /// Least x that says something about the slope.
    pub least: f64,
    /// Largest x that does.
    pub most: f64,
    pub spread: Spread,
}

/// The distance between the least and the largest x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spread {
    /// In units of x.
    Absolute(f64),
    /// As a share of the largest x.
    OfLargest(f64),
}

impl Domain {
    /// KV usage: below, latency is mostly the intercept; above, it is preemption.
    pub(crate) const USAGE: Self = Self { least: 0.15, most: 0.85, spread: Spread::Absolute(0.30) };
    /// Prompt tokens.
    pub(crate) const TOKENS: Self =
        Self { least: 1.0, most: f64::MAX, spread: Spread::OfLargest(0.30) };
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct LatencyObservation {
    pub at: Moment,
    /// What the latency depends on.
    pub x: f64,
    /// Latency in seconds.
    pub latency: f64,
}

/// The time that the observations behind a line span. A window holds few of them where a variant has
/// many replicas, so that it is kept separately.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// The oldest observation behind any fit.
    pub from: Moment,
    pub until: Moment,
}

impl Proof {
    /// What a fit of the window adds to what was known.
    pub(crate) fn extend(known: Option<Self>, window: &ObservationWindow) -> Option<Self> {
        let (first, last) = (window.observations.front()?, window.observations.back()?);
        Some(Self {
            from: known.map_or(first.at, |known| known.from.min(first.at)),
            until: last.at,
        })
    }

    /// Whether the observations are of two distinct rate windows at least.
    pub(crate) fn is_given(self) -> bool {
        self.until.since(self.from) >= RATE_WINDOW
    }
}

/// The latest observations of a variant, oldest first, bounded by [`WINDOW_SIZE`] and [`MAX_AGE`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ObservationWindow {
    observations: VecDeque<LatencyObservation>,
}

impl ObservationWindow {
    /// Adds points of a latency in seconds over what it depends on, and drops what is older than [`MAX_AGE`]. A point
    /// outside of the domain, or without a latency, is left out.
    pub(super) fn learn(
        &mut self,
        points: impl Iterator<Item = (f64, f64)>,
        domain: Domain,
        now: Moment,
    ) {
        for (x, latency) in points {
            let is_inside = (domain.least..=domain.most).contains(&x);
            if is_inside && latency.is_finite() && latency > 0.0 {
                while self.observations.len() >= WINDOW_SIZE {
                    self.observations.pop_front();
                }
                let observation = LatencyObservation { at: now, x, latency };
                self.observations.push_back(observation);
            }
        }
        self.observations.retain(|observation| now.since(observation.at) <= MAX_AGE);
    }

    pub(crate) fn clear(&mut self) {
        self.observations.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.observations.len()
    }

    /// Whether there is enough to separate slope and intercept.
    pub(crate) fn is_ready(&self, domain: Domain) -> bool {
        let all = || self.observations.iter().map(|observation| observation.x);
        let largest = all().fold(f64::MIN, f64::max);
        let spread = largest - all().fold(f64::MAX, f64::min);
        let needed = match domain.spread {
            Spread::Absolute(distance) => distance,
            Spread::OfLargest(share) => share * largest,
        };
        // Usages are decimal fractions: 0.45 - 0.15 must count as 0.30.
        self.len() >= MIN_SAMPLES && spread >= needed * (1.0 - 1e-9)
    }

    /// The line through a window that is ready, where it rises, is positive at the end of the domain
    /// and explains at least [`MIN_DETERMINATION`].
    pub(crate) fn fit(&self, domain: Domain) -> Option<Fit> {
        if !self.is_ready(domain) {
            return None;
        }
        let points = self.observations.iter().map(|one| (one.x, one.latency));
        Fit::of(points)
            .filter(|fit| fit.line.is_valid(domain.most) && fit.determination >= MIN_DETERMINATION)
    }
}
