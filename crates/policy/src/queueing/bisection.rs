//! Where a monotone function takes a value.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Relative distance at which two values count as equal.
pub(crate) const TOLERANCE: f64 = 1e-6;

/// Halvings after which the search ends.
const MAX_STEPS: u32 = 100;

/// Difference of a function's values at the ends of a range, as a share of the value searched, below
/// which it counts as straight.
const STRAIGHT: f64 = 1.0;

/// Distance from an argument that counts as equal to one that does not, in tolerances.
const MARGIN: f64 = 3.0;

/// Where the value lies, as seen from the range searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Position {
    Before,
    Inside,
    Beyond,
}

/// What a search found: the argument, or the end of the range next to the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub argument: f64,
    pub position: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub(crate) enum SearchError<E> {
    #[error("range from {from} to {to} is empty")]
    EmptyRange { from: f64, to: f64 },
    #[error(transparent)]
    Function(#[from] E),
}

/// Whether `value` is `reference`, or closer to it than `tolerance` times the reference.
#[expect(clippy::float_cmp, reason = "equal values are within every tolerance")]
pub(crate) fn is_within(value: f64, reference: f64, tolerance: f64) -> bool {
    if value == reference {
        return true;
    }
    if reference == 0.0 || tolerance < 0.0 {
        return false;
    }
    ((value - reference) / reference).abs() <= tolerance
}

/// Searches `from..=to` for the argument at which a monotone function, rising or falling, takes a
/// value.
pub(crate) fn bisect<E>(
    from: f64,
    to: f64,
    value: f64,
    function: impl Fn(f64) -> Result<f64, E>,
) -> Result<Found, SearchError<E>> {
    check(from, to)?;
    let ends = [(from, function(from)?), (to, function(to)?)];
    bisect_between(ends, value, function)
}

/// As [`bisect`], where the function's values at both ends are known.
pub(crate) fn bisect_between<E>(
    [(from, first), (to, last)]: [(f64, f64); 2],
    value: f64,
    function: impl Fn(f64) -> Result<f64, E>,
) -> Result<Found, SearchError<E>> {
    check(from, to)?;
    let found = |argument, position| Ok(Found { argument, position });
    if is_within(first, value, TOLERANCE) {
        return found(from, Position::Inside);
    }
    if is_within(last, value, TOLERANCE) {
        return found(to, Position::Inside);
    }
    let rising = first <= last;
    if (value < first) == rising && (value < last) == rising {
        return found(from, Position::Before);
    }
    if (value > last) == rising && (value > first) == rising {
        return found(to, Position::Beyond);
    }
    let ends = Bracket { value, low: (from, first), high: (to, last) };
    let known = ends.narrowed(&function)?;
    let (mut low, mut high) = (from, to);
    let mut middle = low;
    for _ in 0..MAX_STEPS {
        middle = f64::midpoint(low, high);
        let is_before = match known.side(middle) {
            Some(Side::Low) => true,
            Some(Side::High) => false,
            None => {
                let reached = function(middle)?;
                if is_within(reached, value, TOLERANCE) {
                    break;
                }
                (reached < value) == rising
            }
        };
        if is_before {
            low = middle;
        } else {
            high = middle;
        }
    }
    found(middle, Position::Inside)
}

/// A range with an end that is no number is empty as well.
fn check<E>(from: f64, to: f64) -> Result<(), SearchError<E>> {
    if from.partial_cmp(&to).is_none_or(Ordering::is_gt) {
        return Err(SearchError::EmptyRange { from, to });
    }
    Ok(())
}

/// Two points with the value between them, both too far from it to count as equal. The function need
/// not be asked outside of them again.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    value: f64,
    low: (f64, f64),
    high: (f64, f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Low,
    High,
}

impl Bracket {
    fn side(&self, argument: f64) -> Option<Side> {
        if argument <= self.low.0 {
            Some(Side::Low)
        } else if argument >= self.high.0 {
            Some(Side::High)
        } else {
            None
        }
    }

    fn close(&mut self, point: (f64, f64)) -> Side {
        let rising = self.low.1 < self.high.1;
        if (point.1 < self.value) == rising {
            self.low = point;
            Side::Low
        } else {
            self.high = point;
            Side::High
        }
    }

    /// The bracket drawn close around the value, with few questions: halved until the function is
    /// nearly straight, then by regula falsi in the form of Illinois (Dowell and Jarratt, 1971).
    fn narrowed<E>(mut self, function: &impl Fn(f64) -> Result<f64, E>) -> Result<Self, E> {
        let (mut weight_low, mut weight_high) = (1.0, 1.0);
        let mut last = None;
        for _ in 0..MAX_STEPS {
            let (low, high) = (self.low.1 - self.value, self.high.1 - self.value);
            let is_straight = (high - low).abs() < STRAIGHT * self.value.abs();
            let argument = if is_straight {
                let (low, high) = (low * weight_low, high * weight_high);
                (self.low.0 * high - self.high.0 * low) / (high - low)
            } else {
                f64::midpoint(self.low.0, self.high.0)
            };
            if self.side(argument).is_some() || argument.is_nan() {
                break;
            }
            let reached = function(argument)?;
            if is_within(reached, self.value, TOLERANCE) {
                return self.pinched(argument, function);
            }
            let side = self.close((argument, reached));
            let again = last == Some(side) && is_straight;
            (weight_low, weight_high) = match side {
                Side::Low => (1.0, if again { weight_high * 0.5 } else { 1.0 }),
                Side::High => (if again { weight_low * 0.5 } else { 1.0 }, 1.0),
            };
            last = Some(side);
        }
        Ok(self)
    }

    /// The bracket with its ends next to the arguments that count as equal, one of which is `equal`.
    fn pinched<E>(
        mut self,
        equal: f64,
        function: &impl Fn(f64) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let slope = (self.high.1 - self.low.1) / (self.high.0 - self.low.0);
        let reach = (MARGIN * TOLERANCE * self.value / slope).abs();
        for argument in [equal - reach, equal + reach] {
            if self.side(argument).is_none() && argument.is_finite() {
                let reached = function(argument)?;
                if !is_within(reached, self.value, TOLERANCE) {
                    self.close((argument, reached));
                }
            }
        }
        Ok(self)
    }
}
