//! Text for fields that Kubernetes limits in length.

/// `text` in at most `limit` bytes; what is cut is marked by three dots. Never splits a character.
pub fn bounded(text: &str, limit: usize) -> String {
    const MARK: &str = "...";
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut cut = String::with_capacity(limit);
    for character in text.chars() {
        if cut.len() + character.len_utf8() + MARK.len() > limit {
            break;
        }
        cut.push(character);
    }
    if cut.len() + MARK.len() <= limit {
        cut.push_str(MARK);
    }
    cut
}

/// The text without its middle where it has more letters than `limit`: a third of what is kept is its beginning.
pub fn both_ends(text: &str, limit: usize) -> String {
    const GAP: &str = " ... ";
    let letters = text.chars().count();
    if letters <= limit {
        return text.to_owned();
    }
    let head = limit / 3;
    let tail = limit.saturating_sub(head + GAP.len());
    let end = text.chars().skip(letters.saturating_sub(tail));
    let start = text.chars().take(head);
    start.chain(GAP.chars()).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::bounded;

    #[test]
    fn text_is_cut_at_a_character_and_marked() {
        for (text, limit, expected) in [
            ("", 0, ""),
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abc..."),
            ("äöü", 6, "äöü"),
            ("äöüx", 6, "ä..."),
            ("abcdefg", 2, ""),
        ] {
            assert_eq!(bounded(text, limit), expected, "{text:?} in {limit}");
        }
    }
}
