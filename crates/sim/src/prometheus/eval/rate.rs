//! Growth over a range, extrapolated to its ends. Source: `extrapolatedRate` of Prometheus.

use super::window::Window;
use crate::number::length;
use crate::prometheus::number::seconds;

/// What grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// Only grows, but for resets to zero.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// How much a series grew over the whole range. A single sample says nothing.
///
/// Samples rarely lie at the ends of the range. The growth between first and last sample is extended
/// to an end that is nearer than 1.1 times the mean distance of samples, else by half that distance,
/// because the series then began or ended there. A counter is not extended below zero.
pub(super) fn growth(window: Window<'_>, course: Course) -> Option<f64> {
    let [first, .., last] = window.points else {
        return None;
    };
    let mut grown = last.value - first.value;
    if course == Course::Counter {
        let pairs = window.points.iter().zip(window.points.iter().skip(1));
        for (before, after) in pairs {
            if after.value < before.value {
                grown += before.value;
            }
        }
    }
    let sampled = seconds(last.time - first.time);
    let distance = sampled / length(window.points.len() - 1);
    let threshold = distance * 1.1;
    let mut to_start = seconds(first.time - window.start);
    let mut to_end = seconds(window.end - last.time);
    if to_start >= threshold {
        to_start = distance / 2.0;
    }
    if course == Course::Counter && grown > 0.0 && first.value >= 0.0 {
        let to_zero = sampled * (first.value / grown);
        if to_zero < to_start {
            to_start = to_zero;
        }
    }
    if to_end >= threshold {
        to_end = distance / 2.0;
    }
    Some(grown * ((sampled + to_start + to_end) / sampled))
}

/// How much a series grew per second.
pub(super) fn rate(window: Window<'_>) -> Option<f64> {
    Some(growth(window, Course::Counter)? / seconds(window.end - window.start))
}
