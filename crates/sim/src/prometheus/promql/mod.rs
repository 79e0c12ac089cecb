//! The part of PromQL that the controller and the policies of the laboratory send, and the doctor.

mod expr;
mod parser;
mod token;

pub(super) use expr::{
    Aggregation, Expr, Grouping, Query, RangeFunction, Ranged, SeriesSelector, Subquery,
};
pub(super) use parser::parse;
