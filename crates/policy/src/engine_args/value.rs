//! Values of arguments.

use std::sync::Arc;

/// Longest text that is kept of a value that is a name, like a number type.
const MAX_TEXT: usize = 64;

/// A whole number as engines read it: `8192`, `8k` (thousands), `8K` (of 1024), `25.6k`.
pub(super) fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let suffix = text.chars().last()?;
    let scale = match suffix {
        'k' => 1_000,
        'K' => 1 << 10,
        'm' => 1_000_000,
        'M' => 1 << 20,
        'g' => 1_000_000_000,
        'G' => 1 << 30,
        _ => return None,
    };
    let digits = text.strip_suffix(suffix)?;
    match digits.split_once('.') {
        // Binary units have no fractions.
        Some(_) if suffix.is_ascii_uppercase() => None,
        Some((whole, part)) => {
            let fraction = decimals(part, scale)?;
            unsigned(whole)?.checked_mul(scale)?.checked_add(fraction)
        }
        None => unsigned(digits)?.checked_mul(scale),
    }
}

/// Digits after the point, in units of a power of ten.
fn decimals(digits: &str, mut scale: i64) -> Option<i64> {
    let mut sum: i64 = 0;
    for digit in digits.chars() {
        scale /= 10;
        sum = sum.checked_add(i64::from(digit.to_digit(10)?).checked_mul(scale)?)?;
    }
    (!digits.is_empty()).then_some(sum)
}

fn unsigned(digits: &str) -> Option<i64> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

pub(super) fn count(text: &str, least: u32) -> Option<u32> {
    u32::try_from(whole(text)?).ok().filter(|count| *count >= least)
}

/// A share above 0 and at most 1.
pub(super) fn share(text: &str) -> Option<f64> {
    let share: f64 = text.trim().parse().ok()?;
    (share > 0.0 && share <= 1.0).then_some(share)
}

pub(super) fn name(text: &str) -> Option<Arc<str>> {
    let text = text.trim();
    let is_short = !text.is_empty() && text.len() <= MAX_TEXT;
    (is_short && !text.chars().any(char::is_control)).then(|| Arc::from(text))
}

/// Whether a switch is on. Without a value, or with one that is none of its own, its presence says so.
pub(super) fn switch(value: Option<&str>) -> bool {
    let value = value.map(str::trim).unwrap_or_default();
    !["false", "no", "off", "0"].iter().any(|off| value.eq_ignore_ascii_case(off))
}

pub(super) fn names_variable(text: &str) -> bool {
    text.contains('$')
}
