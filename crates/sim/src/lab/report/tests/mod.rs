//! The report of folders that the tests write.

mod compare;
mod explain;
mod files;
mod page;
mod results;
pub(crate) mod sample;
mod texts;

/// A number equals another up to rounding.
fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}
