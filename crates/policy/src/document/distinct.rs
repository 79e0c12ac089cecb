//! Whether every key of a document stands once. Parsers keep the last of two values without a word.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use wva_base::text::shortened;

/// A value of any form in which no mapping holds a key twice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_none<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<Self, A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = mapping.next_key_seed(Key)? {
            mapping.next_value::<Self>()?;
            if let Some(twice) = seen.replace(key) {
                return Err(A::Error::custom(format!(
                    "{:?} stands twice; write it once",
                    shortened(&twice)
                )));
            }
        }
        Ok(self)
    }
}

/// A key, as text.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Key {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key that is a single value")
    }

    fn visit_unit<E: Error>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_bool<E: Error>(self, key: bool) -> Result<String, E> {
        Ok(key.to_string())
    }

    fn visit_u64<E: Error>(self, key: u64) -> Result<String, E> {
        Ok(key.to_string())
    }

    fn visit_i64<E: Error>(self, key: i64) -> Result<String, E> {
        Ok(key.to_string())
    }

    fn visit_f64<E: Error>(self, key: f64) -> Result<String, E> {
        Ok(key.to_string())
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<String, E> {
        Ok(key.to_owned())
    }
}
