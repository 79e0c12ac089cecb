//! Quantities, in thousandths as the autoscaler computes with them.

use crate::number;

/// Thousandths of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Milli(pub(crate) u64);

const SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1_024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];

impl Milli {
    pub(crate) const fn units(count: u64) -> Self {
        Self(count.saturating_mul(1_000))
    }

    /// Reads a quantity that is not negative; nothing where `text` is none.
    pub fn parse(text: &str) -> Option<Self> {
        let suffix = SUFFIXES
            .iter()
            .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
        let (digits, factor) = suffix.unwrap_or((text, 1.0));
        if !digits.ends_with(|last: char| last.is_ascii_digit() || last == '.') {
            return None;
        }
        let value: f64 = digits.parse().ok()?;
        Self::of(value * factor)
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
