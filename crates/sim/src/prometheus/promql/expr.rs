//! Expressions.

use regex::Regex;

#[derive(Debug, Clone)]
pub(in crate::prometheus) enum Query {
    Instant(Expr),
    /// Values of each series at several moments.
    Past(Subquery),
}

#[derive(Debug, Clone)]
pub(in crate::prometheus) enum Expr {
    Selector(SeriesSelector),
    /// The times of the samples that a selector finds.
    Timestamp(SeriesSelector),
    OverTime(RangeFunction, Ranged),
    /// The series with one more label.
    Labelled {
        of: Box<Expr>,
        label: String,
        value: String,
    },
    Aggregate(Aggregation, Grouping, Box<Expr>),
    Or {
        left: Box<Expr>,
        right: Box<Expr>,
        on: Option<Vec<String>>,
    },
    Above(Box<Expr>, f64),
    /// The time, as one series without labels: `vector(time())`.
    Now,
    /// The ages of the times in an expression: `time() - …`.
    Ago(Box<Expr>),
}

#[derive(Debug, Clone)]
pub(in crate::prometheus) struct SeriesSelector {
    /// Empty where the labels alone choose.
    pub(in crate::prometheus) name: String,
    pub(in crate::prometheus) labels: Vec<(String, LabelCondition)>,
}

#[derive(Debug, Clone)]
pub(in crate::prometheus) enum LabelCondition {
    Is(String),
    IsNot(String),
    IsLike(Regex),
}

impl LabelCondition {
    pub(in crate::prometheus) fn takes(&self, value: &str) -> bool {
        match self {
            Self::Is(wanted) => value == wanted,
            Self::IsNot(other) => value != other,
            Self::IsLike(pattern) => pattern.is_match(value),
        }
    }
}

/// Samples of a range; its length is in milliseconds.
#[derive(Debug, Clone)]
pub(in crate::prometheus) enum Ranged {
    Samples(SeriesSelector, i64),
    Subquery(Box<Subquery>),
}

/// An expression evaluated at regular steps; times in milliseconds.
#[derive(Debug, Clone)]
pub(in crate::prometheus) struct Subquery {
    pub(in crate::prometheus) of: Expr,
    pub(in crate::prometheus) range: i64,
    pub(in crate::prometheus) step: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus) enum RangeFunction {
    Count,
    Last,
    Max,
    Rate,
}

impl RangeFunction {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "count_over_time" => Self::Count,
            "last_over_time" => Self::Last,
            "max_over_time" => Self::Max,
            "rate" => Self::Rate,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus) enum Aggregation {
    Count,
    Max,
    Sum,
}

impl Aggregation {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "max" => Self::Max,
            "sum" => Self::Sum,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::prometheus) enum Grouping {
    By(Vec<String>),
    Without(Vec<String>),
}
