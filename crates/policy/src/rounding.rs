//! From quantities to whole things: replicas and GPUs come in ones.

/// Share of a quantity that is a rounding error of the division behind it, not one more replica.
const ROUNDING: f64 = 1e-9;

/// The largest whole number that is not above `quantity`; 0 where it is negative or no number.
#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast drops the fraction, ends at both limits, and makes 0 of what is no number"
)]
pub fn floor(quantity: f64) -> u32 {
    (quantity * (1.0 + ROUNDING)) as u32
}

/// The smallest whole number that is not below `quantity`; 0 where it is negative or no number.
pub fn ceil(quantity: f64) -> u32 {
    let quantity = quantity * (1.0 - ROUNDING);
    let whole = floor(quantity);
    if f64::from(whole) < quantity { whole.saturating_add(1) } else { whole }
}

/// The quantity with two decimals, as texts show it, and as it is remembered, so that records stay small.
pub(crate) fn hundredths(quantity: f64) -> f64 {
    (quantity * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::{ceil, floor};

    #[test]
    fn whole_numbers_stay_and_the_rest_goes_to_its_side() {
        for (quantity, below, above) in [
            (0.0, 0, 0),
            (0.4, 0, 1),
            (1.0, 1, 1),
            (1.0001, 1, 2),
            (2.999, 2, 3),
            (7.0, 7, 7),
            (-3.0, 0, 0),
            (f64::NAN, 0, 0),
            (f64::INFINITY, u32::MAX, u32::MAX),
        ] {
            assert_eq!((floor(quantity), ceil(quantity)), (below, above), "{quantity}");
        }
    }

    #[test]
    fn the_error_of_a_division_is_no_replica() {
        let third = 0.1 + 0.2;
        assert_eq!(ceil(third / 0.1), 3);
        assert_eq!(floor(0.3 / 0.1), 3);
    }
}
