//! Lengths of time as PromQL writes them.

use std::time::Duration;

/// Units with their length in milliseconds, in the order in which they may follow each other.
const UNITS: [(&str, i64); 7] = [
    ("y", 365 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Milliseconds of a text like `1h30m`; `None` if it is no such text.
pub(super) fn parse(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at_checked(digits)?;
        let letters = after
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        let (_, length) = units.find(|(name, _)| *name == unit)?;
        let number: i64 = number.parse().ok()?;
        total = total.checked_add(number.checked_mul(*length)?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// Milliseconds of a number of seconds.
pub(super) fn of_seconds(seconds: f64) -> Option<i64> {
    let length = Duration::try_from_secs_f64(seconds).ok()?;
    i64::try_from(length.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn units_descend() {
        let cases = [
            ("5m", Some(300_000)),
            ("1h30m", Some(5_400_000)),
            ("90s", Some(90_000)),
            ("15ms", Some(15)),
            ("1y2w3d", Some((365 + 14 + 3) * 86_400_000)),
            ("", None),
            ("5", None),
            ("m", None),
            ("5m1h", None),
            ("5m5m", None),
            ("9999999999999y", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(parse(text), wanted, "{text}");
        }
    }
}
