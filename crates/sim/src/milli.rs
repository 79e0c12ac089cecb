//! Quantities, in thousandths as the autoscaler computes with them.

use crate::number;
use wva::policy::pod_autoscaler::resource_quantity::resource_quantity;

/// Thousandths of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Milli(pub(crate) u64);

impl Milli {
    pub(crate) const fn units(count: u64) -> Self {
        Self(count.saturating_mul(1_000))
    }

    /// Reads a quantity that is not negative; nothing where `text` is none.
    pub fn parse(text: &str) -> Option<Self> {
        Self::of(resource_quantity(text).ok()?)
    }

    /// The least number of thousandths that is no less; nothing for a negative or no number.
    pub(crate) fn of(value: f64) -> Option<Self> {
        if !value.is_finite() || value < 0.0 {
            return None;
        }
        // What decimal fractions lose in binary must not become another thousandth.
        let thousandths = value * 1e3;
        let nearest = thousandths.round();
        let whole = if (thousandths - nearest).abs() <= 1e-9 * nearest.max(1.0) {
            nearest
        } else {
            thousandths.ceil()
        };
        Some(Self(number::duration(whole).as_secs()))
    }

    pub(crate) fn text(self) -> String {
        if self.0.is_multiple_of(1_000) {
            (self.0 / 1_000).to_string()
        } else {
            format!("{}m", self.0)
        }
    }

    pub(super) fn real(self) -> f64 {
        number::real(self.0)
    }
}
