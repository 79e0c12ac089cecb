//! The one place where YAML from outside is read. It bounds size, depth and the growth by aliases,
//! refuses what is no number or stands twice, and names the fields that nobody knows.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_yaml::Deserializer;

use super::namespace::shortened;
use super::nearest::nearest;
use super::schema::State;
use super::sources::Data;

/// Largest text of one entry, in bytes.
pub const MAX_TEXT: usize = 256 * 1024;

/// How much a text may grow by its aliases beyond its own length, in values and bytes of strings.
const ALIAS_ALLOWANCE: usize = 4096;

/// Deepest flow nesting; the parser's cost grows with its square.
const MAX_FLOW_DEPTH: usize = 64;

/// Why a text was not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum YamlError {
    /// Too long to look at.
    #[error("the text has {0} bytes; at most {MAX_TEXT} are read")]
    TooLarge(usize),
    /// Too many brackets inside each other.
    #[error("brackets are nested deeper than {MAX_FLOW_DEPTH}")]
    TooDeep,
    /// Not YAML, or not of the wanted form; with field and position.
    #[error("{0}")]
    Invalid(String),
}

impl From<serde_yaml::Error> for YamlError {
    fn from(error: serde_yaml::Error) -> Self {
        Self::Invalid(shortened(&error.to_string()))
    }
}

/// A field that a kind of document knows.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The spelling to recommend.
    pub name: &'static str,
    /// Further spellings.
    pub also: &'static [&'static str],
    /// Whether it acts.
    pub state: State,
    /// Fields of the mapping, or of each mapping of the list, that it holds; none if anything may
    /// stand there.
    pub fields: &'static [Self],
}

impl Field {
    /// A field that acts.
    pub(super) const fn active(name: &'static str) -> Self {
        Self {
            name,
            also: &[],
            state: State::Active,
            fields: &[],
        }
    }

    /// A field that is read and checked, and steers nothing yet.
    pub(super) const fn later(name: &'static str) -> Self {
        let mut field = Self::active(name);
        field.state = State::NotYetActive;
        field
    }

    pub(super) const fn also(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }

    pub(super) const fn holds(mut self, fields: &'static [Self]) -> Self {
        self.fields = fields;
        self
    }
}

