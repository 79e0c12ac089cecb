//! Two operands.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::{Assembly, Row, Steps, merge};
use super::scalar::{Made, apply};
use super::{Value, View};
use crate::prometheus::labels::LabelSet;
use crate::prometheus::promql::{Binary, Cardinality, Matching, MatchingLabels, Operator};
use crate::prometheus::refusal::QueryRefusal;

impl View<'_> {
    pub(super) fn binary(&self, binary: &Binary, steps: Steps) -> Result<Value, QueryRefusal> {
        let left = self.eval(&binary.left, steps)?;
        let right = self.eval(&binary.right, steps)?;
        Ok(match (left, right) {
            (Value::Scalar(left), Value::Scalar(right)) => {
                let pairs = left.into_iter().zip(right);
                Value::Scalar(
                    pairs
                        .map(|(left, right)| number(binary, left, right))
                        .collect(),
                )
            }
            (Value::Vector(rows), Value::Scalar(numbers)) => {
                Value::Vector(with_numbers(binary, rows, &numbers, Side::Right)?)
            }
            (Value::Scalar(numbers), Value::Vector(rows)) => {
                Value::Vector(with_numbers(binary, rows, &numbers, Side::Left)?)
            }
            // Most series have one name at a time, so most of the alternatives are empty.
            (Value::Vector(left), Value::Vector(right))
                if binary.operator == Operator::Or && (left.is_empty() || right.is_empty()) =>
            {
                Value::Vector(if left.is_empty() { right } else { left })
            }
            (Value::Vector(left), Value::Vector(right))
                if binary.operator == Operator::Or && steps.count == 1 =>
            {
                Value::Vector(either(&binary.matching, left, right))
            }
            (Value::Vector(left), Value::Vector(right)) => {
                let pairing = Pairing::of(binary, &left, &right);
                let mut made = Assembly::new(steps.count);
                for step in 0..steps.count {
                    if binary.operator.combines_sets() {
                        pairing.combine_sets(step, &mut made)?;
                    } else {
                        pairing.join(step, &mut made)?;
                    }
                }
                Value::Vector(made.rows())
            }
        })
    }
}

/// `or` at a single step, where whole rows can be taken: all of the left, and of the right what has no
/// match there.
fn either(matching: &Matching, mut left: Vec<Row>, right: Vec<Row>) -> Vec<Row> {
    let has_value = |row: &Row| row.values.iter().any(Option::is_some);
    left.retain(has_value);
    let of_left = left.iter().map(|row| group_of(matching, &row.labels));
    let of_left: BTreeSet<LabelSet> = of_left.collect();
    let is_new = |row: &Row| !of_left.contains(&group_of(matching, &row.labels));
    let right = right.into_iter();
    left.extend(right.filter(|row| has_value(row) && is_new(row)));
    left
}

fn number(binary: &Binary, left: f64, right: f64) -> f64 {
    match apply(binary.operator, left, right) {
        Made::Number(number) => number,
        Made::Holds(holds) => f64::from(u8::from(holds)),
    }
}

/// Where the number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Every value with a number. A comparison keeps the value of the series, on whichever side it is.
fn with_numbers(
    binary: &Binary,
    rows: Vec<Row>,
    numbers: &[f64],
    side: Side,
) -> Result<Vec<Row>, QueryRefusal> {
    let one = |value: f64, number: f64| {
        let made = match side {
            Side::Left => apply(binary.operator, number, value),
            Side::Right => apply(binary.operator, value, number),
        };
        result(binary, value, made)
    };
    let unnamed = !binary.operator.compares() || binary.says;
    let rows = rows.into_iter().map(|row| Row {
        labels: if unnamed {
            row.labels.unnamed()
        } else {
            row.labels
        },
        values: row
            .values
            .into_iter()
            .zip(numbers)
            .map(|(value, number)| one(value?, *number))
            .collect(),
    });
    merge(rows.collect())
}

/// The value that goes on, if any.
fn result(binary: &Binary, kept: f64, made: Made) -> Option<f64> {
    match made {
        Made::Number(number) => Some(number),
        Made::Holds(holds) if binary.says => Some(f64::from(u8::from(holds))),
        Made::Holds(holds) => holds.then_some(kept),
    }
}

/// The series of both sides, with what they are matched by.
struct Pairing<'a> {
    binary: &'a Binary,
    left: &'a [Row],
    right: &'a [Row],
    left_groups: Vec<usize>,
    right_groups: Vec<usize>,
    groups: usize,
}

/// The labels that two series must share to belong together.
fn group_of(matching: &Matching, labels: &LabelSet) -> LabelSet {
    match &matching.labels {
        MatchingLabels::On(names) => labels.only(names),
        MatchingLabels::Ignoring(names) => labels.unnamed().without(names),
    }
}

