//! The part of PromQL that the controller and the policies of the laboratory send, and the doctor.

mod expr;
mod parser;
mod token;

pub(super) use expr::{
    Aggregation, Expr, Grouping, LabelCondition, Query, RangeFunction, Ranged, Selector, Subquery,
    pattern,
};
pub(super) use parser::parse;
