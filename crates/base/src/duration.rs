//! Durations as people write them: Go's grammar (`90s`, `1m30s`, `1.5h`) and the words of humantime
//! (`2 min`, `1 hour 30 minutes`). A unit is required.

use std::fmt::Write as _;
use std::time::Duration;

/// Longest text that is looked at; every sensible duration is far shorter.
const MAX_TEXT: usize = 64;

/// Most digits of one number. Twelve keep every sum far below the range of `Duration`, so that the
/// parser behind this module cannot overflow.
const MAX_DIGITS: usize = 12;

/// The longest duration, as in Go: 2^63 − 1 nanoseconds, about 292 years. Whatever is below it can be
/// written down and read again.
const LONGEST: Duration = Duration::from_nanos(i64::MAX.unsigned_abs());

/// Units that mean the same to everybody. Months and years are missing: their length varies, and
/// `M` differs from `m` by one key.
const UNITS: &[&str] = &[
    "ns", "nsec", "nanos", "us", "usec", "ms", "msec", "millis", "s", "sec", "secs", "second",
    "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hrs", "hour", "hours", "d",
    "day", "days", "w", "wk", "wks", "week", "weeks",
];

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum DurationError {
    /// Nothing was written.
    #[error("it is empty")]
    Empty,
    /// A number without a unit.
    #[error("{0:?} has no unit")]
    NoUnit(String),
    /// A unit that is unknown or does not mean one fixed length.
    #[error("unit {0:?} is not accepted (ns, us, ms, s, m or min, h, d, w are)")]
    Unit(String),
    /// A time span before now.
    #[error("it is negative")]
    Negative(Duration),
    /// Not a sequence of numbers with units.
    #[error("it is not a sequence of numbers with units")]
    Shape,
    /// Longer than 292 years, or finer than a nanosecond.
    #[error("it cannot be represented")]
    Range,
}

/// Reads a duration. A bare `0` needs no unit, as in Go.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text.len() > MAX_TEXT {
        return Err(DurationError::Range);
    }
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let length = parse_magnitude(magnitude)?;
    if negative && !length.is_zero() { Err(DurationError::Negative(length)) } else { Ok(length) }
}

fn parse_magnitude(text: &str) -> Result<Duration, DurationError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut normal = String::with_capacity(text.len());
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |letter| letter.is_ascii_digit() || letter == '.');
        let (unit, after) = split_while(after.trim_start_matches(' '), char::is_alphabetic);
        push_term(&mut normal, number, unit)?;
        rest = after.trim_start_matches(' ');
    }
    let length = humantime::parse_duration(&normal).map_err(|error| match error {
        humantime::DurationError::Empty => DurationError::Empty,
        _ => DurationError::Range,
    })?;
    if length > LONGEST {
        return Err(DurationError::Range);
    }
    Ok(length)
}

/// Appends `number` and `unit` in the form that humantime reads: digits on both sides of the point.
fn push_term(normal: &mut String, number: &str, unit: &str) -> Result<(), DurationError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(DurationError::Shape);
    }
    if unit.is_empty() {
        return Err(DurationError::NoUnit(number.to_owned()));
    }
    let unit = match unit {
        "µs" | "μs" => "us",
        other => other,
    };
    if !UNITS.contains(&unit) {
        return Err(DurationError::Unit(unit.to_owned()));
    }
    let fraction = fraction.trim_end_matches('0');
    if whole.len() > MAX_DIGITS || fraction.len() > MAX_DIGITS {
        return Err(DurationError::Range);
    }
    normal.push_str(if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        normal.push('.');
        normal.push_str(fraction);
    }
    normal.push_str(unit);
    Ok(())
}

