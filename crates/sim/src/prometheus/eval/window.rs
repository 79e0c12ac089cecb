//! Reads series over ranges. A range is open to the left: a sample at its very beginning does not
//! belong to it.

use super::rate::rate;
use super::rows::{Row, Steps, merge};
use super::{View, unnamed};
use crate::number::length;
use crate::prometheus::promql::{RangeFunction, Ranged, Selector, Subquery};
use crate::prometheus::refusal::QueryRefusal;
use crate::prometheus::store::Point;

#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'p> {
    pub(super) points: &'p [Point],
    /// The ends of the range, in milliseconds.
    pub(super) start: i64,
    pub(super) end: i64,
}

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
        selector: &Selector,
        range: i64,
        steps: Steps,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let mut points = Vec::new();
        let rows = self.series(selector, steps)?.into_iter().map(|series| {
            let values = steps.times().map(|end| {
                let start = end.saturating_sub(range);
                points.clear();
                points.extend(series.between(start, end.min(self.visible)));
                over(function, &points, start, end)
            });
            Row { values: values.collect(), labels: series.labels.clone() }
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

fn over(function: RangeFunction, points: &[Point], start: i64, end: i64) -> Option<f64> {
    let last = points.last()?;
    match function {
        RangeFunction::Count => Some(length(points.len())),
        RangeFunction::Last => Some(last.value),
        // A number wins over NaN.
        RangeFunction::Max => points.iter().map(|point| point.value).reduce(f64::max),
        RangeFunction::Rate => rate(Window { points, start, end }),
    }
}
