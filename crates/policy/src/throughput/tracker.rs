//! What the analyzer remembers of one variant, and the step that teaches it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::average::mean;
use super::decode::{DecodeEngine, Sight};
use super::input::{Params, ThroughputReplicaInput, ThroughputVariantInput};
use super::prefill::PrefillEngine;
use super::readings::{MeasuredRate, RATE_WINDOW, Rates};
use super::shape::RequestShape;
use crate::capacity::ServingRole;
use wva_base::moment::Moment;

/// Time without an observation after which a variant is forgotten.
const RETENTION: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tracker {
    engine: Arc<str>,
    /// The mean request, as last seen.
    pub(super) shape: RequestShape,
    last_observed: Moment,
    /// Since when every look found a replica with a queue at its threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queued_since: Option<Moment>,
    rates: Rates,
    pub(super) work: TrackedEngine,
}

/// What is learned of its engine, by what the engine does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TrackedEngine {
    Decode(DecodeEngine),
    Prefill(PrefillEngine),
}

impl Tracker {
    /// What is known of a variant after one cycle. While decode is full, what prefill shows is
    /// decode's backlog (`masks_prefill`) and teaches nothing.
    pub(super) fn learn(
        previous: Option<&Self>,
        input: &ThroughputVariantInput,
        params: &Params,
        masks_prefill: bool,
        now: Moment,
    ) -> Option<Self> {
        let known = previous.filter(|tracker| tracker.is_of(input));
        if input.role == ServingRole::Prefill {
            Self::learn_prefill(known, input, params, masks_prefill, now)
        } else {
            Self::learn_decode(known, input, params, now)
        }
        .filter(|tracker| now.since(tracker.last_observed) <= RETENTION)
    }

    /// The rate of a full replica with requests like the present ones.
    pub fn measured(&self) -> Option<MeasuredRate> {
        self.rates.of(self.shape.class())
    }

    pub(super) fn is_of(&self, input: &ThroughputVariantInput) -> bool {
        let is_prefill = matches!(self.work, TrackedEngine::Prefill(_));
        self.engine == input.engine && is_prefill == (input.role == ServingRole::Prefill)
    }

    fn learn_decode(
        known: Option<&Self>,
        input: &ThroughputVariantInput,
        params: &Params,
        now: Moment,
    ) -> Option<Self> {
        let readings = input.decode();
        let shapes: Vec<_> = readings.iter().map(|one| (one.shape, one.weight)).collect();
        let Some(shape) = RequestShape::weighted(&shapes) else {
            return known.cloned();
        };
        let mut next = Self::begin(known, input, shape, now);
        let sight = Sight {
            shape,
            is_new: known.is_some_and(|before| shape.differs_from(before.shape)),
            full: input.full_sequences(shape),
            max_sequences: input.max_sequences,
        };
        if let TrackedEngine::Decode(engine) = &mut next.work {
            engine.learn(&readings, sight, now);
        }
        next.queued_since = queued_since(known, input, params, now);
        // Decode with prefill counts requests as waiting whose prompts are still read elsewhere.
        let stands = input.role == ServingRole::Both
            && (next.queued_since).is_some_and(|since| now.since(since) >= RATE_WINDOW);
        let is_full = |one: &&ThroughputReplicaInput| {
            one.is_full(input.max_sequences, params) || (stands && one.is_queued(params))
        };
        let full = input.replicas.values().filter(is_full);
        if let Some(rate) = mean(full.filter_map(|one| one.decode_rate)) {
            next.rates.record(shape.class(), now, rate);
        }
        Some(next)
    }

    fn learn_prefill(
        known: Option<&Self>,
        input: &ThroughputVariantInput,
        params: &Params,
        masks_prefill: bool,
        now: Moment,
    ) -> Option<Self> {
        let readings = input.prefill();
        let shapes: Vec<_> = readings.iter().map(|one| (one.shape, one.weight)).collect();
        let Some(shape) = RequestShape::weighted(&shapes) else {
            return known.cloned();
        };
        let mut next = Self::begin(known, input, shape, now);
        if !masks_prefill {
            if let TrackedEngine::Prefill(engine) = &mut next.work {
                engine.learn(&readings, now);
            }
            // What a prefill replica holds in its KV cache is handed over at once: a queue alone
            // shows that it does all it can.
            let queued = input.replicas.values().filter(|one| one.is_queued(params));
            if let Some(requests) = mean(queued.filter_map(|one| one.completions)) {
                let rate = requests * shape.effective_input();
                next.rates.record(shape.class(), now, rate);
            }
        }
        Some(next)
    }

    fn begin(
        known: Option<&Self>,
        input: &ThroughputVariantInput,
        shape: RequestShape,
        now: Moment,
    ) -> Self {
        let work = || match input.role {
            ServingRole::Prefill => TrackedEngine::Prefill(PrefillEngine::default()),
            ServingRole::Decode | ServingRole::Both => {
                TrackedEngine::Decode(DecodeEngine::default())
            }
        };
        Self {
            engine: Arc::clone(&input.engine),
            shape,
            last_observed: now,
            queued_since: None,
            rates: known.map_or_else(Rates::default, |known| known.rates.clone()),
            work: known.map_or_else(work, |known| known.work.clone()),
        }
    }
}

/// Since when a queue stands. A look that is missing ends it: the queue may have gone in between.
fn queued_since(
    known: Option<&Tracker>,
    input: &ThroughputVariantInput,
    params: &Params,
    now: Moment,
) -> Option<Moment> {
    let mut replicas = input.replicas.values();
    if !replicas.any(|one| one.is_queued(params)) {
        return None;
    }
    let before = known.filter(|known| now.since(known.last_observed) <= RATE_WINDOW * 2);
    Some(before.and_then(|known| known.queued_since).unwrap_or(now))
}