fn split_while(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|letter: char| !accept(letter)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Writes a duration the way Go does: `1m30s`, `1h0m0s`, `1.5s`, `500ms`, `0s`.
pub fn format_duration(length: Duration) -> String {
    let nanos = length.subsec_nanos();
    if length.is_zero() {
        return "0s".to_owned();
    }
    if length.as_secs() == 0 {
        return match nanos {
            1..1_000 => format!("{nanos}ns"),
            1_000..1_000_000 => format!("{}µs", decimal(u64::from(nanos), 1_000, 3)),
            _ => format!("{}ms", decimal(u64::from(nanos), 1_000_000, 6)),
        };
    }
    let (hours, minutes) = (length.as_secs() / 3600, length.as_secs() / 60 % 60);
    let mut text = String::new();
    if hours > 0 {
        write!(text, "{hours}h").unwrap_or_default();
    }
    if hours > 0 || minutes > 0 {
        write!(text, "{minutes}m").unwrap_or_default();
    }
    let seconds = length.as_secs() % 60 * 1_000_000_000 + u64::from(nanos);
    write!(text, "{}s", decimal(seconds, 1_000_000_000, 9)).unwrap_or_default();
    text
}

/// `amount / unit` with as many of `places` decimals as are not zero.
fn decimal(amount: u64, unit: u64, places: usize) -> String {
    let fraction = format!("{:0places$}", amount % unit);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        (amount / unit).to_string()
    } else {
        format!("{}.{fraction}", amount / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_one_is_read_again() {
        let longest = format_duration(LONGEST);
        assert_eq!(longest, "2562047h47m16.854775807s");
        assert_eq!(parse_duration(&longest), Ok(LONGEST));
    }

    #[test]
    fn go_and_words_are_read() {
        for (text, millis) in [
            ("90s", 90_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("2h45m", 9_900_000),
            ("300ms", 300),
            (".5s", 500),
            ("5.s", 5_000),
            ("+5s", 5_000),
            ("1.50s", 1_500),
            ("1000µs", 1),
            ("1000μs", 1),
            ("0", 0),
            ("0s", 0),
            ("-0s", 0),
            ("2 min", 120_000),
            ("1 hour 30 minutes", 5_400_000),
            ("1m 30s", 90_000),
            ("1d", 86_400_000),
            ("1 week", 604_800_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        for (text, error) in [
            ("", DurationError::Empty),
            ("60", DurationError::NoUnit("60".to_owned())),
            ("1m30", DurationError::NoUnit("30".to_owned())),
            ("1M", DurationError::Unit("M".to_owned())),
            ("2 months", DurationError::Unit("months".to_owned())),
            ("1y", DurationError::Unit("y".to_owned())),
            ("1year", DurationError::Unit("year".to_owned())),
            ("5S", DurationError::Unit("S".to_owned())),
            ("-5s", DurationError::Negative(Duration::from_secs(5))),
            ("abc", DurationError::Shape),
            ("--5s", DurationError::Shape),
            ("1..5s", DurationError::Shape),
            (".s", DurationError::Shape),
            ("1,5s", DurationError::NoUnit("1".to_owned())),
            ("1 0s", DurationError::NoUnit("1".to_owned())),
            ("5124095576030431h15s1000000000ns", DurationError::Range),
            ("9223372036s854775808ns", DurationError::Range),
            ("921474836480w", DurationError::Range),
            ("0.5ns", DurationError::Range),
        ] {
            assert_eq!(parse_duration(text), Err(error), "{text}");
        }
    }

    #[test]
    fn go_form_is_written() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (500_000_000, "500ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (90_061_000_000_001, "25h1m1.000000001s"),
        ] {
            assert_eq!(format_duration(Duration::from_nanos(nanos)), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in 0..3_600_000_000_u64, nanos in 0..1_000_000_000_u32) {
            let length = Duration::new(seconds, nanos);
            prop_assert_eq!(parse_duration(&format_duration(length)), Ok(length));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[-+0-9.a-zµ ]{0,70}|\\PC{0,70}") {
            drop(parse_duration(&text));
        }
    }
}
