//! Latencies and rates of the queueing model.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds, with fractions.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub f64);

impl From<Duration> for Millis {
    fn from(duration: Duration) -> Self {
        Self(duration.as_secs_f64() * 1000.0)
    }
}

wva_base::display_of! { Millis: Self(length) => "{length:.3} ms"; }

/// Requests per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestRate(pub f64);

impl RequestRate {
    /// Requests per millisecond, the unit in which the chain is solved.
    pub(super) fn per_milli(self) -> f64 {
        self.0 / 1000.0
    }

    pub(super) fn from_per_milli(rate: f64) -> Self {
        Self(rate * 1000.0)
    }
}

wva_base::display_of! { RequestRate: Self(rate) => "{rate:.6} requests/s"; }
