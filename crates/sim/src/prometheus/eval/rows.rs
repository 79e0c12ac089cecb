//! Values of series at regular steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::prometheus::labels::{LabelSet, NAME};
use crate::prometheus::number::Sum;
use crate::prometheus::promql::{Aggregation, Grouping};
use crate::prometheus::refusal::QueryRefusal;

/// Most steps of a subquery, and most values of one operand.
const MAX_STEPS: usize = 11_000;
const MAX_VALUES: usize = 5_000_000;

/// The times at which an expression is evaluated, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    start: i64,
    interval: i64,
    count: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) labels: LabelSet,
    pub(super) values: Vec<Option<f64>>,
}

impl Steps {
    pub(super) fn once(at: i64) -> Self {
        Self { start: at, interval: 1, count: 1 }
    }

    /// The steps of a subquery that is asked for at these steps: multiples of its own step.
    pub(super) fn inner(self, range: i64, step: i64) -> Result<Self, QueryRefusal> {
        let before = self.start.saturating_sub(range);
        let aligned = (before / step).saturating_mul(step);
        let start = if aligned <= before { aligned.saturating_add(step) } else { aligned };
        let count = match self.last().checked_sub(start) {
            Some(length) if length >= 0 => usize::try_from(length / step + 1),
            _ => Ok(0),
        };
        let count = count.ok().filter(|count| *count <= MAX_STEPS);
        Ok(Self { start, interval: step, count: count.ok_or_else(too_many)? })
    }

    fn last(self) -> i64 {
        let after = i64::try_from(self.count.saturating_sub(1)).unwrap_or(i64::MAX);
        self.start.saturating_add(after.saturating_mul(self.interval))
    }

    pub(super) fn times(self) -> impl Iterator<Item = i64> {
        std::iter::successors(Some(self.start), move |time| time.checked_add(self.interval))
            .take(self.count)
    }

    /// Refuses more values than fit into memory.
    pub(super) fn bound(self, series: usize) -> Result<(), QueryRefusal> {
        if series.saturating_mul(self.count) > MAX_VALUES {
            return Err(too_many());
        }
        Ok(())
    }
}

fn too_many() -> QueryRefusal {
    QueryRefusal::execution(
        "query processing would load too many samples into memory in query execution",
    )
}

/// Makes one series of those with equal labels; refuses two that have a value at the same step.
pub(super) fn merge(rows: Vec<Row>) -> Result<Vec<Row>, QueryRefusal> {
    let mut seen = BTreeSet::new();
    // The series of one name come in order.
    if rows.is_sorted_by(|one, next| one.labels < next.labels)
        || rows.iter().all(|row| seen.insert(&row.labels))
    {
        return Ok(rows);
    }
    let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
    let mut places = BTreeMap::new();
    for row in rows {
        let place = *places.entry(row.labels.clone()).or_insert(merged.len());
        let Some(known) = merged.get_mut(place) else {
            merged.push(row);
            continue;
        };
        for (known, value) in known.values.iter_mut().zip(row.values) {
            if known.is_some() && value.is_some() {
                return Err(QueryRefusal::execution(
                    "vector cannot contain metrics with the same labelset",
                ));
            }
            *known = known.or(value);
        }
    }
    Ok(merged)
}

/// The operator `or`: all of the left, and of the right what has no match there at the same step.
pub(super) fn either(
    on: Option<&[String]>,
    left: Vec<Row>,
    mut right: Vec<Row>,
) -> Result<Vec<Row>, QueryRefusal> {
    // Most series have one name at a time, so most of the alternatives are empty.
    if left.is_empty() {
        return Ok(right);
    }
    if right.is_empty() {
        return Ok(left);
    }
    let mut of_left: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in &left {
        of_left.entry(key(on, &row.labels)).or_default().push(row);
    }
    for Row { labels, values } in &mut right {
        let Some(matches) = of_left.get(&key(on, labels)) else {
            continue;
        };
        for (step, value) in values.iter_mut().enumerate() {
            let is_present = |row: &&Row| row.values.get(step).is_some_and(Option::is_some);
            *value = value.filter(|_| !matches.iter().any(is_present));
        }
    }
    let mut rows = left;
    rows.append(&mut right);
    rows.retain(|row| row.values.iter().any(Option::is_some));
    if rows.iter().all(|row| row.values.len() == 1) {
        // What is left of the right has no match, so that no two are equal.
        return Ok(rows);
    }
    merge(rows)
}

/// What two series must have in common to match.
fn key<'a>(on: Option<&'a [String]>, labels: &'a LabelSet) -> Vec<(&'a str, &'a str)> {
    match on {
        Some(names) => names.iter().map(|name| (&**name, labels.get(name))).collect(),
        None => labels.iter().filter(|(name, _)| *name != NAME).collect(),
    }
}

/// Makes one series of many.
pub(super) fn aggregate(
    how: Aggregation,
    grouping: &Grouping,
    rows: Vec<Row>,
    steps: Steps,
) -> Vec<Row> {
    let key = |labels: &LabelSet| match grouping {
        Grouping::By(names) => labels.only(names),
        Grouping::Without(names) => labels.without(names).unnamed(),
    };
    let counted = |value: f64| {
        if how == Aggregation::Count { 1.0 } else { value }
    };
    let mut groups: BTreeMap<LabelSet, Vec<Option<Sum>>> = BTreeMap::new();
    for row in rows {
        let group = groups.entry(key(&row.labels)).or_insert_with(|| vec![None; steps.count]);
        for (group, value) in group.iter_mut().zip(row.values) {
            match (group, value.map(counted)) {
                // A number wins over NaN.
                (Some(group), Some(value)) if how == Aggregation::Max => {
                    *group = Sum::of(group.total().max(value));
                }
                (Some(group), Some(value)) => group.add(value),
                (group, Some(value)) => *group = Some(Sum::of(value)),
                (_, None) => {}
            }
        }
    }
    let finished = |(labels, values): (LabelSet, Vec<Option<Sum>>)| Row {
        labels,
        values: values.into_iter().map(|group| group.map(Sum::total)).collect(),
    };
    groups.into_iter().map(finished).collect()
}
