//! Whether anything follows what is published: the scalers of a target, and what keeps them from it.

mod judge;
mod scaler;
#[cfg(test)]
mod tests;

pub use judge::{Obstacle, judge};
pub use scaler::{
    Absence, Activity, Aim, Input, Published, Scaler, ScalerKind, Scalers, Tolerance,
};
