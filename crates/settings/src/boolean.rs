//! Yes or no, as Go's flags spell it.

/// Reads `1`, `t`, `true` and `0`, `f`, `false` in any letter case. Everything else is no answer;
/// in particular `yes` is not quietly read as false.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Some(true),
        "0" | "f" | "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_bool;

    #[test]
    fn only_unmistakable_spellings_are_read() {
        for text in ["1", "t", "T", "true", "TRUE", "True", "tRuE"] {
            assert_eq!(parse_bool(text), Some(true), "{text}");
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(parse_bool(text), Some(false), "{text}");
        }
        for text in ["", "yes", "no", "on", "off", " true", "2", "y"] {
            assert_eq!(parse_bool(text), None, "{text}");
        }
    }
}
