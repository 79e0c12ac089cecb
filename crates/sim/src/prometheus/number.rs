//! Times and values as Prometheus computes and writes them.

use std::time::Duration;

use crate::number::real;

/// What a sample says that marks the end of its series: a NaN of this pattern.
const STALE: u64 = 0x7ff0_0000_0000_0002;

pub(super) fn stale() -> f64 {
    f64::from_bits(STALE)
}

pub(super) fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE
}

pub(super) fn seconds(milliseconds: i64) -> f64 {
    let size = real(milliseconds.unsigned_abs());
    (if milliseconds < 0 { -size } else { size }) / 1000.0
}

pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A sum that carries what rounding lost. Source: Kahan, with Neumaier's improvement, as Prometheus
/// adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    pub(super) fn of(first: f64) -> Self {
        Self { total: first, lost: 0.0 }
    }

    pub(super) fn add(&mut self, value: f64) {
        let total = self.total + value;
        if total.is_infinite() {
            self.lost = 0.0;
        } else if self.total.abs() >= value.abs() {
            self.lost += (self.total - total) + value;
        } else {
            self.lost += (value - total) + self.total;
        }
        self.total = total;
    }

    pub(super) fn total(self) -> f64 {
        if self.total.is_infinite() {
            return self.total;
        }
        self.total + self.lost
    }
}