/// A document with what was noticed about its fields.
#[derive(Debug, Clone)]
pub struct Document<T> {
    /// The typed content.
    pub content: T,
    /// Paths of fields that are not known, with the nearest known one.
    pub unknown: Vec<(String, Option<&'static str>)>,
    /// Paths of fields that steer nothing yet.
    pub not_yet: Vec<String>,
}

/// Reads a document with the given fields. A blank one has none of them.
///
/// # Errors
/// What is wrong, with field and position.
pub fn parse_yaml<T: DeserializeOwned + Default>(
    text: &str,
    fields: &'static [Field],
) -> Result<Document<T>, YamlError> {
    let outline = outline(text)?;
    let content = match outline {
        Outline::Blank => T::default(),
        _ => serde_yaml::from_str(text)?,
    };
    let mut document = Document {
        content,
        unknown: Vec::new(),
        not_yet: Vec::new(),
    };
    outline.compare("", fields, &mut document.unknown, &mut document.not_yet);
    Ok(document)
}

/// Reads a document of keys with single values, as texts.
///
/// # Errors
/// What is wrong, with key and position.
pub fn flat_yaml(text: &str) -> Result<Data, YamlError> {
    let entries = match outline(text)? {
        Outline::Blank => return Ok(Data::new()),
        Outline::Map(entries) => entries,
        Outline::Scalar(_) | Outline::List(_) => {
            return Err(YamlError::Invalid(
                "it is not a list of keys with values".to_owned(),
            ));
        }
    };
    entries
        .into_iter()
        .map(|(key, value)| match value {
            Outline::Blank => Ok((key, String::new())),
            Outline::Scalar(text) => Ok((key, text)),
            Outline::Map(_) | Outline::List(_) => Err(YamlError::Invalid(format!(
                "{}: a single value is expected",
                shortened(&key)
            ))),
        })
        .collect()
}

fn outline(text: &str) -> Result<Outline, YamlError> {
    if text.len() > MAX_TEXT {
        return Err(YamlError::TooLarge(text.len()));
    }
    if flow_depth(text) > MAX_FLOW_DEPTH {
        return Err(YamlError::TooDeep);
    }
    if text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(Outline::Blank);
    }
    let left = Cell::new(text.len() + ALIAS_ALLOWANCE);
    Ok(Outliner { left: &left }.deserialize(Deserializer::from_str(text))?)
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

/// The shape of a document: names of fields, and scalars as texts.
#[derive(Debug)]
enum Outline {
    Blank,
    Scalar(String),
    List(Vec<Self>),
    Map(BTreeMap<String, Self>),
}

impl Outline {
    fn compare(
        &self,
        path: &str,
        fields: &'static [Field],
        unknown: &mut Vec<(String, Option<&'static str>)>,
        not_yet: &mut Vec<String>,
    ) {
        match self {
            Self::Blank | Self::Scalar(_) => {}
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.compare(&format!("{path}[{index}]"), fields, unknown, not_yet);
                }
            }
            Self::Map(entries) if !fields.is_empty() => {
                for (key, value) in entries {
                    let path = if path.is_empty() {
                        shortened(key)
                    } else {
                        format!("{path}.{}", shortened(key))
                    };
                    let known = fields
                        .iter()
                        .find(|field| field.name == key || field.also.contains(&key.as_str()));
                    match known {
                        None => {
                            let names = fields.iter().map(|field| field.name);
                            unknown.push((path, nearest(key, names)));
                        }
                        Some(field) if field.state == State::Active => {
                            value.compare(&path, field.fields, unknown, not_yet);
                        }
                        Some(field) => {
                            // Named once as a whole, not once more for each part.
                            value.compare(&path, field.fields, unknown, &mut Vec::new());
                            not_yet.push(path);
                        }
                    }
                }
            }
            Self::Map(_) => {}
        }
    }
}

/// Walks a document with a budget of values and bytes of strings. Aliases are walked each time they
/// are used, so the budget bounds what any later reader of the same text has to build.
#[derive(Clone, Copy)]
struct Outliner<'a> {
    left: &'a Cell<usize>,
}

impl Outliner<'_> {
    fn spend<E: serde::de::Error>(self, amount: usize) -> Result<(), E> {
        let left = self
            .left
            .get()
            .checked_sub(amount)
            .ok_or_else(|| E::custom("aliases make the document too large"))?;
        self.left.set(left);
        Ok(())
    }

    fn scalar<E: serde::de::Error>(self, value: &impl ToString) -> Result<Outline, E> {
        let text = value.to_string();
        self.spend(1 + text.len())?;
        Ok(Outline::Scalar(text))
    }
}

impl<'de> DeserializeSeed<'de> for Outliner<'_> {
    type Value = Outline;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Outline, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Outliner<'_> {
    type Value = Outline;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value without a YAML tag")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Outline, E> {
        self.spend(1)?;
        Ok(Outline::Blank)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Outline, E> {
        self.scalar(&value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Outline, E> {
        self.scalar(&value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Outline, E> {
        self.scalar(&value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Outline, E> {
        if !value.is_finite() {
            return Err(E::custom(format!("{value} is not a usable number")));
        }
        // The short form: `1e300` must not cost three hundred digits.
        self.scalar(&format!("{value:?}"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Outline, E> {
        self.scalar(&value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Outline, A::Error> {
        self.spend(1)?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Outline::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outline, A::Error> {
        self.spend(1)?;
        let mut entries = BTreeMap::new();
        while let Some(key) = map.next_key_seed(self)? {
            let key = match key {
                Outline::Scalar(key) => key,
                Outline::Blank => String::new(),
                Outline::List(_) | Outline::Map(_) => {
                    return Err(A::Error::custom("a key is not a single value"));
                }
            };
            let value = map.next_value_seed(self)?;
            if entries.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "{:?} stands twice",
                    shortened(&key)
                )));
            }
            entries.insert(key, value);
        }
        Ok(Outline::Map(entries))
    }
}

#[cfg(test)]
mod tests;
