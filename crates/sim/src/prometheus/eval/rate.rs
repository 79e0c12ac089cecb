//! Growth per second over a range, extrapolated to its ends. Source: `extrapolatedRate` of Prometheus.

use super::window::Window;
use crate::number::length;
use crate::prometheus::number::seconds;

/// How much a counter grew per second, across its resets. A single sample says nothing.
///
/// Samples rarely lie at the ends of the range. The growth between first and last sample is extended
/// to an end that is nearer than 1.1 times the mean distance of samples, else by half that distance,
/// because the series then began or ended there. A counter is not extended below zero.
pub(super) fn rate(window: Window<'_>) -> Option<f64> {
    let [first, .., last] = window.points else {
        return None;
    };
    let mut grown = last.value - first.value;
    let pairs = window.points.iter().zip(window.points.iter().skip(1));
    for (before, after) in pairs {
        if after.value < before.value {
            grown += before.value;
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
    if grown > 0.0 && first.value >= 0.0 {
        to_start = to_start.min(sampled * (first.value / grown));
    }
    if to_end >= threshold {
        to_end = distance / 2.0;
    }
    let grown = grown * ((sampled + to_start + to_end) / sampled);
    Some(grown / seconds(window.end - window.start))
}
