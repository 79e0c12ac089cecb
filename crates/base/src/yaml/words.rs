//! Messages of the parser in words of the documents that people write.

/// What the parser names after types of its implementation, and what stands in a document.
const WORDS: [(&str, &str); 12] = [
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected u64", "expected a whole number of at least 0"),
    ("expected i32", "expected a whole number"),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("expected a boolean", "expected true or false"),
    ("expected a sequence", "expected a list"),
    ("expected a YAML tag starting with '!'", "expected a single word"),
    ("invalid type: sequence", "invalid type: list"),
    ("invalid type: map,", "invalid type: mapping,"),
    ("unknown variant", "unknown value"),
    ("unit value", "nothing"),
];

/// How the parser announces one of its own types.
const STRUCTURE: &str = "expected struct ";

/// Letters at the beginning of a long message that are shown; one that lists every field a snapshot knows
/// is shorter.
const BEGINNING: usize = 600;
/// Letters at its end that are shown: what is expected, and where.
const END: usize = 200;

/// Translates a message, and leaves the middle out of one that quotes a long text.
pub fn plain_words(text: &str) -> String {
    let text = &abridged(text);
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

fn abridged(text: &str) -> String {
    let count = text.chars().count();
    if count <= BEGINNING + END {
        return text.to_owned();
    }
    let beginning = text.chars().take(BEGINNING);
    let end = text.chars().skip(count - END);
    beginning.chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::plain_words;

    #[test]
    fn of_a_long_text_beginning_and_end_are_shown() {
        let long = |length| {
            let text = "ü".repeat(length);
            format!("a.b: invalid type: string \"{text}\", expected u32 at line 1 column 3")
        };
        let whole = plain_words(&long(600));
        assert!(whole.contains(&"ü".repeat(600)), "{whole}");
        let part = plain_words(&long(100_000));
        assert!(part.starts_with("a.b: invalid type: string \"ü"), "{part}");
        let end = "ü\", expected a whole number from 0 to 4294967295 at line 1 column 3";
        assert!(part.ends_with(end) && part.len() < 2_000, "{part}");
    }

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
            (
                "a.role: invalid type: sequence, expected a YAML tag starting with '!'",
                "a.role: invalid type: list, expected a single word",
            ),
            ("unknown field `x`", "unknown field `x`"),
        ] {
            assert_eq!(plain_words(theirs), ours);
        }
    }
}
