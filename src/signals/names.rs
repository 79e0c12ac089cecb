//! What a label value must look like before it may name a model.

/// Longest model name that is believed. Repository names stay below 200 bytes; paths to local
/// weights are longer.
const MAX_MODEL: usize = 1024;

/// Whether `text` can be the name of a model: not empty, not absurdly long, printable.
pub(super) fn is_model_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_MODEL && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_printable_and_not_absurd() {
        for good in ["meta/llama0-70b", "/mnt/models", "a\"b{}", &"m".repeat(1024)] {
            assert!(is_model_name(good), "{good:?}");
        }
        for bad in ["", "a\nb", "\u{0}", &"m".repeat(1025)] {
            assert!(!is_model_name(bad), "{bad:?}");
        }
    }
}
