//! Regular expressions as Prometheus reads them: the syntax of Go, and the whole text has to match.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use regex::{Regex, RegexBuilder};

/// Deepest nesting of groups.
const DEPTH: u32 = 100;
/// Largest compiled pattern, in bytes.
const SIZE: usize = 1 << 20;
/// Most patterns that are kept compiled.
const KEPT: usize = 64;

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidPattern(String);

/// A compiled regular expression. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pattern {
    text: String,
    compiled: Regex,
}

/// What matched: the text of the whole and of each group.
pub(super) type Captures<'t> = Vec<Option<&'t str>>;

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "/{}/", self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// When it is none, or too large.
    pub(super) fn new(text: &str) -> Result<Self, InvalidPattern> {
        let build = |pattern: &str| {
            let mut builder = RegexBuilder::new(pattern);
            let built = builder.nest_limit(DEPTH).size_limit(SIZE).build();
            built.map_err(|error| {
                // Its last line says what is wrong, those before it draw where.
                let text = error.to_string();
                let line = text.lines().last().unwrap_or_default();
                InvalidPattern(line.trim_start_matches("error: ").to_owned())
            })
        };
        let pattern = as_in_go(text);
        // By itself first: the anchors would close and open what it leaves unbalanced.
        build(&pattern)?;
        Ok(Self {
            text: text.to_owned(),
            compiled: build(&format!("^(?s:{pattern})$"))?,
        })
    }

    /// Whether all of a text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }

    /// What the groups matched if all of a text matches.
    pub(super) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        let found = self.compiled.captures(text)?;
        let groups = found.iter();
        Some(groups.map(|group| Some(group?.as_str())).collect())
    }
}

/// In Go, `\d`, `\s`, `\w` and `\b` know ASCII only.
fn as_in_go(text: &str) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        match escaped {
            None => translated.push(letter),
            Some('d') => translated.push_str("[0-9]"),
            Some('D') => translated.push_str("[^0-9]"),
            Some('s') => translated.push_str(r"[\t\n\f\r ]"),
            Some('S') => translated.push_str(r"[^\t\n\f\r ]"),
            Some('w') => translated.push_str("[0-9A-Za-z_]"),
            Some('W') => translated.push_str("[^0-9A-Za-z_]"),
            Some('b') => translated.push_str(r"(?-u:\b)"),
            Some('B') => translated.push_str(r"(?-u:\B)"),
            Some(other) => translated.extend(['\\', other]),
        }
    }
    translated
}

/// Patterns that were used lately: a controller sends the same ones again and again.
#[derive(Debug, Default)]
pub(super) struct Patterns(Mutex<BTreeMap<String, Pattern>>);

impl Patterns {
    /// The pattern of a text.
    ///
    /// # Errors
    /// See [`Pattern::new`].
    pub(super) fn get(&self, text: &str) -> Result<Pattern, InvalidPattern> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(text) {
            return Ok(known.clone());
        }
        let pattern = Pattern::new(text)?;
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(text.to_owned(), pattern.clone());
        Ok(pattern)
    }
}
