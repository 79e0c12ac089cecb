//! The operator `or`.

use std::collections::BTreeSet;

use super::rows::{Row, merge};
use crate::prometheus::labels::LabelSet;
use crate::prometheus::refusal::QueryRefusal;

/// All of the left, and of the right what has no match there at the same step.
pub(super) fn either(
    on: Option<&[String]>,
    left: Vec<Row>,
    right: Vec<Row>,
) -> Result<Vec<Row>, QueryRefusal> {
    // Most series have one name at a time, so most of the alternatives are empty.
    if left.is_empty() {
        return Ok(right);
    }
    if right.is_empty() {
        return Ok(left);
    }
    let key = |labels: &LabelSet| match on {
        Some(names) => labels.only(names),
        None => labels.unnamed(),
    };
    let mut of_left = BTreeSet::new();
    for row in &left {
        let key = key(&row.labels);
        let steps = row.values.iter().enumerate();
        let present = steps.filter(|(_, value)| value.is_some());
        of_left.extend(present.map(|(step, _)| (key.clone(), step)));
    }
    let mut rows = left;
    for mut row in right {
        let key = key(&row.labels);
        for (step, value) in row.values.iter_mut().enumerate() {
            *value = value.filter(|_| !of_left.contains(&(key.clone(), step)));
        }
        rows.push(row);
    }
    rows.retain(|row| row.values.iter().any(Option::is_some));
    merge(rows)
}
