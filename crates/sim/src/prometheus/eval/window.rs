//! Reads series over ranges. A range is open to the left: a sample at its very beginning does not
//! belong to it.

use super::rows::{Row, Steps, distinct};
use super::{View, misplaced};
use crate::prometheus::promql::{Expr, Subquery};
use crate::prometheus::refusal::QueryRefusal;
use crate::prometheus::store::Point;

/// The samples of one series in one range; there is at least one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'p> {
    pub(super) points: &'p [Point],
    /// The ends of the range, in milliseconds.
    pub(super) start: i64,
    pub(super) end: i64,
}

/// What becomes of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Kept,
    Dropped,
}

impl View<'_> {
    /// One value per window that has samples.
    pub(super) fn windows(
        &self,
        ranged: &Expr,
        steps: Steps,
        name: Name,
        value: impl Fn(Window<'_>) -> Option<f64>,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let mut rows = match ranged {
            Expr::Range(selector, range) => {
                let series = self.series(selector, steps)?;
                let mut points = Vec::new();
                let row = |series: &&crate::prometheus::store::StoredSeries| {
                    let values = steps.times().map(|time| {
                        let end = time.saturating_sub(selector.offset);
                        let start = end.saturating_sub(*range);
                        points.clear();
                        points.extend(series.between(start, end.min(self.visible)));
                        filled(&points, start, end).and_then(&value)
                    });
                    Row {
                        values: values.collect(),
                        labels: series.labels.clone(),
                    }
                };
                series.iter().map(row).collect()
            }
            Expr::Subquery(subquery) => self.of_subquery(subquery, steps, &value)?,
            _ => return Err(misplaced()),
        };
        rows.retain(|row| row.values.iter().any(Option::is_some));
        if name == Name::Dropped {
            for row in &mut rows {
                row.labels = row.labels.unnamed();
            }
        }
        distinct(rows)
    }

    fn of_subquery(
        &self,
        subquery: &Subquery,
        steps: Steps,
        value: &impl Fn(Window<'_>) -> Option<f64>,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let Subquery {
            of,
            range,
            step,
            offset,
        } = subquery;
        let inner = steps.inner(*range, *step, *offset)?;
        let rows = match self.eval(of, inner)? {
            super::Value::Vector(rows) => rows,
            super::Value::Scalar(values) => vec![Row {
                labels: super::LabelSet::default(),
                values: values.into_iter().map(Some).collect(),
            }],
        };
        let windows = |row: Row| {
            let points: Vec<Point> = inner
                .times()
                .zip(row.values)
                .filter_map(|(time, value)| {
                    Some(Point {
                        time,
                        value: value?,
                    })
                })
                .collect();
            let values = steps.times().map(|time| {
                let end = time.saturating_sub(*offset);
                let start = end.saturating_sub(*range);
                let first = points.partition_point(|point| point.time <= start);
                let last = points.partition_point(|point| point.time <= end);
                let inside = points.get(first..last).unwrap_or_default();
                filled(inside, start, end).and_then(value)
            });
            Row {
                values: values.collect(),
                labels: row.labels,
            }
        };
        Ok(rows.into_iter().map(windows).collect())
    }
}

fn filled(points: &[Point], start: i64, end: i64) -> Option<Window<'_>> {
    (!points.is_empty()).then_some(Window { points, start, end })
}
