//! The known word that an unknown one was probably meant to be.

/// Words longer than this are not compared; no name of ours comes near.
const MAX_WORD: usize = 80;

/// The candidate closest to `word`, letter case ignored, if at most a third of it differs. The first
/// of several equally close ones wins.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let word = letters(word);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &letters(candidate)), candidate))
        .min_by_key(|(steps, _)| *steps)
        .filter(|(steps, _)| *steps <= (word.len() / 3).max(1))
        .map(|(_, candidate)| candidate)
}

/// `"x"; did you mean "y"?` or `"x"`, for messages.
pub(super) fn with_suggestion<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> String {
    match nearest(word, candidates) {
        Some(candidate) => format!("{word:?}; did you mean {candidate:?}?"),
        None => format!("{word:?}"),
    }
}

/// What to write instead of an unknown word: the one it was probably meant to be, else all there are.
pub(super) fn instead<'a>(word: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, candidates.clone()) {
        Some(candidate) => format!("did you mean {candidate:?}?"),
        None => format!("write one of {}", candidates.collect::<Vec<_>>().join(", ")),
    }
}

fn letters(word: &str) -> Vec<char> {
    word.to_ascii_lowercase().chars().collect()
}

/// Fewest insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
fn distance(left: &[char], right: &[char]) -> usize {
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut two_above: Vec<usize> = Vec::new();
    let mut before_from = None;
    for (line, from) in left.iter().enumerate() {
        let mut row = vec![line + 1];
        let mut before_to = None;
        for (column, to) in right.iter().enumerate() {
            let at =
                |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let mut steps = (at(&above, column) + usize::from(from != to))
                .min(at(&above, column + 1) + 1)
                .min(at(&row, column) + 1);
            if before_from == Some(to) && before_to == Some(from) {
                steps = steps.min(at(&two_above, column.saturating_sub(1)) + 1);
            }
            row.push(steps);
            before_to = Some(to);
        }
        two_above = std::mem::replace(&mut above, row);
        before_from = Some(from);
    }
    above.last().copied().unwrap_or(left.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (left, right, steps) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("same", "same", 0),
            ("scoer", "score", 1),
            ("ab", "ba", 1),
            ("ca", "abc", 3),
        ] {
            assert_eq!(
                distance(&letters(left), &letters(right)),
                steps,
                "{left} {right}"
            );
        }
    }

    #[test]
    fn a_typo_is_recognised_and_a_stranger_is_not() {
        let known = ["kvCacheThreshold", "kvSpareTrigger", "priority"];
        assert_eq!(nearest("kvCacheTreshold", known), Some("kvCacheThreshold"));
        assert_eq!(nearest("PRIORITY", known), Some("priority"));
        assert_eq!(nearest("replicas", known), None);
        assert_eq!(nearest(&"x".repeat(10_000), known), None);
        assert_eq!(
            with_suggestion("prioritty", known),
            "\"prioritty\"; did you mean \"priority\"?"
        );
        assert_eq!(with_suggestion("zzz", known), "\"zzz\"");
    }
}
