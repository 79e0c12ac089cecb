//! Straight lines of latency: inter-token latency over KV usage, time to first token over tokens.

use serde::{Deserialize, Serialize};

use super::average::mean;

const FLAT_SLOPE: f64 = 1e-12;

/// `latency(x) = slope * x + intercept`, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyLine {
    /// Seconds per unit of x (A).
    pub slope: f64,
    /// Seconds at x = 0 (B).
    pub intercept: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    pub line: LatencyLine,
    /// Share of the variance of the latencies that it explains (R²), at most 1.
    pub determination: f64,
}

impl LatencyLine {
    /// Latency at `x`, in seconds.
    pub fn at(self, x: f64) -> f64 {
        self.slope.mul_add(x, self.intercept)
    }

    pub(crate) fn is_valid(self, full: f64) -> bool {
        self.rises() && self.intercept.is_finite() && self.at(full) > 0.0
    }

    /// Units of x per second where the intercept no longer counts: `1/A`. For a line over prompt
    /// tokens these are input tokens per second. None where the line does not rise.
    pub(crate) fn asymptotic_rate(self) -> Option<f64> {
        self.rises().then(|| self.slope.recip())
    }

    /// The slope through given points when the intercept is known, `sum((y - B) x) / sum(x²)`. Points
    /// at x = 0 say nothing about it; none where all are.
    pub(crate) fn pinned(points: &[(f64, f64)], intercept: f64) -> Option<Self> {
        let points = sorted(points.iter().copied().filter(|(x, _)| *x > 0.0));
        let (mut product, mut square) = (0.0, 0.0);
        for (x, y) in points {
            product += (y - intercept) * x;
            square += x * x;
        }
        (square > 0.0).then(|| Self { slope: product / square, intercept })
    }

    fn rises(self) -> bool {
        self.slope.is_finite() && self.slope > FLAT_SLOPE
    }
}

impl Fit {
    /// Ordinary least squares; none where all x are equal or nothing is given.
    pub fn of(points: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let points = sorted(points);
        let mean_x = mean(points.iter().map(|(x, _)| *x))?;
        let mean_y = mean(points.iter().map(|(_, y)| *y))?;
        let (mut covariance, mut variance, mut total) = (0.0, 0.0, 0.0);
        for (x, y) in &points {
            covariance += (x - mean_x) * (y - mean_y);
            variance += (x - mean_x) * (x - mean_x);
            total += (y - mean_y) * (y - mean_y);
        }
        if variance <= FLAT_SLOPE {
            return None;
        }
        let slope = covariance / variance;
        let line = LatencyLine { slope, intercept: mean_y - slope * mean_x };
        let missed: f64 = points.iter().map(|(x, y)| (y - line.at(*x)).powi(2)).sum();
        let determination = if total > 0.0 { 1.0 - missed / total } else { 1.0 };
        Some(Self { line, determination })
    }
}

/// In one order, so that the order of the input cannot move the last digit of a sum.
fn sorted(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = points.collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    points
}
