//! What engines held when their queues were long.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::input::TokenVariantInput;
use crate::accelerator::Accelerator;
use crate::capacity::ServingRole;
use crate::engine_args::{EngineArgs, EngineFingerprint, KvTokens};
use crate::key::ModelKey;
use crate::throughput::shape::OutputClass;
use crate::units::Gpus;
use wva_base::moment::Moment;

/// Readings that a mean is made of.
pub(super) const HISTORY_WINDOW: usize = 10;

/// Readings that nothing was added to for so long are forgotten.
pub(super) const HISTORY_AGE: Duration = Duration::from_hours(24);

/// What is alike in engines that can do the same, in any namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EngineKey {
    pub model: Arc<str>,
    pub accelerator: Accelerator,
    /// Of one replica.
    pub gpus: Gpus,
    /// How the engine is started; `None` if that is not known.
    pub fingerprint: Option<EngineFingerprint>,
}

impl EngineKey {
    pub fn of(model: &ModelKey, variant: &TokenVariantInput) -> Self {
        Self {
            model: Arc::clone(&model.model),
            accelerator: variant.accelerator.clone(),
            gpus: variant.gpus,
            fingerprint: (variant.fingerprint.clone())
                .or_else(|| variant.engine.as_ref().map(EngineArgs::fingerprint)),
        }
    }

    /// What engines are compared by whose capacity is taken over; `args` are those of this engine.
    pub(super) fn likeness(&self, args: Option<&EngineArgs>) -> Self {
        Self { fingerprint: args.map(EngineArgs::likeness), ..self.clone() }
    }
}

/// What readings are kept by. The role belongs to it: an engine that only reads prompts fills
/// otherwise than one that writes answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct HistoryKey {
    pub engine: EngineKey,
    pub role: ServingRole,
    /// Length of answers: what an engine holds when it is full depends on it.
    pub bucket: OutputClass,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RollingWindow {
    limit: usize,
    readings: VecDeque<KvTokens>,
}

impl RollingWindow {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, readings: VecDeque::new() }
    }

    /// Adds one reading; the oldest one goes where there are too many.
    pub(super) fn push(&mut self, reading: KvTokens) {
        self.readings.push_back(reading);
        while self.readings.len() > self.limit {
            self.readings.pop_front();
        }
    }

    pub(super) fn mean(&self) -> Option<f64> {
        let count = u32::try_from(self.readings.len()).unwrap_or(u32::MAX);
        let sum: KvTokens = self.readings.iter().copied().sum();
        (count > 0).then(|| sum.0 / f64::from(count))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeyReadings {
    window: RollingWindow,
    updated: Moment,
}

impl KeyReadings {
    /// Adds the readings of one collection. Their order does not count; of more than fit, as many
    /// as fit are taken, evenly over their range.
    pub(super) fn with(earlier: Option<&Self>, mut new: Vec<KvTokens>, now: Moment) -> Self {
        let mut window = earlier
            .map_or_else(|| RollingWindow::new(HISTORY_WINDOW), |earlier| earlier.window.clone());
        new.sort_by(|one, other| one.order(*other));
        let taken = new.len().min(HISTORY_WINDOW);
        for index in 0..taken {
            let place = (2 * index + 1) * new.len() / (2 * taken);
            if let Some(reading) = new.get(place) {
                window.push(*reading);
            }
        }
        Self { window, updated: now }
    }

    /// Their mean in whole tokens, if it is at least one.
    pub(super) fn capacity(&self) -> Option<KvTokens> {
        let mean = KvTokens(self.window.mean()?.floor());
        mean.is_some().then_some(mean)
    }

    pub(super) fn is_forgotten(&self, now: Moment) -> bool {
        now.since(self.updated) > HISTORY_AGE
    }
}
