//! Sums of amounts.

/// The sum; 0 of none. The sum of no floating-point numbers is `-0.0`, which would show as a negative
/// amount.
pub(super) fn total(amounts: impl Iterator<Item = f64>) -> f64 {
    amounts.sum::<f64>() + 0.0
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn nothing_sums_up_to_a_zero_without_a_sign() {
        assert!([0.0_f64; 0].iter().sum::<f64>().is_sign_negative());
        assert!(total(std::iter::empty()).is_sign_positive());
        assert_eq!(total([1.5, 2.0].into_iter()).to_bits(), 3.5_f64.to_bits());
    }
}
