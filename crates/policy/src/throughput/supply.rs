//! What one replica generates, and what a queue adds to the demand.

use serde::{Deserialize, Serialize};

use super::line::LatencyLine;
use super::shape::RequestShape;

/// Times the latency of a token within which a queued request should have been taken up.
pub(crate) const QUEUE_DRAIN_FACTOR: f64 = 2.0;

/// Least and largest KV usage at which a line is read for [`LineCapacity`].
const LINE_USAGE: (f64, f64) = (0.15, 0.80);

fn quotient(dividend: f64, divisor: f64) -> Option<f64> {
    let value = dividend / divisor;
    (dividend > 0.0 && divisor > 0.0 && value.is_finite()).then_some(value)
}

/// Sequences that a replica holds at a KV usage; none where the inputs make no number.
pub(crate) fn sequences(usage: f64, kv_capacity: f64, shape: RequestShape) -> Option<f64> {
    if (0.0..=1.0).contains(&usage) {
        quotient(usage * kv_capacity, shape.kv_tokens())
    } else {
        None
    }
}

/// Sequences of a full replica: as many as its KV cache holds, `capacity / KVreq`, and no more than it
/// works on at once; none where the inputs make no number.
pub(crate) fn full_sequences(
    kv_capacity: f64,
    shape: RequestShape,
    max_sequences: Option<f64>,
) -> Option<f64> {
    let resident = sequences(1.0, kv_capacity, shape)?;
    let limit = max_sequences.filter(|limit| *limit > 0.0);
    Some(limit.map_or(resident, |limit| resident.min(limit)))
}

/// Tokens per second of a replica at a fullness, where `full` sequences fill it: `k * full / ITL(k)`;
/// none where the inputs make no rate.
pub(crate) fn rate_at(fullness: f64, full: f64, line: LatencyLine) -> Option<f64> {
    if (0.0..=1.0).contains(&fullness) {
        quotient(fullness * full, line.at(fullness))
    } else {
        None
    }
}

/// What the latency line says about a replica at the usage where the fleet would grow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LineCapacity {
    /// KV usage that the line is read at.
    pub usage: f64,
    pub sequences: f64,
    /// Latency of a token in seconds.
    pub latency: f64,
    pub tokens_per_second: f64,
    pub requests_per_second: f64,
}

impl LineCapacity {
    /// Prices a shape at a usage (`kvCacheThreshold * scaleUpThreshold`, kept within 0.15 and 0.80),
    /// bounded by the sequences that the engine works on at once. It needs no request of that shape
    /// to have been seen.
    pub(crate) fn of(
        line: LatencyLine,
        kv_capacity: f64,
        shape: RequestShape,
        max_sequences: Option<f64>,
        growth_usage: f64,
    ) -> Option<Self> {
        let (least, largest) = LINE_USAGE;
        let usage = growth_usage.clamp(least, largest);
        let resident = sequences(usage, kv_capacity, shape)?;
        let sequences = max_sequences.map_or(resident, |limit| resident.min(limit));
        let latency = line.at(usage);
        let tokens_per_second = quotient(sequences, latency)?;
        Some(Self {
            usage,
            sequences,
            latency,
            tokens_per_second,
            requests_per_second: quotient(tokens_per_second, shape.output)?,
        })
    }
}

/// Tokens per second that a queue in the router adds to the demand; `latency` is the mean latency of
/// a token on full replicas, in seconds.
pub(crate) fn queue_demand(queued: f64, drain_factor: f64, latency: f64) -> f64 {
    quotient(queued, drain_factor * latency).unwrap_or(0.0)
}
