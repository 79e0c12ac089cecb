//! The shape of a document, read with a budget, and its comparison with the known fields.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess};
use serde::de::{Unexpected, VariantAccess as _, Visitor};

use crate::nearest::instead;
use crate::text::shortened;

/// Most unknown fields that are named; a text full of them is wrong as a whole.
const MAX_UNKNOWN: usize = 32;

/// A field that a kind of document knows.
#[derive(Debug, Clone, Copy)]
pub struct DocumentField {
    /// The spelling to recommend.
    pub name: &'static str,
    /// Further spellings.
    pub also: &'static [&'static str],
    /// Fields of the mapping, or of each mapping of the list, that it holds; none if anything may
    /// stand there.
    pub fields: &'static [Self],
}

impl DocumentField {
    /// A field without further spellings or fields of its own.
    pub const fn named(name: &'static str) -> Self {
        Self { name, also: &[], fields: &[] }
    }

    /// The field with further spellings.
    #[must_use]
    pub const fn also(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }

    /// The field with fields of its own.
    #[must_use]
    pub const fn holds(mut self, fields: &'static [Self]) -> Self {
        self.fields = fields;
        self
    }
}

/// The shape of a document: names of fields, and scalars as texts.
#[derive(Debug)]
pub(super) enum Outline {
    Blank,
    Scalar(String),
    List(Vec<Self>),
    Map(BTreeMap<String, Self>),
}

impl fmt::Display for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = |index: usize| if index == 0 { "" } else { ", " };
        match self {
            Self::Blank => Ok(()),
            Self::Scalar(text) => f.write_str(text),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", separator(index))?;
                }
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: {value}", separator(index))?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The fields of a document, compared with those that exist.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) unknown: Vec<(String, String)>,
}

impl Comparison {
    /// Compares a document, or the part of it at `path`, with the fields that may stand there.
    pub(super) fn walk(&mut self, outline: &Outline, path: &str, fields: &'static [DocumentField]) {
        match outline {
            Outline::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.walk(item, &format!("{path}[{index}]"), fields);
                }
            }
            Outline::Map(entries) if !fields.is_empty() => {
                for (key, value) in entries {
                    self.field(key, value, path, fields);
                }
            }
            Outline::Blank | Outline::Scalar(_) | Outline::Map(_) => {}
        }
    }

    fn field(
        &mut self,
        key: &str,
        value: &Outline,
        parent: &str,
        fields: &'static [DocumentField],
    ) {
        let dot = if parent.is_empty() { "" } else { "." };
        let path = format!("{parent}{dot}{}", shortened(key));
        let known = fields.iter().find(|field| field.name == key || field.also.contains(&key));
        if let Some(field) = known {
            self.walk(value, &path, field.fields);
        } else if self.unknown.len() < MAX_UNKNOWN {
            let names = fields.iter().map(|field| field.name);
            self.unknown.push((path, instead(key, names)));
        }
    }
}

/// Walks a document with a budget of values and bytes of strings. Aliases are walked each time they
/// are used, so the budget bounds what any later reader of the same text has to build.
#[derive(Clone, Copy)]
struct Outliner<'a> {
    left: &'a Cell<usize>,
    scalars: Scalars,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scalars {
    Plain,
    /// Also numbers that are not finite, and tagged ones.
    Any,
}

/// Walks a document of at most `budget` values and bytes of strings, aliases followed.
pub(super) fn outline_of<'de, D: Deserializer<'de>>(
    document: D,
    budget: usize,
    scalars: Scalars,
) -> Result<Outline, D::Error> {
    let left = Cell::new(budget);
    let outliner = Outliner { left: &left, scalars };
    outliner.deserialize(document)
}

impl Outliner<'_> {
    fn spend<E: serde::de::Error>(self, amount: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(amount).ok_or_else(|| {
            E::custom("its aliases make the document too large; write out what is used most often")
        })?;
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

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Outline, D::Error> {
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
        if self.scalars == Scalars::Plain && !value.is_finite() {
            return Err(E::custom(format!("{value} is not a usable number")));
        }
        // The short form: `1e300` must not cost three hundred digits.
        self.scalar(&format!("{value:?}"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Outline, E> {
        self.scalar(&value)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Outline, A::Error> {
        if self.scalars == Scalars::Plain {
            return Err(A::Error::invalid_type(Unexpected::Enum, &self));
        }
        let (_tag, content) = tagged.variant::<IgnoredAny>()?;
        content.newtype_variant_seed(self).map_err(A::Error::custom)
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
                    "{:?} stands twice; write it once",
                    shortened(&key)
                )));
            }
            entries.insert(key, value);
        }
        Ok(Outline::Map(entries))
    }
}
