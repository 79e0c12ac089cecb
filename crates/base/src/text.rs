//! Text from outside, bounded for a message.

/// At most 120 letters of a text.
pub fn shortened(text: &str) -> String {
    bounded(text, 120)
}

/// At most so many letters of a text.
pub fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => {
            let start = text.get(..end).unwrap_or_default();
            format!("{start}…")
        }
    }
}
