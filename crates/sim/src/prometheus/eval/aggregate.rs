//! Makes one series of many.

use std::collections::BTreeMap;

use super::rows::{Row, Steps};
use crate::prometheus::labels::{LabelSet, NAME};
use crate::prometheus::number::Sum;
use crate::prometheus::promql::{Aggregation, Grouping};

pub(super) fn aggregate(
    how: Aggregation,
    grouping: &Grouping,
    rows: Vec<Row>,
    steps: Steps,
) -> Vec<Row> {
    let key = key_of(grouping);
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

fn key_of(grouping: &Grouping) -> impl Fn(&LabelSet) -> LabelSet {
    let mut grouping = grouping.clone();
    if let Grouping::Without(names) = &mut grouping {
        names.push(NAME.to_owned());
    }
    move |labels| match &grouping {
        Grouping::By(names) => labels.only(names),
        Grouping::Without(names) => labels.without(names),
    }
}
