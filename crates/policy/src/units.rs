//! Quantities. A number without its unit does not cross a function boundary of the decision core.

use std::fmt;
use std::iter::Sum;

use serde::{Deserialize, Serialize};

use wva_base::text::shortened;

/// A number of replicas of one variant.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Replicas(pub u32);

/// A number of GPUs.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Gpus(pub u32);

macro_rules! count {
    ($name:ident) => {
        impl $name {
            /// None of them.
            pub const ZERO: Self = Self(0);

            /// Together, capped at the largest count.
            #[must_use]
            pub fn plus(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// What is left after taking `other` away, never below zero.
            #[must_use]
            pub fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// As a floating-point number; exact.
            pub fn to_f64(self) -> f64 {
                f64::from(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
                counts.fold(Self::ZERO, Self::plus)
            }
        }
    };
}

count!(Replicas);
count!(Gpus);

impl Replicas {
    /// One replica.
    pub const ONE: Self = Self(1);

    /// Reads a count of a Kubernetes object; the API server never stores a negative one.
    pub fn from_count(count: i32) -> Self {
        Self(u32::try_from(count).unwrap_or(0))
    }

    /// The length of a list, capped at the largest count.
    pub(crate) fn from_len(length: usize) -> Self {
        Self(u32::try_from(length).unwrap_or(u32::MAX))
    }

    /// As the signed count that Kubernetes objects carry, capped at its largest value.
    pub fn to_count(self) -> i32 {
        i32::try_from(self.0).unwrap_or(i32::MAX)
    }

    pub(crate) fn plus_one(self) -> Self {
        self.plus(Self::ONE)
    }

    /// One less, never below zero.
    #[must_use]
    pub fn minus_one(self) -> Self {
        self.saturating_sub(Self::ONE)
    }
}

impl Gpus {
    /// As many replicas, each with this many GPUs.
    #[must_use]
    pub fn times(self, replicas: Replicas) -> Self {
        Self(self.0.saturating_mul(replicas.0))
    }

    /// GPUs of one replica: a replica that states none is counted as one, since it takes a place.
    pub(crate) fn at_least_one(self) -> Self {
        Self(self.0.max(1))
    }

    /// Whole replicas that fit, each with `per_replica` GPUs.
    pub fn replicas(self, per_replica: Self) -> Replicas {
        Replicas(self.0 / per_replica.at_least_one().0)
    }
}

/// Cost of one replica in the user's own unit, as millionths, so that equal costs compare equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// The cost of a variant that states none: 10.0, the default of the CRD's `variantCost`.
    pub const DEFAULT: Self = Self(10_000_000);

    /// The largest whole number that is a cost.
    pub(crate) const MAX_WHOLE: u64 = u64::MAX / 1_000_000;

    /// Parses what the pattern of `variantCost` allows: digits, optionally a point and more digits.
    /// Digits beyond the sixth decimal are dropped.
    ///
    /// # Errors
    /// Names the text when it is no decimal number, or larger than [`Cost::MAX_WHOLE`].
    pub fn parse(text: &str) -> Result<Self, InvalidCost> {
        let text_of = || shortened(text);
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            return Err(InvalidCost::NotDecimal { text: text_of() });
        }
        let mut millionths =
            whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000_000));
        let mut weight = 100_000;
        for digit in decimals.bytes().take(6) {
            millionths =
                millionths.and_then(|sum| sum.checked_add(u64::from(digit - b'0') * weight));
            weight /= 10;
        }
        (millionths.map(Self)).ok_or_else(|| InvalidCost::TooLarge { text: text_of() })
    }

    /// As a floating-point number of millionths, in which sums of ordinary costs are exact.
    pub fn millionths(self) -> f64 {
        let part = |bits: u64| f64::from(u32::try_from(bits & 0xFFFF_FFFF).unwrap_or(u32::MAX));
        part(self.0 >> 32) * 4_294_967_296.0 + part(self.0)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:06}", self.0 % 1_000_000);
        let decimals = decimals.trim_end_matches('0');
        let decimals = if decimals.is_empty() { "0" } else { decimals };
        write!(formatter, "{}.{decimals}", self.0 / 1_000_000)
    }
}

/// A `variantCost` that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCost {
    /// No decimal number.
    #[error("variantCost {text:?} is not a decimal number like \"10.0\"; 10.0 is used instead")]
    NotDecimal {
        /// What was written.
        text: String,
    },
    /// More than can be held.
    #[error("variantCost {text:?} is more than {}; 10.0 is used instead", Cost::MAX_WHOLE)]
    TooLarge {
        /// What was written.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::Cost;

    #[test]
    fn cost_reads_what_the_schema_pattern_allows_and_prints_it_back() {
        for (text, printed) in
            [("10.0", "10.0"), ("5", "5.0"), ("0.25", "0.25"), ("0", "0.0"), ("1.0000009", "1.0")]
        {
            assert_eq!(Cost::parse(text).unwrap().to_string(), printed, "{text}");
        }
        assert_eq!(Cost::parse("10").unwrap(), Cost::DEFAULT);
    }

    #[test]
    fn cost_refuses_everything_else() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "NaN", " 1", "1,5"] {
            let error = Cost::parse(text).unwrap_err().to_string();
            assert!(error.contains("not a decimal number"), "{error}");
        }
    }

    #[test]
    fn a_cost_has_a_largest_number() {
        let most = Cost::MAX_WHOLE;
        assert!(Cost::parse(&most.to_string()).is_ok());
        for text in [(most + 1).to_string(), "9".repeat(20)] {
            let error = Cost::parse(&text).unwrap_err().to_string();
            assert!(error.contains(&format!("more than {most}")), "{error}");
        }
    }

    #[test]
    fn a_long_text_is_quoted_in_part() {
        let error = Cost::parse(&"0.5".repeat(10_000)).unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
    }
}
