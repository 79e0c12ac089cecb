//! Whether anything follows what is published: the scalers of a target, and what keeps them from it.

mod direct;
mod judge;
mod scaler;
#[cfg(test)]
mod tests;

pub use direct::DirectStep;
pub use judge::{ActuationObstacle, growing_only, judge, unasked};
pub use scaler::{
    Absence, Aim, Input, Published, Scaler, ScalerActivity, ScalerKind, Scalers, Tolerance,
};
