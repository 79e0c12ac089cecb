//! What is known about one measured quantity: four states that stay four up to the decision record.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far back one look reaches: peaks and rates are those of the last minute.
pub const LOOK: Duration = Duration::from_mins(1);

/// Time between two looks at requests, where cycles are further apart: a scrape.
pub const JUMP_LOOK: Duration = Duration::from_secs(15);

/// One measured quantity of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Signal {
    /// A fresh, non-zero value.
    Known {
        /// The value, finite.
        value: f64,
        /// Age of the raw sample.
        age: Duration,
    },
    /// A fresh sample that reads exactly zero.
    KnownZero {
        /// Age of the raw sample.
        age: Duration,
    },
    /// A value too old to act on freely.
    Stale {
        /// The value, finite.
        value: f64,
        /// Age of the raw sample.
        age: Duration,
        /// What may still be done with it.
        band: StaleBand,
    },
    /// Nothing usable.
    Failed {
        /// Why.
        why: Failure,
    },
}

/// What a stale value may still be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StaleBand {
    /// Older than the fresh threshold: may justify growth, may not shrink anything.
    NoShrink,
    /// Older than the stale threshold: decides nothing, the variant is held.
    Hold,
}

wva_base::named! {
    shown
    /// Why there is nothing usable.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Failure {
        /// The query that should have brought the value failed.
        QueryFailed = "query failed",
        /// The query succeeded and had no sample for the replica.
        Absent = "no sample",
        /// The newest sample is older than the unavailable threshold.
        TooOld = "too old",
        /// The sample is not a finite number or outside the quantity's range.
        Invalid = "not a usable number",
    }
}

impl Signal {
    /// The value, unless the signal failed.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Known { value, .. } | Self::Stale { value, .. } => Some(value),
            Self::KnownZero { .. } => Some(0.0),
            Self::Failed { .. } => None,
        }
    }

    /// The value, where it may be acted on, and whether it is too old to shrink on.
    pub(crate) fn usable(self) -> Option<(f64, bool)> {
        match self {
            Self::Stale { band: StaleBand::Hold, .. } => None,
            Self::Stale { value, .. } => Some((value, true)),
            _ => self.value().map(|value| (value, false)),
        }
    }
}

impl From<Failure> for Signal {
    fn from(why: Failure) -> Self {
        Self::Failed { why }
    }
}

wva_base::display_of! { Signal:
    Self::Known { value, age } => "{value} ({}s old)", age.as_secs();
    Self::KnownZero { age } => "zero ({}s old)", age.as_secs();
    Self::Stale { value, age, .. } => "{value} (stale, {}s old)", age.as_secs();
    Self::Failed { why } => "unknown ({why})";
}

/// How old a sample may be for what. Source: `PROMETHEUS_METRICS_CACHE_{FRESH,STALE,UNAVAILABLE}_THRESHOLD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreshnessBands {
    /// Younger than this is known.
    pub fresh: Duration,
    /// Younger than this may not shrink anything.
    pub stale: Duration,
    /// Younger than this is held; beyond it the safety net takes over.
    pub unavailable: Duration,
}

impl Default for FreshnessBands {
    fn default() -> Self {
        Self {
            fresh: Duration::from_mins(1),
            stale: Duration::from_mins(2),
            unavailable: Duration::from_mins(5),
        }
    }
}

impl FreshnessBands {
    /// Judges one sample. `value` must lie in `range`, which the caller knows.
    pub fn judge(&self, value: f64, age: Duration, range: std::ops::RangeInclusive<f64>) -> Signal {
        if !value.is_finite() || !range.contains(&value) {
            Failure::Invalid.into()
        } else if age < self.fresh {
            if value == 0.0 { Signal::KnownZero { age } } else { Signal::Known { value, age } }
        } else if age < self.stale {
            Signal::Stale { value, age, band: StaleBand::NoShrink }
        } else if age < self.unavailable {
            Signal::Stale { value, age, band: StaleBand::Hold }
        } else {
            Failure::TooOld.into()
        }
    }
}

wva_base::named! {
    listed
    /// The signals that are collected.
    #[derive(
        Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "camelCase")]
    pub enum SignalName {
        /// Share of the KV cache in use.
        KvUsage = "kv_cache_usage",
        /// Requests waiting in the engine.
        QueueLength = "queue_length",
        /// Requests that the engine works on.
        Running = "running",
        /// Share of the KV cache in use at the moment of the scrape.
        KvUsageNow = "kv_cache_usage_now",
        /// Size of the KV cache.
        KvCapacity = "kv_capacity",
        /// Mean tokens of a prompt.
        InputTokens = "input_tokens",
        /// Mean tokens of an answer.
        OutputTokens = "output_tokens",
        /// Share of prompt tokens found in the cache.
        PrefixHitRate = "prefix_hit_rate",
        /// Mean time to first token.
        TimeToFirstToken = "time_to_first_token",
        /// Mean time between tokens.
        InterTokenLatency = "inter_token_latency",
        /// Tokens generated per second.
        GenerationRate = "generation_rate",
        /// Requests completed per second.
        CompletionRate = "completion_rate",
        /// Requests that the router sends to a pod per second.
        ArrivalRate = "arrival_rate",
        /// Requests that wait in the router.
        RouterQueueRequests = "router_queue_requests",
        /// Their size.
        RouterQueueBytes = "router_queue_bytes",
        /// Requests that the router admits per second.
        RouterArrivalRate = "router_arrival_rate",
    }
}
