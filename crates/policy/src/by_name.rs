//! What is known of pods, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Values in the order of their names, in one piece: a fleet has many pods, and each cycle walks over them many times.
/// Stored as a map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ByName<T>(Vec<(Arc<str>, T)>);

impl<T> ByName<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        let place = self.0.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &T)> + Clone {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// The names.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map(|(name, _)| name)
    }

    /// The values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// The values, to change them.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, value)| value)
    }
}

impl<T> FromIterator<(Arc<str>, T)> for ByName<T> {
    /// Of several values of one name the last one counts.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, T)>>(pairs: I) -> Self {
        let pairs: Vec<_> = pairs.into_iter().collect();
        if pairs.is_sorted_by(|(one, _), (other, _)| one < other) {
            return Self(pairs);
        }
        let sorted: BTreeMap<_, _> = pairs.into_iter().collect();
        Self(sorted.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for ByName<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = BTreeMap::<Arc<str>, T>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_order_of_their_names_and_the_last_of_a_name_counts() {
        let named: ByName<u8> = [("b", 1), ("c", 2), ("a", 3), ("b", 4)]
            .map(|(name, value)| (name.into(), value))
            .into_iter()
            .collect();
        assert_eq!(serde_json::to_string(&named).unwrap(), r#"{"a":3,"b":4,"c":2}"#);
        assert_eq!(serde_json::from_str::<ByName<u8>>(r#"{"c":2,"b":4,"a":3}"#).unwrap(), named);
        assert_eq!((named.get("b"), named.get("d")), (Some(&4), None));
    }
}
