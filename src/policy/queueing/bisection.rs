//! Where a monotone function takes a value.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Relative distance at which two values count as equal.
pub const TOLERANCE: f64 = 1e-6;

/// Halvings after which the search ends.
const MAX_STEPS: u32 = 100;

/// Where the value lies, as seen from the range searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Position {
    /// Before the first argument.
    Before,
    /// Inside.
    Inside,
    /// Beyond the last argument.
    Beyond,
}

/// What a search found: the argument, or the end of the range next to the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The argument.
    pub argument: f64,
    /// Where the value lies.
    pub position: Position,
}

/// A search that could not be made.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SearchError<E> {
    /// The range is empty.
    #[error("range from {from} to {to} is empty")]
    EmptyRange {
        /// Its start.
        from: f64,
        /// Its end.
        to: f64,
    },
    /// The function failed.
    #[error(transparent)]
    Function(#[from] E),
}

/// Whether `value` is `reference`, or closer to it than `tolerance` times the reference.
#[expect(clippy::float_cmp, reason = "equal values are within every tolerance")]
pub fn is_within(value: f64, reference: f64, tolerance: f64) -> bool {
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
///
/// # Errors
/// If the range is empty, and whatever the function returns.
pub fn bisect<E>(
    from: f64,
    to: f64,
    value: f64,
    function: impl Fn(f64) -> Result<f64, E>,
) -> Result<Found, SearchError<E>> {
    // A range with an end that is no number is empty as well.
    if from.partial_cmp(&to).is_none_or(Ordering::is_gt) {
        return Err(SearchError::EmptyRange { from, to });
    }
    let found = |argument, position| Ok(Found { argument, position });
    let first = function(from)?;
    if is_within(first, value, TOLERANCE) {
        return found(from, Position::Inside);
    }
    let last = function(to)?;
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
    let (mut low, mut high) = (from, to);
    let mut middle = low;
    for _ in 0..MAX_STEPS {
        middle = f64::midpoint(low, high);
        let reached = function(middle)?;
        if is_within(reached, value, TOLERANCE) {
            break;
        }
        if (reached < value) == rising {
            low = middle;
        } else {
            high = middle;
        }
    }
    found(middle, Position::Inside)
}
