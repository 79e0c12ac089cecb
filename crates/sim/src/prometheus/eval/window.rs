//! Reads series over ranges. A range is open to the left: a sample at its very beginning does not
//! belong to it.

use super::rows::{Row, Steps, merge};
use super::{View, unnamed};
use crate::number::length;
use crate::prometheus::number::seconds;
use crate::prometheus::promql::{RangeFunction, Ranged, SeriesSelector, Subquery};
use crate::prometheus::refusal::QueryRefusal;
use crate::prometheus::store::Point;

impl View<'_> {
    /// One value per window that has samples.
    pub(super) fn over_time(
        &self,
        function: RangeFunction,
        ranged: &Ranged,
        steps: Steps,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let mut rows = match ranged {
            Ranged::Samples(selector, range) => {
                self.of_samples(function, selector, *range, steps)?
            }
            Ranged::Subquery(subquery) => self.of_subquery(function, subquery, steps)?,
        };
        rows.retain(|row| row.values.iter().any(Option::is_some));
        match function {
            RangeFunction::Last => merge(rows),
            _ => unnamed(rows),
        }
    }

    fn of_samples(
        &self,
        function: RangeFunction,
        selector: &SeriesSelector,
        range: i64,
        steps: Steps,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let mut points = Vec::new();
        let is_named = function == RangeFunction::Last;
        let rows = self.series(selector, steps)?.into_iter().map(|series| {
            let values = steps.times().map(|end| {
                let start = end.saturating_sub(range);
                points.clear();
                points.extend(series.between(start, end.min(self.visible)));
                over(function, &points, start, end)
            });
            let labels = if is_named { &series.labels } else { &series.unnamed };
            Row { values: values.collect(), labels: labels.clone() }
        });
        Ok(rows.collect())
    }

    fn of_subquery(
        &self,
        function: RangeFunction,
        Subquery { of, range, step }: &Subquery,
        steps: Steps,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let inner = steps.inner(*range, *step)?;
        let windows = |row: Row| {
            let present = inner.times().zip(row.values);
            let points: Vec<Point> = present
                .filter_map(|(time, value)| value.map(|value| Point { time, value }))
                .collect();
            let values = steps.times().map(|end| {
                let start = end.saturating_sub(*range);
                let first = points.partition_point(|point| point.time <= start);
                let last = points.partition_point(|point| point.time <= end);
                let inside = points.get(first..last).unwrap_or_default();
                over(function, inside, start, end)
            });
            Row { values: values.collect(), labels: row.labels }
        };
        Ok(self.eval(of, inner)?.into_iter().map(windows).collect())
    }
}

/// The ends of the range are in milliseconds.
fn over(function: RangeFunction, points: &[Point], start: i64, end: i64) -> Option<f64> {
    let last = points.last()?;
    match function {
        RangeFunction::Count => Some(length(points.len())),
        RangeFunction::Last => Some(last.value),
        // A number wins over NaN.
        RangeFunction::Max => points.iter().map(|point| point.value).reduce(f64::max),
        RangeFunction::Rate => rate(points, start, end),
    }
}

/// How much a counter grew per second, across its resets. A single sample says nothing.
///
/// Samples rarely lie at the ends of the range. The growth between first and last sample is extended
/// to an end that is nearer than 1.1 times the mean distance of samples, else by half that distance,
/// because the series then began or ended there. A counter is not extended below zero. Source: `extrapolatedRate` of
/// Prometheus.
fn rate(points: &[Point], start: i64, end: i64) -> Option<f64> {
    let [first, .., last] = points else {
        return None;
    };
    let mut grown = last.value - first.value;
    let pairs = points.iter().zip(points.iter().skip(1));
    for (before, after) in pairs {
        if after.value < before.value {
            grown += before.value;
        }
    }
    let sampled = seconds(last.time - first.time);
    let distance = sampled / length(points.len() - 1);
    let threshold = distance * 1.1;
    let mut to_start = seconds(first.time - start);
    let mut to_end = seconds(end - last.time);
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
    Some(grown / seconds(end - start))
}
