//! One measured value, with its age and what it is worth.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::scalar::Span;
use crate::samples::Sample;
use crate::signal::{Failure, FreshnessBands, Signal};

/// One measured value: a number, which is fresh, or a mapping with its age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentReading {
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Age of the newest raw sample behind it when it was collected; left out: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// What it is worth, as a check: by default its value and age say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ReadingState>,
    /// Why there is nothing usable, where the state is `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<ReadingFailure>,
}

/// What a measured value is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReadingState {
    /// Fresh, and above zero.
    Known,
    /// Fresh, and exactly zero.
    KnownZero,
    /// Older than the fresh threshold.
    Stale,
    /// Nothing usable.
    Failed,
}

/// Why there is nothing usable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReadingFailure {
    /// No sample.
    #[default]
    Absent,
    /// The newest sample is older than the unavailable threshold.
    TooOld,
    /// Not a number in the range of the signal.
    Invalid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Full {
    value: Option<f64>,
    age: Option<Span>,
    state: Option<ReadingState>,
    why: Option<ReadingFailure>,
}

impl<'de> Deserialize<'de> for DocumentReading {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = DocumentReading;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number, or a mapping with value and age")
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<DocumentReading, E> {
                Ok(DocumentReading { value: Some(value), ..DocumentReading::default() })
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<DocumentReading, E> {
                let value: f64 = value.to_string().parse().map_err(E::custom)?;
                self.visit_f64(value)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<DocumentReading, E> {
                let value: f64 = value.to_string().parse().map_err(E::custom)?;
                self.visit_f64(value)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DocumentReading, A::Error> {
                let full = Full::deserialize(MapAccessDeserializer::new(map))?;
                Ok(DocumentReading {
                    value: full.value,
                    age: full.age,
                    state: full.state,
                    why: full.why,
                })
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for DocumentReading {
    fn schema_name() -> Cow<'static, str> {
        "Reading".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let age = generator.subschema_for::<Option<Span>>();
        let state = generator.subschema_for::<Option<ReadingState>>();
        let why = generator.subschema_for::<Option<ReadingFailure>>();
        json_schema!({
            "description": "One measured value: a number, which is fresh, or a mapping with its \
                            age. Left out altogether: not known. `state` is a check; by default \
                            value and age say what it is worth.",
            "anyOf": [
                { "type": "number" },
                {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "value": { "type": ["number", "null"] },
                        "age": age,
                        "state": state,
                        "why": why,
                    },
                },
            ],
            "examples": [0.72, { "value": 0.72, "age": "12s" }, { "state": "failed", "why": "tooOld" }],
        })
    }
}

impl DocumentReading {
    /// A judged value as it is read again `lag` after it was collected.
    pub(super) fn of(signal: Signal, lag: Duration) -> Self {
        let measured = |value, age: Duration| Self {
            value: Some(value),
            age: Some(Span(age.saturating_sub(lag))),
            ..Self::default()
        };
        match signal {
            Signal::Known { value, age } | Signal::Stale { value, age, .. } => measured(value, age),
            Signal::KnownZero { age } => measured(0.0, age),
            Signal::Failed { why } => Self {
                state: Some(ReadingState::Failed),
                why: match why {
                    Failure::QueryFailed => None,
                    Failure::Absent => Some(ReadingFailure::Absent),
                    Failure::TooOld => Some(ReadingFailure::TooOld),
                    Failure::Invalid => Some(ReadingFailure::Invalid),
                },
                ..Self::default()
            },
        }
    }

    /// The sample behind it; `None` where nothing usable is stated. `lag` is the time since the
    /// collection.
    pub(super) fn sample(
        &self,
        bands: &FreshnessBands,
        lag: Duration,
    ) -> Result<Option<Sample>, String> {
        if self.state == Some(ReadingState::Failed) || self.why.is_some() {
            return self.failed(bands);
        }
        let value = match (self.value, self.state) {
            (Some(value), _) => value,
            (None, Some(ReadingState::KnownZero)) => 0.0,
            (None, _) => {
                return Err(
                    "it has no value; write one, or leave the signal out if it is not known".into(),
                );
            }
        };
        let age = self.age.unwrap_or_default().0;
        self.check_state(value, age.saturating_add(lag), bands)?;
        Ok(Some(Sample { value, age }))
    }

    fn failed(&self, bands: &FreshnessBands) -> Result<Option<Sample>, String> {
        if self.state != Some(ReadingState::Failed) {
            return Err("why is given without state: failed; add the state or drop why".into());
        }
        if self.value.is_some() {
            return Err("a failed signal has no value; drop the value or the state".into());
        }
        let age = self.age.unwrap_or_default().0;
        Ok(match self.why {
            // Every quantity can be 1, and at this age no decision uses it.
            Some(ReadingFailure::TooOld) => {
                Some(Sample { value: 1.0, age: age.max(bands.unavailable) })
            }
            // Other than a series that is not there: some of these count as zero.
            Some(ReadingFailure::Invalid) => Some(Sample { value: f64::NAN, age }),
            Some(ReadingFailure::Absent) | None => None,
        })
    }

    fn check_state(&self, value: f64, age: Duration, bands: &FreshnessBands) -> Result<(), String> {
        let fresh = age < bands.fresh;
        let limit = bands.fresh.as_secs();
        match self.state {
            Some(ReadingState::KnownZero) if value != 0.0 => {
                Err(format!("the state is knownZero and the value is {value}; write 0 or known"))
            }
            Some(ReadingState::Known) if value == 0.0 => {
                Err("the state is known and the value is 0; write knownZero".into())
            }
            Some(ReadingState::Known | ReadingState::KnownZero) if !fresh => Err(format!(
                "the state says it is fresh, and at {} s it is not (fresh is below {limit} s); \
                 write stale or a smaller age",
                age.as_secs()
            )),
            Some(ReadingState::Stale) if fresh => Err(format!(
                "the state is stale, and at {} s it is fresh (below {limit} s); write an age of at \
                 least {limit}s",
                age.as_secs()
            )),
            _ => Ok(()),
        }
    }
}
