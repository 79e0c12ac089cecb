//! Text from outside, bounded for a message.

/// A text for a terminal: its control characters are escaped, other than line ends.
pub fn printable(text: &str) -> String {
    let mut printed = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && letter != '\n' {
            printed.extend(letter.escape_default());
        } else {
            printed.push(letter);
        }
    }
    printed
}

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
