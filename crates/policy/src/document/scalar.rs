//! Single values of a document that have a unit or a grammar of their own.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Cost, InvalidCost};
use wva_base::duration::{format_duration, parse_duration};

struct TextReader<T> {
    expected: &'static str,
    read: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for TextReader<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(E::custom)
    }
}

/// A length of time with its unit, like `30s`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextReader {
            expected: "a length of time with its unit, like 30s or 1m30s",
            read: |text| {
                parse_duration(text).map(Self).map_err(|error| {
                    format!("{text:?} is no length of time: {error}; write for example 30s")
                })
            },
        })
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time with its unit: ns, us, ms, s, m, h, d or w.",
            "type": "string",
            "examples": ["30s", "1m30s", "500ms"],
        })
    }
}

/// Cost of one replica, as a number or as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostText(pub Cost);

impl Serialize for CostText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CostText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = CostText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a cost like 10.0")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CostText, E> {
                let message = |error| match error {
                    InvalidCost::NotDecimal { text } => format!(
                        "{text:?} is no cost; write digits, optionally a point and more digits, \
                         like 10.0"
                    ),
                    InvalidCost::TooLarge { text } => format!(
                        "{text} is more than a cost can be; write at most {}",
                        Cost::MAX_WHOLE
                    ),
                };
                let cost = Cost::parse(text).map_err(|error| E::custom(message(error)));
                cost.map(CostText)
            }

            fn visit_u64<E: serde::de::Error>(self, cost: u64) -> Result<CostText, E> {
                self.visit_str(&cost.to_string())
            }

            fn visit_i64<E: serde::de::Error>(self, cost: i64) -> Result<CostText, E> {
                self.visit_str(&cost.to_string())
            }

            fn visit_f64<E: serde::de::Error>(self, cost: f64) -> Result<CostText, E> {
                self.visit_str(&cost.to_string())
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for CostText {
    fn schema_name() -> Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Cost of one replica, in any unit that all variants share.",
            "anyOf": [{ "type": "string" }, { "type": "number", "minimum": 0 }],
            "examples": ["10.0", 40],
        })
    }
}

/// A name. The parser takes whatever is no text for a name of that spelling, `null` as well.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    deserializer.deserialize_any(TextReader {
        expected: "a name; write text, in quotes where it reads as a number or a switch",
        read: |text| Ok(text.into()),
    })
}

pub(super) fn timestamp<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<jiff::Timestamp>, D::Error> {
    struct Time(jiff::Timestamp);
    impl<'de> Deserialize<'de> for Time {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(TextReader {
                expected: "a time like 2026-03-01T12:00:00Z",
                read: |text| {
                    text.parse().map(Self).map_err(|_not_a_time| {
                        format!("{text:?} is no time; write one like 2026-03-01T12:00:00Z")
                    })
                },
            })
        }
    }
    Ok(Option::<Time>::deserialize(deserializer)?.map(|time| time.0))
}

#[cfg(test)]
mod tests {
    use crate::document::SnapshotDocument;

    #[test]
    fn a_name_is_text() {
        let parse = |[namespace, name, model, pod]: [&str; 4]| {
            SnapshotDocument::parse(&format!(
                "version: 1\nvariants: [{{namespace: {namespace}, name: {name}, model: {model}, \
                 target: {{current: 1}}, pods: [{{name: {pod}}}]}}]"
            ))
        };
        let quoted = parse(["'5'", "'null'", "'true'", "'1.5'"]).unwrap();
        assert_eq!(&*quoted.variants[0].name, "null");
        let fields = ["namespace", "name", "model", "pods[0].name"];
        for (place, field) in fields.into_iter().enumerate() {
            for bare in ["null", "~", "5", "1.5", "true"] {
                let mut names = ["a"; 4];
                names[place] = bare;
                let said = parse(names).unwrap_err().to_string();
                let expected = format!("variants[0].{field}: invalid type: ");
                assert!(said.starts_with(&expected), "{said}");
                assert!(said.contains("expected a name; write text"), "{said}");
            }
        }
    }
}
