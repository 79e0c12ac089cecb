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
    let mut groups: BTreeMap<LabelSet, Vec<Option<Group>>> = BTreeMap::new();
    for row in rows {
        let group = groups
            .entry(key(&row.labels))
            .or_insert_with(|| vec![None; steps.count]);
        for (group, value) in group.iter_mut().zip(row.values) {
            let Some(value) = value else {
                continue;
            };
            match group {
                Some(group) => group.add(value),
                None => *group = Some(Group::begin(how, value)),
            }
        }
    }
    let finished = |(labels, values): (LabelSet, Vec<Option<Group>>)| Row {
        labels,
        values: values
            .into_iter()
            .map(|group| group.map(Group::value))
            .collect(),
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

#[derive(Debug, Clone, Copy)]
enum Group {
    Count(f64),
    Max(f64),
    Sum(Sum),
}

impl Group {
    fn begin(how: Aggregation, value: f64) -> Self {
        match how {
            Aggregation::Count => Self::Count(1.0),
            Aggregation::Max => Self::Max(value),
            Aggregation::Sum => Self::Sum(Sum::of(value)),
        }
    }

    fn add(&mut self, value: f64) {
        match self {
            Self::Count(count) => *count += 1.0,
            // A number wins over NaN.
            Self::Max(highest) => *highest = highest.max(value),
            Self::Sum(sum) => sum.add(value),
        }
    }

    fn value(self) -> f64 {
        match self {
            Self::Count(value) | Self::Max(value) => value,
            Self::Sum(sum) => sum.total(),
        }
    }
}
