//! Evaluates expressions, by the rules of Prometheus 3.

mod aggregate;
mod binary;
mod functions;
mod quantile;
mod rate;
mod rows;
mod scalar;
mod select;
mod window;

use self::rows::{Row, Steps};
use super::labels::LabelSet;
use super::matcher::Matcher;
use super::pattern::Patterns;
use super::promql::{Expr, Kind};
use super::refusal::QueryRefusal;
use super::store::SeriesStore;

/// What an expression comes to at one time.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryValue {
    /// A number.
    Scalar(f64),
    /// One value per series.
    Vector(Vec<VectorSample>),
    /// Values of each series at several moments.
    Matrix(Vec<Past>),
}

impl QueryValue {
    /// What it is called in an answer.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            Self::Vector(_) => "vector",
            Self::Matrix(_) => "matrix",
        }
    }
}

/// The value of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorSample {
    /// The labels, the name among them where the result has one.
    pub labels: LabelSet,
    /// The value.
    pub value: f64,
}

/// One series of an answer, at several moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// The series.
    pub labels: LabelSet,
    /// Its values, each with its time in milliseconds.
    pub values: Vec<(i64, f64)>,
}

/// The samples that a query sees.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) store: &'a SeriesStore,
    /// How far back an instant selector looks, in milliseconds.
    pub(super) look_back: i64,
    /// The time of the newest sample that is known.
    pub(super) visible: i64,
    /// Patterns that stand in expressions as texts.
    pub(super) patterns: &'a Patterns,
    /// Series that are left out.
    pub(super) hidden: Option<&'a Matcher>,
}

/// What an expression comes to at each of some steps.
#[derive(Debug)]
enum Value {
    Scalar(Vec<f64>),
    Vector(Vec<Row>),
}

impl View<'_> {
    /// What an expression comes to at a time: of a subquery, at each of its steps.
    pub(super) fn instant(&self, expression: &Expr, at: i64) -> Result<QueryValue, QueryRefusal> {
        if let Expr::Subquery(subquery) = expression {
            let (range, step, offset) = (subquery.range, subquery.step, subquery.offset);
            let steps = Steps::once(at).inner(range, step, offset)?;
            let rows = self.vector(&subquery.of, steps)?;
            let past = rows.into_iter().map(|row| Past {
                labels: row.labels,
                values: (steps.times().zip(row.values))
                    .filter_map(|(time, value)| Some((time, value?)))
                    .collect(),
            });
            return Ok(QueryValue::Matrix(
                past.filter(|past| !past.values.is_empty()).collect(),
            ));
        }
        if !matches!(expression.kind(), Kind::Scalar | Kind::Vector) {
            let text =
                "this simulated Prometheus answers scalars, instant vectors and subqueries only";
            return Err(QueryRefusal::parameter("query", text));
        }
        let values = self.eval(expression, Steps::once(at))?;
        Ok(match values {
            Value::Scalar(values) => {
                QueryValue::Scalar(values.first().copied().unwrap_or(f64::NAN))
            }
            Value::Vector(rows) => {
                QueryValue::Vector(rows.into_iter().filter_map(sample).collect())
            }
        })
    }

    fn eval(&self, expression: &Expr, steps: Steps) -> Result<Value, QueryRefusal> {
        Ok(match expression {
            Expr::Number(number) => Value::Scalar(vec![*number; steps.count]),
            Expr::Selector(selector) => Value::Vector(self.values(selector, steps)?),
            Expr::Aggregate(how, grouping, inner) => {
                let rows = self.vector(inner, steps)?;
                Value::Vector(aggregate::aggregate(*how, grouping, rows, steps))
            }
            Expr::Call(function, arguments) => self.call(*function, arguments, steps)?,
            Expr::Binary(binary) => self.binary(binary, steps)?,
            Expr::Negation(inner) => match self.eval(inner, steps)? {
                Value::Scalar(values) => {
                    Value::Scalar(values.into_iter().map(|value| -value).collect())
                }
                Value::Vector(rows) => {
                    let negated = rows.into_iter().map(|row| Row {
                        labels: row.labels.unnamed(),
                        values: row.values.into_iter().map(|value| Some(-value?)).collect(),
                    });
                    Value::Vector(rows::merge(negated.collect())?)
                }
            },
            Expr::Text(_) | Expr::Range(..) | Expr::Subquery(_) => return Err(misplaced()),
        })
    }

    fn vector(&self, expression: &Expr, steps: Steps) -> Result<Vec<Row>, QueryRefusal> {
        match self.eval(expression, steps)? {
            Value::Vector(rows) => Ok(rows),
            Value::Scalar(_) => Err(misplaced()),
        }
    }

    fn scalar(&self, expression: &Expr, steps: Steps) -> Result<Vec<f64>, QueryRefusal> {
        match self.eval(expression, steps)? {
            Value::Scalar(values) => Ok(values),
            Value::Vector(_) => Err(misplaced()),
        }
    }
}

fn sample(row: Row) -> Option<VectorSample> {
    let value = row.values.first().copied()??;
    Some(VectorSample {
        labels: row.labels,
        value,
    })
}

/// What checked expressions do not contain.
fn misplaced() -> QueryRefusal {
    QueryRefusal::execution("an operand is of the wrong type")
}
