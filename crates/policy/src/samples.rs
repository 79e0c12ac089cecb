//! What is read of one replica and of one router, raw: every value with its age, nothing judged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::Quantity::{
    Bytes, CacheSize, PerSecond, Requests, Seconds, SecondsPerToken, Share, Tokens,
};
use super::quantity::{Quantity, ReadSignal};
use super::signal::SignalName;

/// One raw value with the age of the newest raw sample behind it when it was collected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredSample", into = "StoredSample")]
pub struct Sample {
    /// The value as read; may be outside its range.
    pub value: f64,
    /// Age at collection, by the clock of Prometheus alone.
    pub age: Duration,
}

impl Sample {
    /// A value as collected: in seven significant digits, which no signal has, so that records of it stay small.
    pub fn collected(value: f64, age: Duration) -> Self {
        let value = match format!("{value:.6e}").parse() {
            // What counts is kept as it is.
            Ok(rounded) if value.fract() != 0.0 => rounded,
            _ => value,
        };
        Self { value, age }
    }
}

/// A sample as a recording holds it: every bit, in few bytes.
#[derive(Serialize, Deserialize)]
struct StoredSample {
    v: StoredValue,
    /// Nanoseconds.
    a: u64,
}

/// JSON has no number for a value that is not finite.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredValue {
    Finite(f64),
    Bits { bits: u64 },
}

impl From<Sample> for StoredSample {
    fn from(sample: Sample) -> Self {
        let value = sample.value;
        Self {
            v: if value.is_finite() {
                StoredValue::Finite(value)
            } else {
                StoredValue::Bits { bits: value.to_bits() }
            },
            a: u64::try_from(sample.age.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

impl From<StoredSample> for Sample {
    fn from(stored: StoredSample) -> Self {
        Self {
            value: match stored.v {
                StoredValue::Finite(value) => value,
                StoredValue::Bits { bits } => f64::from_bits(bits),
            },
            age: Duration::from_nanos(stored.a),
        }
    }
}

/// Defines a set of signals: the field of each, its name in documents, and its quantity. A snapshot holds a set of
/// samples, a document a set of readings.
macro_rules! signals {
    (
        $(#[$about:meta])*
        $set:ident, $schema:literal:
        $($(#[$doc:meta])* $field:ident $signal:ident, $name:literal: $quantity:ident;)*
        $(+ ranks: $rank:ident;)?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = $schema)]
        pub struct $set<T = Sample> {
            $(
                $(#[$doc])*
                #[serde(rename = $name, skip_serializing_if = "Option::is_none")]
                pub $field: Option<T>,
            )*
            $(
                /// Its data-parallel ranks by name, where it runs several engine instances.
                #[serde(default = "BTreeMap::<Arc<str>, RankSamples<T>>::new", skip_serializing_if = "BTreeMap::is_empty")]
                pub ranks: BTreeMap<Arc<str>, $rank<T>>,
            )?
        }

        impl<T> Default for $set<T> {
            fn default() -> Self {
                Self {
                    $($field: None,)*
                    $(ranks: BTreeMap::<Arc<str>, $rank<T>>::new(),)?
                }
            }
        }

        impl<T> $set<T> {
            /// The signals of this set.
            pub const SIGNALS: &'static [SignalName] = &[$(SignalName::$signal),*];

            /// The value of a signal, if it is there.
            pub fn get(&self, signal: SignalName) -> Option<&T> {
                match signal {
                    $(SignalName::$signal => self.$field.as_ref(),)*
                    _ => None,
                }
            }

            /// The place of a signal; `None` where it is none of this set.
            pub fn place(&mut self, signal: SignalName) -> Option<&mut Option<T>> {
                match signal {
                    $(SignalName::$signal => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }

        impl<T: Copy> $set<T> {
            /// Reads every signal that is there; `read` takes its path, its value and its quantity.
            pub(crate) fn map<U>(&self, read: ReadSignal<'_, T, U>) -> $set<U> {
                $set {
                    $($field: self.$field.and_then(|value| read($name, value, $quantity)),)*
                    $(ranks: (self.ranks.iter())
                        .map(|(name, rank)| {
                            let mut read = |field: &str, value: T, quantity: Quantity| {
                                read(&format!("ranks.{name}.{field}"), value, quantity)
                            };
                            (Arc::clone(name), $rank::map(rank, &mut read))
                        })
                        .collect(),)?
                }
            }
        }
    };
}

signals! {
    /// What one replica reports. What is left out is not known.
    PodSamples, "SignalsDocument":
    /// Peak share of the KV cache in use, 0 to 1.
    kv_usage KvUsage, "kvUsage": Share;
    /// Peak number of requests waiting in the engine.
    queue_length QueueLength, "queueLength": Requests;
    /// Requests that the engine works on.
    running Running, "running": Requests;
    /// Size of the KV cache in tokens.
    kv_capacity KvCapacity, "kvCapacity": CacheSize;
    /// Mean tokens of a prompt.
    input_tokens InputTokens, "inputTokens": Tokens;
    /// Mean tokens of an answer.
    output_tokens OutputTokens, "outputTokens": Tokens;
    /// Share of prompt tokens found in the cache, 0 to 1.
    prefix_hit_rate PrefixHitRate, "prefixHitRate": Share;
    /// Mean time to first token in seconds.
    time_to_first_token TimeToFirstToken, "timeToFirstToken": Seconds;
    /// Mean time between tokens in seconds.
    inter_token_latency InterTokenLatency, "interTokenLatency": SecondsPerToken;
    /// Tokens generated per second.
    generation_rate GenerationRate, "generationRate": PerSecond;
    /// Requests completed per second.
    completion_rate CompletionRate, "completionRate": PerSecond;
    /// Requests that the router sends it per second.
    arrival_rate ArrivalRate, "arrivalRate": PerSecond;
    /// Share of the KV cache in use at the moment of the scrape, 0 to 1.
    kv_usage_now KvUsageNow, "kvUsageNow": Share;
    + ranks: RankSamples;
}

signals! {
    /// What one engine instance of a pod with several reports.
    #[derive(Copy)]
    RankSamples, "RankDocument":
    /// Peak share of the KV cache in use, 0 to 1.
    kv_usage KvUsage, "kvUsage": Share;
    /// Peak number of requests waiting.
    queue_length QueueLength, "queueLength": Requests;
    /// Size of the KV cache in tokens.
    kv_capacity KvCapacity, "kvCapacity": CacheSize;
    /// Mean tokens of a prompt.
    input_tokens InputTokens, "inputTokens": Tokens;
    /// Mean tokens of an answer.
    output_tokens OutputTokens, "outputTokens": Tokens;
    /// Share of prompt tokens found in the cache, 0 to 1.
    prefix_hit_rate PrefixHitRate, "prefixHitRate": Share;
}

signals! {
    /// The router in front of a model.
    #[derive(Copy)]
    RouterSamples, "RouterDocument":
    /// Requests that wait in it.
    queue_requests RouterQueueRequests, "queueRequests": Requests;
    /// Their size in bytes.
    queue_bytes RouterQueueBytes, "queueBytes": Bytes;
    /// Requests admitted per second.
    arrival_rate RouterArrivalRate, "arrivalRate": PerSecond;
}
