//! Commands of remedies.

use serde_json::Value;

/// A command with words in their places. It is meant to be pasted, and anyone who may name a model chooses a word: none
/// ends its quotes or begins another command.
pub(super) fn filled(command: &str, places: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut is_quoted = false;
    let mut rest = command;
    while let Some(letter) = rest.chars().next() {
        let place = places.iter().find(|(place, _)| rest.starts_with(place));
        let length = if let Some((place, word)) = place {
            filled.push_str(&if is_quoted { quoted(word) } else { plain(word) });
            place.len()
        } else {
            is_quoted ^= letter == '\'';
            filled.push(letter);
            letter.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    filled
}

/// A word inside of JSON in single quotes.
fn quoted(word: &str) -> String {
    let text = Value::from(word).to_string();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    text.unwrap_or_default().replace('\'', r"'\''")
}

/// A word without quotes.
fn plain(word: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "._/:@-".contains(*letter);
    word.chars().filter(is_plain).collect()
}