impl<'a> Pairing<'a> {
    fn of(binary: &'a Binary, left: &'a [Row], right: &'a [Row]) -> Self {
        let mut known = BTreeMap::new();
        let mut numbers = |rows: &[Row]| -> Vec<usize> {
            let number = |row: &Row| {
                let next = known.len();
                *known
                    .entry(group_of(&binary.matching, &row.labels))
                    .or_insert(next)
            };
            rows.iter().map(number).collect()
        };
        let left_groups = numbers(left);
        let right_groups = numbers(right);
        Self {
            binary,
            left,
            right,
            left_groups,
            right_groups,
            groups: known.len(),
        }
    }

    fn combine_sets(&self, step: usize, made: &mut Assembly) -> Result<(), QueryRefusal> {
        let present = |rows: &[Row], groups: &[usize]| {
            let live = live(rows, groups, step);
            live.map(|(_, group, _)| group).collect::<BTreeSet<usize>>()
        };
        let operator = self.binary.operator;
        let on_the_right = match operator {
            Operator::Or => BTreeSet::new(),
            _ => present(self.right, &self.right_groups),
        };
        for (row, group, value) in live(self.left, &self.left_groups, step) {
            let kept = match operator {
                Operator::And => on_the_right.contains(&group),
                Operator::Unless => !on_the_right.contains(&group),
                _ => true,
            };
            if kept {
                made.put(&row.labels, step, value)?;
            }
        }
        if operator == Operator::Or {
            let on_the_left = present(self.left, &self.left_groups);
            for (row, group, value) in live(self.right, &self.right_groups, step) {
                if !on_the_left.contains(&group) {
                    made.put(&row.labels, step, value)?;
                }
            }
        }
        Ok(())
    }

    /// Applies the operator to the pairs of one step.
    fn join(&self, step: usize, made: &mut Assembly) -> Result<(), QueryRefusal> {
        let matching = &self.binary.matching;
        let swapped = matching.cardinality == Cardinality::OneToMany;
        let mut many: Vec<_> = live(self.left, &self.left_groups, step).collect();
        let mut one: Vec<_> = live(self.right, &self.right_groups, step).collect();
        if many.is_empty() || one.is_empty() {
            return Ok(());
        }
        if swapped {
            std::mem::swap(&mut many, &mut one);
        }
        let partners = self.partners(&one)?;
        let mut matched: BTreeSet<(usize, Option<LabelSet>)> = BTreeSet::new();
        for (row, group, value) in many {
            let Some((partner, other)) = partners.get(group).copied().flatten() else {
                continue;
            };
            let labels = self.labels_of(&row.labels, &partner.labels);
            let (key, problem) = match matching.cardinality {
                Cardinality::OneToOne => (None, MANY),
                _ => (Some(labels.clone()), UNIQUE),
            };
            if !matched.insert((group, key)) {
                return Err(QueryRefusal::execution(format!(
                    "multiple matches for labels: {problem}"
                )));
            }
            let (left, right) = if swapped {
                (other, value)
            } else {
                (value, other)
            };
            let value = apply(self.binary.operator, left, right);
            if let Some(value) = result(self.binary, left, value) {
                made.put(&labels, step, value)?;
            }
        }
        Ok(())
    }

    /// The one series of each group.
    fn partners(&self, one: &[Live<'a>]) -> Result<Vec<Option<(&'a Row, f64)>>, QueryRefusal> {
        let matching = &self.binary.matching;
        let mut partners: Vec<Option<(&Row, f64)>> = vec![None; self.groups];
        for (row, group, value) in one {
            let Some(place) = partners.get_mut(*group) else {
                continue;
            };
            if let Some((first, _)) = place {
                let side = match matching.cardinality {
                    Cardinality::OneToMany => "left",
                    _ => "right",
                };
                let mut twice = [first.labels.to_string(), row.labels.to_string()];
                twice.sort();
                return Err(QueryRefusal::execution(format!(
                    "found duplicate series for the match group {} on the {side} hand-side of the operation: [{}];many-to-many matching not allowed: matching labels must be unique on one side",
                    group_of(matching, &row.labels),
                    twice.join(", "),
                )));
            }
            *place = Some((row, *value));
        }
        Ok(partners)
    }

    fn labels_of(&self, many: &LabelSet, one: &LabelSet) -> LabelSet {
        let Binary {
            matching,
            operator,
            says,
            ..
        } = self.binary;
        let mut labels = if !operator.compares() || *says {
            many.unnamed()
        } else {
            many.clone()
        };
        if matching.cardinality == Cardinality::OneToOne {
            labels = match &matching.labels {
                MatchingLabels::On(names) => labels.only(names),
                MatchingLabels::Ignoring(names) => labels.without(names),
            };
        }
        for name in &matching.include {
            labels = labels.with(name, one.get(name));
        }
        labels
    }
}

const MANY: &str = "many-to-one matching must be explicit (group_left/group_right)";
const UNIQUE: &str = "grouping labels must ensure unique matches";

type Live<'a> = (&'a Row, usize, f64);

/// The series that have a value at a step.
fn live<'a>(rows: &'a [Row], groups: &'a [usize], step: usize) -> impl Iterator<Item = Live<'a>> {
    rows.iter().zip(groups).filter_map(move |(row, group)| {
        let value = row.values.get(step).copied()??;
        Some((row, *group, value))
    })
}
