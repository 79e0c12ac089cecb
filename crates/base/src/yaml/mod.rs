//! The one place where YAML from outside is read. It bounds size, depth and the growth by aliases,
//! refuses what is no number or stands twice, and names unknown fields.

mod outline;
mod sift;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserializer;
use serde::de::DeserializeOwned;

pub use self::outline::DocumentField;
use self::outline::{Comparison, Outline, Scalars, outline_of};
pub use self::sift::{SiftedDocument, sift_yaml};
pub use self::words::plain_words;
use super::text::shortened;

/// Largest text of one entry, in bytes.
pub const MAX_TEXT: usize = 256 * 1024;

/// How much a text may grow by its aliases beyond its own length, in values and bytes of strings.
const ALIAS_ALLOWANCE: usize = 4096;

/// How many times its own length a text of many objects may grow by its aliases.
const ALIAS_GROWTH: usize = 8;

/// Deepest flow nesting; the parser's cost grows with its square.
const MAX_FLOW_DEPTH: usize = 64;

/// Why a text was not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum YamlError {
    /// Too long to look at.
    #[error(
        "the text is longer than {MAX_TEXT} bytes, and no more are read; split it, or remove what is not needed"
    )]
    TooLarge,
    /// Too many brackets inside each other.
    #[error(
        "brackets are nested deeper than {MAX_FLOW_DEPTH}; close them, or write blocks of lines"
    )]
    TooDeep,
    /// A `%` directive; the parser's cost grows with the square of their number.
    #[error("line {0} is a % directive; leave it out")]
    Directive(usize),
    /// Not YAML, or not of the wanted form; with field and position.
    #[error("{0}")]
    Invalid(String),
}

impl From<serde_yaml::Error> for YamlError {
    fn from(error: serde_yaml::Error) -> Self {
        let text = plain_words(&error.to_string());
        let short = shortened(&text);
        match error.location() {
            Some(place) if short != text => {
                Self::Invalid(format!("{short} at line {} column {}", place.line(), place.column()))
            }
            _ => Self::Invalid(short),
        }
    }
}

/// A document with what was noticed about its fields.
#[derive(Debug, Clone)]
pub struct Document<T> {
    /// The typed content.
    pub content: T,
    /// Paths of fields that are not known, with what to write instead.
    pub unknown: Vec<(String, String)>,
}

/// Reads a document with the given fields. A blank one has none of them.
pub fn parse_yaml<T: DeserializeOwned + Default>(
    text: &str,
    fields: &'static [DocumentField],
) -> Result<Document<T>, YamlError> {
    let outline = outline(text)?;
    let content = match outline {
        Outline::Blank => T::default(),
        _ => serde_yaml::from_str(text)?,
    };
    let mut comparison = Comparison::default();
    comparison.walk(&outline, "", fields);
    Ok(Document { content, unknown: comparison.unknown })
}

/// Keys with their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlatYaml {
    /// The value of each key; a list or a mapping in flow form.
    pub texts: BTreeMap<String, String>,
    /// Keys with a list or a mapping.
    pub nested: BTreeSet<String>,
}

/// Reads a document of keys with single values, as texts. A key with more than that hides no other one.
pub fn flat_yaml(text: &str) -> Result<FlatYaml, YamlError> {
    let entries = match outline(text)? {
        Outline::Blank => return Ok(FlatYaml::default()),
        Outline::Map(entries) => entries,
        Outline::Scalar(_) | Outline::List(_) => {
            return Err(YamlError::Invalid("it is not a list of keys with values".to_owned()));
        }
    };
    let is_nested = |value: &Outline| matches!(value, Outline::Map(_) | Outline::List(_));
    let nested = entries.iter().filter(|(_, value)| is_nested(value));
    Ok(FlatYaml {
        nested: nested.map(|(key, _)| key.clone()).collect(),
        texts: entries.into_iter().map(|(key, value)| (key, value.to_string())).collect(),
    })
}

/// Bounds what any reader of the text has to do, for a text of many objects whose size is bounded
/// elsewhere.
///
/// # Errors
/// Directives, brackets nested too deep, aliases that make the text too large, and repeated keys.
pub fn check_bounds(text: &str) -> Result<(), YamlError> {
    check_form(text)?;
    if is_blank(text) {
        return Ok(());
    }
    let budget = text.len().saturating_mul(ALIAS_GROWTH);
    let budget = budget.saturating_add(ALIAS_ALLOWANCE);
    outline_of(serde_yaml::Deserializer::from_str(text), budget, Scalars::Any)?;
    Ok(())
}

/// Checks that no mapping of a document holds a key twice: parsers of other forms keep the last value.
///
/// # Errors
/// The first repeated key.
pub fn check_keys<'de, D: Deserializer<'de>>(document: D) -> Result<(), D::Error> {
    outline_of(document, usize::MAX, Scalars::Any).map(drop)
}

/// What makes the parser slow.
fn check_form(text: &str) -> Result<(), YamlError> {
    if flow_depth(text) > MAX_FLOW_DEPTH {
        return Err(YamlError::TooDeep);
    }
    match text.lines().position(|line| line.starts_with('%')) {
        Some(line) => Err(YamlError::Directive(line + 1)),
        None => Ok(()),
    }
}

fn outline(text: &str) -> Result<Outline, YamlError> {
    if text.len() > MAX_TEXT {
        return Err(YamlError::TooLarge);
    }
    check_form(text)?;
    if is_blank(text) {
        return Ok(Outline::Blank);
    }
    let document = serde_yaml::Deserializer::from_str(text);
    let budget = text.len() + ALIAS_ALLOWANCE;
    Ok(outline_of(document, budget, Scalars::Plain)?)
}

fn is_blank(text: &str) -> bool {
    let mut lines = text.lines();
    lines.all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

/// An upper bound on how deep brackets are nested: brackets in strings count as well.
fn flow_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests;
