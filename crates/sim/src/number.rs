//! Numbers between exact counts and floating point, and numbers drawn by chance.

use std::time::Duration;

use wva_supervise::Generator;

/// The nearest floating-point number; exact below 2^53.
pub(super) fn real(count: u64) -> f64 {
    let high = u32::try_from(count >> 32).unwrap_or(u32::MAX);
    let low = u32::try_from(count & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

pub(super) fn length(count: usize) -> f64 {
    real(u64::try_from(count).unwrap_or(u64::MAX))
}

/// `None` without values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// The whole number nearest to `quantity`; 0 where it is negative or no number.
pub(super) fn rounded(quantity: f64) -> u32 {
    // A duration is the one standard type that turns a float into an integer by rule.
    u32::try_from(duration(quantity + 0.5).as_secs()).unwrap_or(u32::MAX)
}

/// A length of time; zero where `seconds` is negative or no number, and the longest there is where
/// it is too large.
pub(super) fn duration(seconds: f64) -> Duration {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) => duration,
        Err(_) if seconds > 0.0 => Duration::MAX,
        Err(_) => Duration::ZERO,
    }
}

/// FNV-1a of nothing.
pub(super) const HASH_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of what had this hash, and more bytes: the same for the same bytes, always.
pub(super) fn hash(before: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let bytes = bytes.into_iter();
    bytes.fold(before, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A text of so many letters drawn from these bits, without those that could spell words.
pub(super) fn letters(mut bits: u64, length: usize) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = String::new();
    for _ in 0..length {
        let at = usize::try_from(bits % 27).unwrap_or(0);
        text.push(LETTERS.get(at).copied().map_or('x', char::from));
        bits /= 27;
    }
    text
}

/// Evenly spread above 0 and below 1.
pub(super) fn uniform(generator: &mut Generator) -> f64 {
    let bits = generator.next_u64() >> 11;
    (real(bits) + 0.5) / 9_007_199_254_740_992.0
}

/// Exponential with mean 1.
pub(super) fn exponential(generator: &mut Generator) -> f64 {
    -uniform(generator).ln()
}

/// Normal with mean 0 and standard deviation 1. Source: the transform of Box and Muller.
pub(super) fn normal(generator: &mut Generator) -> f64 {
    let radius = (2.0 * exponential(generator)).sqrt();
    radius * (std::f64::consts::TAU * uniform(generator)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva_supervise::SeedTree;

    #[test]
    fn counts_and_floats_meet() {
        assert!((real(1 << 40) - 1_099_511_627_776.0).abs() < 0.5);
        assert!((length(7) - 7.0).abs() < f64::EPSILON);
        for (quantity, whole) in [
            (-1.0, 0),
            (0.4, 0),
            (0.5, 1),
            (7.2, 7),
            (f64::NAN, 0),
            (1e12, u32::MAX),
            (f64::INFINITY, u32::MAX),
        ] {
            assert_eq!(rounded(quantity), whole, "{quantity}");
        }
        assert_eq!(duration(-1.0), Duration::ZERO);
        assert_eq!(duration(f64::NAN), Duration::ZERO);
        assert_eq!(duration(f64::INFINITY), Duration::MAX);
        assert_eq!(duration(0.25), Duration::from_millis(250));
    }

    fn mean_and_variance(draw: impl FnMut() -> f64) -> (f64, f64) {
        let drawn: Vec<f64> = std::iter::repeat_with(draw).take(200_000).collect();
        let count = length(drawn.len());
        let mean = drawn.iter().sum::<f64>() / count;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (mean, variance)
    }

    #[test]
    fn draws_have_their_mean_and_variance() {
        let mut generator = SeedTree::new(1).child("draws");
        let g = &mut generator;
        let cases = [
            ("uniform", mean_and_variance(|| uniform(g)), (0.5, 1.0 / 12.0)),
            ("exponential", mean_and_variance(|| exponential(g)), (1.0, 1.0)),
            ("normal", mean_and_variance(|| normal(g)), (0.0, 1.0)),
        ];
        for (name, (mean, variance), (wanted_mean, wanted_variance)) in cases {
            assert!((mean - wanted_mean).abs() < 0.02, "{name}: mean {mean}");
            assert!((variance / wanted_variance - 1.0).abs() < 0.05, "{name}: variance {variance}");
        }
    }
}
