//! Quantities as the metrics APIs of Kubernetes write them: `250m`, `1.5`, `128Mi`, `12e3`, `35n`.

/// Digits that are read; no quantity of Kubernetes has more.
const MAX_TEXT: usize = 64;

const DECIMAL: [(&str, i32); 9] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

const BINARY: [(&str, f64); 6] = [
    ("Ki", 1_024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
];

/// A text that is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no quantity; write one like 250m, 1.5 or 128Mi")]
pub struct InvalidQuantity(String);

/// Reads a quantity: the double that is nearest to it.
pub fn resource_quantity(text: &str) -> Result<f64, InvalidQuantity> {
    scaled(text, 0).ok_or_else(|| InvalidQuantity(text.chars().take(MAX_TEXT).collect()))
}

/// Reads a quantity in thousandths.
pub fn milli_quantity(text: &str) -> Result<f64, InvalidQuantity> {
    scaled(text, 3).ok_or_else(|| InvalidQuantity(text.chars().take(MAX_TEXT).collect()))
}

fn scaled(text: &str, power: i32) -> Option<f64> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let binary =
        BINARY.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
    if let Some((number, factor)) = binary {
        return Some(decimal(number, power)? * factor).filter(|value| value.is_finite());
    }
    let by_suffix =
        DECIMAL.iter().find_map(|(suffix, exponent)| Some((text.strip_suffix(suffix)?, *exponent)));
    let (number, exponent) = match by_suffix {
        Some(found) => found,
        None => exponent(text)?,
    };
    decimal(number, exponent.checked_add(power)?).filter(|value| value.is_finite())
}

fn exponent(text: &str) -> Option<(&str, i32)> {
    match text.split_once(['e', 'E']) {
        Some((number, exponent)) => Some((number, exponent.parse().ok()?)),
        None => Some((text, 0)),
    }
}

fn decimal(number: &str, exponent: i32) -> Option<f64> {
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    let is_number = digits.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
        && digits.contains(|letter: char| letter.is_ascii_digit());
    if !is_number {
        return None;
    }
    // The parser rounds once, which a multiplication after it would do again.
    format!("{number}e{exponent}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_have_the_value_that_kubernetes_gives_them() {
        for (text, value) in [
            ("0", "0"),
            ("250m", "0.25"),
            ("1.5", "1.5"),
            ("+7", "7"),
            ("-3", "-3"),
            (".5", "0.5"),
            ("5.", "5"),
            ("35n", "0.000000035"),
            ("100u", "0.0001"),
            ("12e3", "12000"),
            ("12E3", "12000"),
            ("12E", "12000000000000000000"),
            ("1e-3", "0.001"),
            ("3k", "3000"),
            ("2M", "2000000"),
            ("128Mi", "134217728"),
            ("1.5Gi", "1610612736"),
            ("0.1", "0.1"),
            ("100m", "0.1"),
            ("1Ei", "1152921504606846976"),
        ] {
            let found = resource_quantity(text).unwrap();
            let expected: f64 = value.parse().unwrap();
            assert_eq!(found.to_bits(), expected.to_bits(), "{text}: {found}");
        }
    }

    #[test]
    fn thousandths_are_exact() {
        for (text, value) in [
            ("250m", 250.0),
            ("1", 1_000.0),
            ("2499123456n", 2_499.123_456),
            ("1Ki", 1_024_000.0),
            ("1e3", 1_000_000.0),
        ] {
            let found = milli_quantity(text).unwrap();
            assert_eq!(found.to_bits(), f64::to_bits(value), "{text}: {found}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        let long = "1".repeat(65);
        for text in [
            "",
            "m",
            "Ki",
            "1.2.3",
            "--1",
            "1 m",
            "1mm",
            "1e",
            "1e1.5",
            "NaN",
            "inf",
            "0x1",
            "1e999999999999",
            "1e400",
            "ten",
            "1KiB",
            &long,
        ] {
            let error = resource_quantity(text).unwrap_err().to_string();
            assert!(error.contains("is no quantity"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9.eEmKikGn]{0,12}") {
            if let Ok(value) = resource_quantity(&text) {
                prop_assert!(value.is_finite());
            }
        }
    }
}
