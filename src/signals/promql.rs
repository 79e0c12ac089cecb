//! Builds PromQL that a value from outside cannot break out of: names are literals of this program,
//! everything else is validated or escaped on the way in.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use wva_base::names::is_dns_label;

/// A namespace that may stand in a query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// Accepts what Kubernetes accepts as the name of a namespace.
    pub fn parse(text: &str) -> Result<Self, InvalidNamespace> {
        if is_dns_label(text) {
            Ok(Self(Arc::from(text)))
        } else {
            Err(InvalidNamespace { text: text.to_owned() })
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "namespace {text:?} is not a DNS-1123 label (at most 63 of a-z, 0-9 and -, with a letter or digit at both ends); correct WATCH_NAMESPACE"
)]
pub struct InvalidNamespace {
    pub text: String,
}

/// A range or a step in whole seconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RangeWindow {
    seconds: u64,
}

impl RangeWindow {
    /// Drops fractions of a second; less than a second becomes one.
    pub(crate) const fn of(duration: Duration) -> Self {
        let seconds = duration.as_secs();
        Self { seconds: if seconds == 0 { 1 } else { seconds } }
    }

    pub(crate) const fn seconds(self) -> u64 {
        self.seconds
    }
}

impl fmt::Display for RangeWindow {
    /// The largest of day, hour, minute and second that divides it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, letter) = [(86_400, 'd'), (3_600, 'h'), (60, 'm')]
            .into_iter()
            .find(|(unit, _)| self.seconds.is_multiple_of(*unit))
            .unwrap_or((1, 's'));
        write!(formatter, "{}{letter}", self.seconds / unit)
    }
}

/// A selector of the series of one metric. Names are `'static`, so they can only come from this
/// program.
#[derive(Debug, Clone)]
pub(crate) struct SeriesSelector {
    name: &'static str,
    matchers: Vec<String>,
}

impl SeriesSelector {
    /// All series of a metric.
    pub(crate) fn named(name: &'static str) -> Self {
        Self { name, matchers: Vec::new() }
    }

    /// Only those whose label equals the value.
    #[must_use]
    pub(crate) fn matching(mut self, label: &'static str, value: &str) -> Self {
        self.matchers.push(format!("{label}=\"{}\"", escape(value)));
        self
    }

    /// The value of each series that is live now.
    pub(crate) fn now(&self) -> Vector {
        Vector(self.to_string())
    }

    /// The growth per second of each counter in the window, across its resets.
    pub(crate) fn rate_in(&self, window: RangeWindow) -> Vector {
        Vector(format!("rate({self}[{window}])"))
    }

    /// The highest value of each series in the window.
    pub(crate) fn highest_in(&self, window: RangeWindow) -> Vector {
        Vector(format!("max_over_time({self}[{window}])"))
    }

    /// The last value of each series in the window.
    pub(crate) fn last_in(&self, window: RangeWindow) -> Vector {
        Vector(format!("last_over_time({self}[{window}])"))
    }

    /// The time of the newest raw sample of each series that is live now.
    pub(crate) fn live_timestamp(&self) -> Vector {
        Vector(format!("timestamp({self})"))
    }

    /// The time of the newest raw sample of each series that was live at some step in the window.
    pub(crate) fn newest_timestamp_in(&self, window: RangeWindow, step: RangeWindow) -> Vector {
        Vector(format!("max_over_time(timestamp({self})[{window}:{step}])"))
    }
}

wva_base::display_of! { SeriesSelector:
    Self { name, matchers } if matchers.is_empty() => "{name}";
    Self { name, matchers } => "{name}{{{}}}", matchers.join(",");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aggregation {
    Max,
    Sum,
}

/// An expression whose result is an instant vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vector(String);

impl Vector {
    /// One series per combination of the given labels.
    #[must_use]
    pub(crate) fn grouped(self, how: Aggregation, labels: &[&'static str]) -> Self {
        let operator = match how {
            Aggregation::Max => "max",
            Aggregation::Sum => "sum",
        };
        Self(format!("{operator} by ({}) ({})", labels.join(", "), self.0))
    }

    /// One series, the highest, of those that differ in nothing but the given labels.
    #[must_use]
    pub(crate) fn but_for(self, labels: &[&'static str]) -> Self {
        Self(format!("max without ({}) ({})", labels.join(", "), self.0))
    }

    /// Its own series, and those of `other` whose labels it does not have.
    #[must_use]
    pub(crate) fn or(mut self, other: &Self) -> Self {
        self.0.push_str(" or ");
        self.0.push_str(&other.0);
        self
    }

    /// Its own series, and those of `other` for which it has none with the same values of `labels`.
    #[must_use]
    pub(crate) fn or_on(self, labels: &[&'static str], other: &Self) -> Self {
        Self(format!("{} or on ({}) {}", self.0, labels.join(", "), other.0))
    }

    /// The same series with one more label.
    #[must_use]
    pub(crate) fn tagged(self, label: &'static str, value: &'static str) -> Self {
        Self(format!("label_replace({}, \"{label}\", \"{value}\", \"\", \"\")", self.0))
    }

    /// The text of its values at every multiple of `step` in the last `range`.
    pub(crate) fn over(self, range: RangeWindow, step: RangeWindow) -> String {
        format!("({})[{range}:{step}]", self.0)
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Escapes a value for use between double quotes. Line breaks and other control characters are
/// escaped too: they cannot end the string, but would make the query unreadable to the parser.
pub(crate) fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            control if control.is_control() => {
                // Writing to a String cannot fail.
                write!(escaped, "\\u{:04x}", u32::from(control)).unwrap_or_default();
            }
            other => escaped.push(other),
        }
    }
    escaped
}
