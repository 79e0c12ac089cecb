//! The known word that an unknown one was probably meant to be.

use strsim::osa_distance;

use super::text::bounded;

/// The longest key that a ConfigMap may have; a settings file may have longer ones.
pub const LONGEST_KEY: usize = 253;

/// Words longer than this are not compared; no name of ours comes near.
const MAX_WORD: usize = 80;

/// The candidate closest to `word`, letter case ignored, if at most a third of it differs: the fewest
/// insertions, deletions, replacements and swaps of neighbours (optimal string alignment). The first of
/// several equally close ones wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let length = word.chars().count();
    let most = (length / 3).max(1);
    candidates
        .into_iter()
        // Each step makes a word longer or shorter by one letter at most.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= most)
        .map(|candidate| {
            let steps = osa_distance(&word, &candidate.to_ascii_lowercase());
            (steps, candidate)
        })
        .filter(|(steps, _)| *steps <= most)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, candidate)| candidate)
}

/// `"x"; did you mean "y"?` or `"x"`, for messages; of a long word its beginning.
pub fn with_suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(candidate) => format!("{word:?}; did you mean {candidate:?}?"),
        None => format!("{:?}", bounded(word, LONGEST_KEY)),
    }
}

/// What to write instead of an unknown word: the one it was probably meant to be, else all there are.
pub fn instead<'a>(word: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, candidates.clone()) {
        Some(candidate) => format!("did you mean {candidate:?}?"),
        None => format!("write one of {}", candidates.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_recognised_and_a_stranger_is_not() {
        let known = ["kvCacheThreshold", "kvSpareTrigger", "priority"];
        assert_eq!(nearest("kvCacheTreshold", known), Some("kvCacheThreshold"));
        assert_eq!(nearest("PRIORITY", known), Some("priority"));
        assert_eq!(nearest("kvSpareTriggre", known), Some("kvSpareTrigger"));
        assert_eq!(nearest("replicas", known), None);
        assert_eq!(nearest("", known), None);
        // A third of the letters, and one more; the first of two that are equally close.
        assert_eq!(nearest("abcdef", ["abcdXY"]), Some("abcdXY"));
        assert_eq!(nearest("abcdef", ["abcXYZ"]), None);
        assert_eq!(nearest("abcd", ["abcX", "abcY"]), Some("abcX"));
        assert_eq!(nearest(&"x".repeat(10_000), known), None);
        assert_eq!(
            with_suggestion("prioritty", known),
            "\"prioritty\"; did you mean \"priority\"?"
        );
        assert_eq!(with_suggestion("zzz", known), "\"zzz\"");
        let long = with_suggestion(&"z".repeat(10_000), known);
        assert_eq!(long, format!("\"{}…\"", "z".repeat(253)));
    }
}
