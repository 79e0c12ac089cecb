//! Arithmetic and comparison of two numbers.

use std::cmp::Ordering;

use crate::prometheus::promql::Operator;

/// What an operator makes of two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Made {
    /// A number.
    Number(f64),
    /// A comparison that holds or not.
    Holds(bool),
}

/// Applies an operator that is not one of sets.
pub(super) fn apply(operator: Operator, left: f64, right: f64) -> Made {
    let order = left.partial_cmp(&right);
    match operator {
        Operator::Add => Made::Number(left + right),
        Operator::Subtract => Made::Number(left - right),
        Operator::Multiply => Made::Number(left * right),
        Operator::Divide => Made::Number(left / right),
        Operator::Modulo => Made::Number(left % right),
        Operator::Power => Made::Number(left.powf(right)),
        Operator::Equal => Made::Holds(order == Some(Ordering::Equal)),
        // NaN differs from everything, itself included.
        Operator::Unequal => Made::Holds(order != Some(Ordering::Equal)),
        Operator::Less => Made::Holds(left < right),
        Operator::AtMost => Made::Holds(left <= right),
        Operator::Greater => Made::Holds(left > right),
        Operator::AtLeast => Made::Holds(left >= right),
        Operator::Or | Operator::And | Operator::Unless => Made::Holds(false),
    }
}
