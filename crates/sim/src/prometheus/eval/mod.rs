//! Evaluates expressions, by the rules of Prometheus 3.

mod rows;
mod window;

use self::rows::{Row, Steps};
use super::labels::LabelSet;
use super::number::{is_stale, seconds};
use super::promql::{Expr, Query, SeriesSelector, Subquery};
use super::refusal::QueryRefusal;
use super::store::{Point, SeriesStore, StoredSeries};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QueryValue {
    Vector(Vec<VectorSample>),
    /// Values of each series at several moments.
    Matrix(Vec<Past>),
}

impl QueryValue {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Vector(_) => "vector",
            Self::Matrix(_) => "matrix",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VectorSample {
    /// With the name among them where the result has one.
    pub(crate) labels: LabelSet,
    pub(crate) value: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    pub(crate) labels: LabelSet,
    /// Each with its time in milliseconds.
    pub(crate) values: Vec<(i64, f64)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) store: &'a SeriesStore,
    /// How far back an instant selector looks, in milliseconds.
    pub(super) look_back: i64,
    /// The time of the newest sample that is known.
    pub(super) visible: i64,
}

impl View<'_> {
    /// The value of a query at a time: of a subquery, at each of its steps.
    pub(super) fn answer(&self, query: &Query, at: i64) -> Result<QueryValue, QueryRefusal> {
        Ok(match query {
            Query::Instant(expression) => {
                let rows = self.eval(expression, Steps::once(at))?;
                QueryValue::Vector(rows.into_iter().filter_map(sample).collect())
            }
            Query::Past(Subquery { of, range, step }) => {
                let steps = Steps::once(at).inner(*range, *step)?;
                let rows = self.eval(of, steps)?;
                let past = rows.into_iter().map(|row| Past {
                    labels: row.labels,
                    values: (steps.times().zip(row.values))
                        .filter_map(|(time, value)| Some((time, value?)))
                        .collect(),
                });
                QueryValue::Matrix(past.filter(|past| !past.values.is_empty()).collect())
            }
        })
    }

    fn eval(&self, expression: &Expr, steps: Steps) -> Result<Vec<Row>, QueryRefusal> {
        match expression {
            Expr::Selector(selector) => {
                self.live(selector, steps, |series| &series.labels, |point| point.value)
            }
            Expr::Timestamp(selector) => {
                let time = |point: Point| seconds(point.time);
                rows::merge(self.live(selector, steps, |series| &series.unnamed, time)?)
            }
            Expr::OverTime(function, ranged) => self.over_time(*function, ranged, steps),
            Expr::Labelled { of, label, value } => {
                let mut rows = self.eval(of, steps)?;
                for row in &mut rows {
                    row.labels = row.labels.with(label, value);
                }
                rows::merge(rows)
            }
            Expr::Aggregate(how, grouping, inner) => {
                let rows = self.eval(inner, steps)?;
                Ok(rows::aggregate(*how, grouping, rows, steps))
            }
            Expr::Or { left, right, on } => {
                let (left, right) = (self.eval(left, steps)?, self.eval(right, steps)?);
                rows::either(on.as_deref(), left, right)
            }
            Expr::Now => Ok(vec![Row {
                labels: LabelSet::default(),
                values: steps.times().map(|time| Some(seconds(time))).collect(),
            }]),
            Expr::Ago(inner) => {
                let mut rows = self.eval(inner, steps)?;
                for row in &mut rows {
                    for (value, time) in row.values.iter_mut().zip(steps.times()) {
                        *value = value.map(|value| seconds(time) - value);
                    }
                }
                unnamed(rows)
            }
            Expr::Above(inner, number) => {
                let mut rows = self.eval(inner, steps)?;
                for value in rows.iter_mut().flat_map(|row| &mut row.values) {
                    *value = value.filter(|value| value > number);
                }
                Ok(rows)
            }
        }
    }

    fn series(
        &self,
        selector: &SeriesSelector,
        steps: Steps,
    ) -> Result<Vec<&StoredSeries>, QueryRefusal> {
        let series = self.store.select(selector);
        steps.bound(series.len())?;
        Ok(series)
    }

    /// What is read of the newest sample of each series that is live.
    fn live(
        &self,
        selector: &SeriesSelector,
        steps: Steps,
        labels: fn(&StoredSeries) -> &LabelSet,
        read: impl Fn(Point) -> f64,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let series = self.series(selector, steps)?;
        let rows = series.into_iter().filter_map(|series| {
            let value = |time: i64| {
                let newest = series.newest(time.min(self.visible))?;
                let live = newest.time > time.saturating_sub(self.look_back);
                (live && !is_stale(newest.value)).then(|| read(newest))
            };
            let values: Vec<Option<f64>> = steps.times().map(value).collect();
            values
                .iter()
                .any(Option::is_some)
                .then(|| Row { labels: labels(series).clone(), values })
        });
        Ok(rows.collect())
    }
}

fn unnamed(mut rows: Vec<Row>) -> Result<Vec<Row>, QueryRefusal> {
    for row in &mut rows {
        row.labels = row.labels.unnamed();
    }
    rows::merge(rows)
}

fn sample(row: Row) -> Option<VectorSample> {
    let value = row.values.first().copied()??;
    Some(VectorSample { labels: row.labels, value })
}
