//! Times and values as Prometheus computes and writes them.

use std::cmp::Ordering;
use std::time::Duration;

use crate::number::real;

/// What a sample says that marks the end of its series: a NaN of this pattern.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// The mark at the end of a series.
pub(super) fn stale() -> f64 {
    f64::from_bits(STALE)
}

/// Whether a value marks the end of a series.
pub(super) fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE
}

/// Milliseconds in seconds.
pub(super) fn seconds(milliseconds: i64) -> f64 {
    let size = real(milliseconds.unsigned_abs());
    (if milliseconds < 0 { -size } else { size }) / 1000.0
}

/// Whole milliseconds of a length of time.
pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A value as the API writes it: the shortest digits that read back as the same number, with an
/// exponent for very small and very large ones.
pub(super) fn text(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if size > 0.0 && !(1e-6..1e21).contains(&size) {
        let short = format!("{value:e}");
        let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(size) => ('-', size),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    value.to_string()
}

/// A time as the API writes it: seconds with up to three decimals.
pub(super) fn time(milliseconds: i64) -> serde_json::Value {
    if milliseconds % 1_000 == 0 {
        (milliseconds / 1_000).into()
    } else {
        seconds(milliseconds).into()
    }
}

/// A sum that carries what rounding lost. Source: Kahan, with Neumaier's improvement, as Prometheus
/// adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    /// A sum of one value.
    pub(super) fn of(first: f64) -> Self {
        Self {
            total: first,
            lost: 0.0,
        }
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

    /// The sum.
    pub(super) fn total(self) -> f64 {
        if self.total.is_infinite() {
            return self.total;
        }
        self.total + self.lost
    }
}

/// A mean. A sum that would overflow is replaced by a running mean, as in Prometheus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mean {
    sum: Sum,
    count: f64,
    running: bool,
}

impl Mean {
    /// The mean of one value.
    pub(super) fn of(first: f64) -> Self {
        Self {
            sum: Sum::of(first),
            count: 1.0,
            running: false,
        }
    }

    pub(super) fn add(&mut self, value: f64) {
        let before = self.count;
        self.count += 1.0;
        if !self.running {
            let mut sum = self.sum;
            sum.add(value);
            if !sum.total.is_infinite() {
                self.sum = sum;
                return;
            }
            self.running = true;
            self.sum.total /= before;
            self.sum.lost /= before;
        }
        let share = before / self.count;
        self.sum.total *= share;
        self.sum.lost *= share;
        self.sum.add(value / self.count);
    }

    /// The mean.
    pub(super) fn value(self) -> f64 {
        if self.running {
            self.sum.total + self.sum.lost
        } else {
            self.sum.total / self.count + self.sum.lost / self.count
        }
    }
}

/// Whether two values are the same number; NaN equals nothing.
pub(super) fn equal(left: f64, right: f64) -> bool {
    left.partial_cmp(&right) == Some(Ordering::Equal)
}
