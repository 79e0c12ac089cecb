//! Numbers of an autoscaler, each in its range.

use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rounding::ceil;
use crate::units::Replicas;

/// What a sample may be. The sum of all pods stays finite, and a value beyond is an error of the page.
pub const AMOUNTS: RangeInclusive<f64> = 0.0..=1e100;

/// A difference that is an error of a division, not of a measurement.
const ROUNDING: f64 = 1e-9;

/// The factor of one step.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct StepRate(f64);

/// A share of the target that is no reason to scale.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct ToleratedShare(f64);

/// A ratio of two means.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct PanicThreshold(f64);

/// What one replica is to carry, in the unit of its metric.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct TargetValue(f64);

macro_rules! amount {
    ($name:ident, $range:expr, $limit:literal, $example:literal) => {
        impl $name {
            pub(crate) fn parse(text: &str) -> Result<Self, String> {
                let in_range: fn(f64) -> bool = $range;
                match text.parse::<f64>() {
                    Ok(number) if number.is_finite() && in_range(number) => Ok(Self(number)),
                    Ok(number) if number.is_finite() => {
                        Err(concat!($limit, "; write for example ", $example).to_owned())
                    }
                    _ => {
                        Err(concat!("must be a valid number; write for example ", $example)
                            .to_owned())
                    }
                }
            }

            pub(crate) fn get(self) -> f64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

amount!(StepRate, |rate| rate >= 1.0, "must be at least 1", "2");
amount!(
    ToleratedShare,
    |share| (0.0..1.0).contains(&share),
    "must be at least 0 and below 1",
    "0.1"
);
amount!(PanicThreshold, |ratio| ratio > 1.0, "must be above 1", "2");
amount!(
    TargetValue,
    |value| value > 0.0 && value <= *AMOUNTS.end(),
    "must be greater than 0 and at most 1e100",
    "50"
);

impl StepRate {
    pub(super) const DEFAULT: Self = Self(2.0);
}

impl ToleratedShare {
    pub(super) const DEFAULT: Self = Self(0.1);
}

impl PanicThreshold {
    pub(super) const DEFAULT: Self = Self(2.0);
}

/// Pods of one replica that are measured: of a replica of a StormService those of all its roles. Zero where the target
/// does not state how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PodsPerReplica(pub u32);

impl Default for PodsPerReplica {
    fn default() -> Self {
        Self::ONE
    }
}

impl PodsPerReplica {
    /// As of most kinds.
    pub const ONE: Self = Self(1);

    /// How many, if the target states it.
    pub fn known(self) -> Option<u32> {
        Some(self.0).filter(|pods| *pods > 0)
    }

    /// Whether a replica is a pod.
    pub fn is_one(&self) -> bool {
        *self == Self::ONE
    }
}

impl TargetValue {
    /// What one replica of so many pods is to carry.
    pub(super) fn of_pods(self, pods: PodsPerReplica) -> Self {
        Self(self.of(Replicas(pods.0.max(1))))
    }

    pub(super) fn of(self, replicas: Replicas) -> f64 {
        self.0 * replicas.to_f64()
    }

    pub(super) fn replicas(self, total: f64) -> Replicas {
        Replicas(ceil(total / self.0))
    }
}

/// The demand of all replicas together, in the unit of a metric: at least, and at most. Both are equal where
/// every pod is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DemandRange {
    /// What growth may rest on.
    pub low: f64,
    /// What a release must leave room for.
    pub high: f64,
}

impl DemandRange {
    /// A demand that is known.
    pub fn exactly(total: f64) -> Self {
        Self { low: total, high: total }
    }
}

/// Whether one amount exceeds another by more than an error of rounding.
pub(super) fn exceeds(amount: f64, limit: f64) -> bool {
    amount > limit + limit.abs() * ROUNDING
}
