//! Functions.

use std::collections::BTreeMap;

use super::quantile::{Bucket, quantile};
use super::rate::{self, Course};
use super::rows::{Assembly, Row, Steps, merge};
use super::window::{Name, Window};
use super::{Value, View, misplaced};
use crate::number::length;
use crate::prometheus::labels::LabelSet;
use crate::prometheus::number::{Mean, Sum, seconds};
use crate::prometheus::pattern::{Pattern, Patterns};
use crate::prometheus::promql::{Expr, Function};
use crate::prometheus::refusal::QueryRefusal;

/// The label with the upper bound of a bucket.
const BOUND: &str = "le";

impl View<'_> {
    pub(super) fn call(
        &self,
        function: Function,
        arguments: &[Expr],
        steps: Steps,
    ) -> Result<Value, QueryRefusal> {
        let rows = match (function, arguments) {
            (Function::Time, []) => return Ok(Value::Scalar(steps.times().map(seconds).collect())),
            (Function::Vector, [number]) => vec![Row {
                labels: LabelSet::default(),
                values: self.scalar(number, steps)?.into_iter().map(Some).collect(),
            }],
            (Function::Timestamp, [of]) => self.timestamp(of, steps)?,
            (Function::LabelReplace, [of, texts @ ..]) => replace(
                self.vector(of, steps)?,
                &Replacement::read(texts, self.patterns)?,
            )?,
            (Function::HistogramQuantile, [share, of]) => {
                let shares = self.scalar(share, steps)?;
                quantiles(&shares, &self.vector(of, steps)?)?
            }
            (_, [ranged]) => self.over_time(function, ranged, steps)?,
            _ => return Err(misplaced()),
        };
        Ok(Value::Vector(rows))
    }

    fn over_time(
        &self,
        function: Function,
        ranged: &Expr,
        steps: Steps,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let name = match function {
            Function::LastOverTime => Name::Kept,
            _ => Name::Dropped,
        };
        self.windows(ranged, steps, name, |window| over(function, window))
    }

    /// Of a plain selector the time of the sample, of everything else that of the evaluation.
    fn timestamp(&self, of: &Expr, steps: Steps) -> Result<Vec<Row>, QueryRefusal> {
        let mut rows = match of {
            Expr::Selector(selector) => self.times(selector, steps)?,
            other => {
                let mut rows = self.vector(other, steps)?;
                for row in &mut rows {
                    for (value, time) in row.values.iter_mut().zip(steps.times()) {
                        *value = value.map(|_| seconds(time));
                    }
                }
                rows
            }
        };
        for row in &mut rows {
            row.labels = row.labels.unnamed();
        }
        merge(rows)
    }
}

/// What a function makes of the samples of a range.
fn over(function: Function, window: Window<'_>) -> Option<f64> {
    let values = || window.points.iter().map(|point| point.value);
    match function {
        Function::AvgOverTime => {
            let mut values = values();
            let mut mean = Mean::of(values.next()?);
            values.for_each(|value| mean.add(value));
            Some(mean.value())
        }
        Function::CountOverTime => Some(length(window.points.len())),
        Function::LastOverTime => values().next_back(),
        // A number wins over NaN.
        Function::MaxOverTime => values().reduce(f64::max),
        Function::MinOverTime => values().reduce(f64::min),
        Function::SumOverTime => {
            let mut sum = Sum::of(0.0);
            values().for_each(|value| sum.add(value));
            Some(sum.total())
        }
        Function::Delta => rate::growth(window, Course::Gauge),
        Function::Increase => rate::growth(window, Course::Counter),
        Function::Rate => rate::rate(window),
        Function::HistogramQuantile
        | Function::LabelReplace
        | Function::Time
        | Function::Timestamp
        | Function::Vector => None,
    }
}

fn quantiles(shares: &[f64], rows: &[Row]) -> Result<Vec<Row>, QueryRefusal> {
    let mut groups: BTreeMap<LabelSet, Vec<(f64, &Row)>> = BTreeMap::new();
    for row in rows {
        // A series whose bound is no number is no bucket.
        if let Ok(bound) = row.labels.get(BOUND).parse() {
            let key = row.labels.without(&[BOUND.to_owned()]);
            groups.entry(key).or_default().push((bound, row));
        }
    }
    let mut made = Assembly::new(shares.len());
    for (labels, buckets) in groups {
        let labels = labels.unnamed();
        for (step, share) in shares.iter().enumerate() {
            let buckets: Vec<Bucket> = buckets
                .iter()
                .filter_map(|(bound, row)| {
                    Some(Bucket {
                        bound: *bound,
                        count: row.values.get(step).copied()??,
                    })
                })
                .collect();
            if !buckets.is_empty() {
                made.put(&labels, step, quantile(*share, buckets))?;
            }
        }
    }
    Ok(made.rows())
}

/// The arguments of `label_replace` behind the vector.
struct Replacement<'a> {
    target: &'a str,
    template: &'a str,
    source: &'a str,
    pattern: Pattern,
}

impl<'a> Replacement<'a> {
    fn read(texts: &'a [Expr], patterns: &Patterns) -> Result<Self, QueryRefusal> {
        let [
            Expr::Text(target),
            Expr::Text(template),
            Expr::Text(source),
            Expr::Text(pattern),
        ] = texts
        else {
            return Err(misplaced());
        };
        if target.is_empty() {
            return Err(QueryRefusal::execution(format!(
                "invalid destination label name in label_replace(): {target}"
            )));
        }
        Ok(Self {
            target,
            template,
            source,
            pattern: patterns.get(pattern).map_err(|invalid| {
                QueryRefusal::execution(format!(
                    "invalid regular expression in label_replace(): {pattern}: {invalid}"
                ))
            })?,
        })
    }
}

fn replace(rows: Vec<Row>, replacement: &Replacement<'_>) -> Result<Vec<Row>, QueryRefusal> {
    let replaced = rows.into_iter().map(|mut row| {
        let source = row.labels.get(replacement.source);
        if let Some(captures) = replacement.pattern.captures(source) {
            let value = expand(replacement.template, &captures);
            row.labels = row.labels.with(replacement.target, &value);
        }
        row
    });
    merge(replaced.collect())
}

/// Puts what groups matched into a template: `$1`, `${1}`, and `$$` for a dollar. A group that is
/// none, or did not take part, is empty.
fn expand(template: &str, captures: &[Option<&str>]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let braced = after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        let (name, next) = if let Some(found) = braced {
            found
        } else {
            let word = |letter: char| letter.is_alphanumeric() || letter == '_';
            let end = after.find(|letter| !word(letter)).unwrap_or(after.len());
            after.split_at_checked(end).unwrap_or((after, ""))
        };
        if name.is_empty() {
            text.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
            continue;
        }
        let number: Option<usize> = name.parse().ok();
        let group = number.and_then(|number| captures.get(number).copied().flatten());
        text.push_str(group.unwrap_or_default());
        rest = next;
    }
    text.push_str(rest);
    text
}
