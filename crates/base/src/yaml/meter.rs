//! What a document grows to by its aliases, without building it.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess};
use serde::de::{VariantAccess as _, Visitor};
use serde_yaml::Deserializer;

/// Walks a document with a budget of values and bytes of strings, each alias as often as it is used.
#[derive(Clone, Copy)]
struct Meter<'a> {
    left: &'a Cell<Option<usize>>,
}

/// Whether all values of `text`, aliases followed, fit into `budget` values and bytes of strings. What
/// cannot be read does: its reader says why.
pub(super) fn fits(text: &str, budget: usize) -> bool {
    let left = Cell::new(Some(budget));
    let walked = Meter { left: &left }.deserialize(Deserializer::from_str(text));
    walked.is_ok() || left.get().is_some()
}

impl Meter<'_> {
    fn spend<E: serde::de::Error>(self, amount: usize) -> Result<(), E> {
        let left = self.left.get().and_then(|left| left.checked_sub(amount));
        self.left.set(left);
        left.map(drop)
            .ok_or_else(|| E::custom("the budget is spent"))
    }
}

impl<'de> DeserializeSeed<'de> for Meter<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Meter<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.spend(1)
    }

    fn visit_bool<E: serde::de::Error>(self, _value: bool) -> Result<(), E> {
        self.spend(1)
    }

    fn visit_i64<E: serde::de::Error>(self, _value: i64) -> Result<(), E> {
        self.spend(1)
    }

    fn visit_i128<E: serde::de::Error>(self, _value: i128) -> Result<(), E> {
        self.spend(1)
    }

    fn visit_u64<E: serde::de::Error>(self, _value: u64) -> Result<(), E> {
        self.spend(1)
    }

    fn visit_u128<E: serde::de::Error>(self, _value: u128) -> Result<(), E> {
        self.spend(1)
    }

    fn visit_f64<E: serde::de::Error>(self, _value: f64) -> Result<(), E> {
        self.spend(1)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.spend(1 + value.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.spend(1)?;
        while list.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.spend(1)?;
        while map.next_entry_seed(self, self)?.is_some() {}
        Ok(())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        self.spend(1)?;
        let (_tag, content) = tagged.variant::<IgnoredAny>()?;
        content.newtype_variant_seed(self).map_err(A::Error::custom)
    }
}
