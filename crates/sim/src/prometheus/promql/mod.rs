//! PromQL, as far as a controller uses it: from text to a checked expression.

mod check;
mod duration;
mod expr;
mod parser;
mod selector;
mod token;

pub(super) use expr::{
    Aggregation, Binary, Cardinality, Expr, Function, Grouping, Kind, Matching, MatchingLabels,
    Operator, Selector, Subquery,
};
pub(super) use parser::parse;
