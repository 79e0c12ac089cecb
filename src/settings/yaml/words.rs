//! Messages of the parser in words of the documents that people write.

/// What the parser names after types of its implementation, and what stands in a document.
const WORDS: [(&str, &str); 11] = [
    (
        "expected u32",
        "expected a whole number from 0 to 4294967295",
    ),
    ("expected u64", "expected a whole number of at least 0"),
    ("expected i32", "expected a whole number"),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("expected a boolean", "expected true or false"),
    ("expected a sequence", "expected a list"),
    ("invalid type: sequence", "invalid type: list"),
    ("invalid type: map,", "invalid type: mapping,"),
    ("unknown variant", "unknown value"),
    ("unit value", "nothing"),
];

/// How the parser announces one of its own types.
const STRUCTURE: &str = "expected struct ";

/// Translates a message.
pub fn plain_words(text: &str) -> String {
    let mut plain = text.to_owned();
    if let Some((before, after)) = text.split_once(STRUCTURE) {
        let rest = after.trim_start_matches(|letter: char| letter.is_alphanumeric());
        plain = format!("{before}expected a mapping{rest}");
    }
    for (theirs, ours) in WORDS {
        plain = plain.replace(theirs, ours);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::plain_words;

    #[test]
    fn no_type_of_the_implementation_is_left() {
        for (theirs, ours) in [
            (
                "invalid type: sequence, expected struct SnapshotDocument",
                "invalid type: list, expected a mapping",
            ),
            (
                "a.b: invalid type: string \"x\", expected u32 at line 1 column 3",
                "a.b: invalid type: string \"x\", expected a whole number from 0 to 4294967295 at line 1 column 3",
            ),
            ("unknown field `x`", "unknown field `x`"),
        ] {
            assert_eq!(plain_words(theirs), ours);
        }
    }
}
