//! What is remembered of capacities from one collection to the next.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bound::{CapacityReason, median};
use super::history::{EngineKey, HistoryKey, KeyReadings};
use super::input::TokenModelInput;
use super::instance::{SizeSource, history_key};
use super::variant::{TokenVariantFigures, measure_all};
use super::workload::MeanWorkload;
use crate::capacity::ServingRole;
use crate::coupling::Coupling;
use crate::engine_args::KvTokens;
use crate::key::{MAX_VARIANTS, ModelKey, VariantKey};
use crate::pairs;
use crate::throughput::shape::OutputClass;
use wva_base::moment::Moment;

/// A record that nothing was added to for so long no longer bounds what is measured.
pub(super) const STALE_AGE: Duration = Duration::from_mins(30);

/// A record that nothing was added to for so long is forgotten.
pub(super) const RECORD_AGE: Duration = Duration::from_hours(7 * 24);

/// Most kinds of engines, and most windows of readings, that are remembered.
pub(super) const MAX_ENGINES: usize = 100_000;

/// What instances of a variant could hold when they last reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityRecord {
    /// Their engine; the record holds for no other.
    pub engine: EngineKey,
    /// Size of a KV cache.
    pub total: KvTokens,
    /// Capacity of one instance.
    pub capacity: KvTokens,
    /// Instances of one replica.
    pub ranks: u32,
    /// When they last reported.
    pub updated: Moment,
    /// The capacity when every signal of every instance was last known.
    pub confirmed: Option<Confirmed>,
}

/// A capacity that rests on all signals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Confirmed {
    /// Capacity of one instance.
    pub capacity: KvTokens,
    pub at: Moment,
}

impl CapacityRecord {
    pub fn is_stale(&self, now: Moment) -> bool {
        now.since(self.updated) > STALE_AGE
    }

    /// What an instance cannot be shown to exceed while some of its signals are missing.
    pub(super) fn upper_bound(&self, now: Moment) -> Option<KvTokens> {
        self.confirmed
            .filter(|confirmed| now.since(confirmed.at) <= STALE_AGE)
            .map(|confirmed| confirmed.capacity)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exemplar {
    pub capacity: KvTokens,
    pub ranks: u32,
    pub updated: Moment,
}

impl Exemplar {
    fn of_replica(self) -> KvTokens {
        self.capacity.times(self.ranks)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Own,
    /// It may be the backlog of decode replicas that are full.
    PartnersBacklog,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearnedTokens {
    #[serde(with = "pairs")]
    history: BTreeMap<HistoryKey, KeyReadings>,
    #[serde(with = "pairs")]
    engines: BTreeMap<EngineKey, Exemplar>,
    records: BTreeMap<ModelKey, BTreeMap<VariantKey, CapacityRecord>>,
    decode_full: BTreeMap<ModelKey, Coupling>,
}

impl LearnedTokens {
    /// The record of a variant, for the engine that it has now.
    pub fn record(
        &self,
        model: &ModelKey,
        variant: &VariantKey,
        engine: &EngineKey,
    ) -> Option<&CapacityRecord> {
        let record = self.records.get(model)?.get(variant)?;
        (record.engine == *engine).then_some(record)
    }

    /// What an engine of this likeness could hold when one last reported,
    /// whatever variant it belonged to. Nothing is known of an engine whose arguments are not.
    pub(crate) fn compatible(&self, likeness: &EngineKey) -> Option<Exemplar> {
        likeness.fingerprint.as_ref()?;
        self.engines.get(likeness).copied()
    }

    /// What engines held when their queues were long, by the length of answers: the mean of the last readings.
    pub(super) fn history(
        &self,
        engine: &EngineKey,
        role: ServingRole,
    ) -> BTreeMap<OutputClass, KvTokens> {
        let key = |bucket| HistoryKey { engine: engine.clone(), role, bucket };
        let all = self.history.range(key(OutputClass::Short)..=key(OutputClass::Long));
        all.filter_map(|(key, readings)| Some((key.bucket, readings.capacity()?))).collect()
    }

    pub fn len(&self) -> usize {
        self.records.values().map(BTreeMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether the readings of a role's instances are about themselves.
    pub(super) fn trust(&self, model: &ModelKey, role: ServingRole, now: Moment) -> Trust {
        let is_full =
            self.decode_full.get(model).is_some_and(|coupling| coupling.masks_prefill(now));
        if role == ServingRole::Prefill && is_full { Trust::PartnersBacklog } else { Trust::Own }
    }

    /// Learns from one collection. `models` names every model and variant that there is, whether or
    /// not it has samples: the records of others are forgotten, as is what has not been added to
    /// for long. Beyond [`MAX_VARIANTS`] and [`MAX_ENGINES`] nothing new is remembered.
    #[must_use]
    pub fn learn<M: Borrow<TokenModelInput>>(
        mut self,
        models: &BTreeMap<ModelKey, M>,
        now: Moment,
    ) -> Self {
        self.forget(models, now);
        let mut readings = BTreeMap::new();
        for (key, model) in models {
            let model = model.borrow();
            let figures = measure_all(key, (model, MeanWorkload::of(model)), &self, now);
            if decodes_are_full(model, &figures) {
                let coupling = Coupling::default().observe(now, true);
                self.decode_full.insert(key.clone(), coupling);
            }
            self.read(key, &figures, now, &mut readings);
        }
        for (key, new) in readings {
            if self.history.len() < MAX_ENGINES || self.history.contains_key(&key) {
                let updated = KeyReadings::with(self.history.get(&key), new, now);
                self.history.insert(key, updated);
            }
        }
        let mut room = MAX_VARIANTS.saturating_sub(self.len());
        for (key, model) in models {
            let model = model.borrow();
            let figures = measure_all(key, (model, MeanWorkload::of(model)), &self, now);
            for (variant, figures) in figures {
                let known = self.records.get(key);
                let is_new = known.is_none_or(|records| !records.contains_key(&variant));
                let fits = !is_new || room > 0;
                if fits && self.record_one(key, &variant, &figures, now) && is_new {
                    room -= 1;
                }
            }
        }
        self
    }

    fn forget<M: Borrow<TokenModelInput>>(&mut self, models: &BTreeMap<ModelKey, M>, now: Moment) {
        self.history.retain(|_, readings| !readings.is_forgotten(now));
        self.engines.retain(|_, exemplar| now.since(exemplar.updated) <= RECORD_AGE);
        self.decode_full
            .retain(|model, coupling| models.contains_key(model) && coupling.masks_prefill(now));
        self.records.retain(|model, records| {
            let variants = models.get(model).map(|model| &model.borrow().variants);
            records.retain(|variant, record| {
                variants.is_some_and(|variants| variants.contains_key(variant))
                    && now.since(record.updated) <= RECORD_AGE
            });
            !records.is_empty()
        });
    }

    /// Collects what full instances hold.
    fn read(
        &self,
        model: &ModelKey,
        figures: &BTreeMap<VariantKey, TokenVariantFigures>,
        now: Moment,
        readings: &mut BTreeMap<HistoryKey, Vec<KvTokens>>,
    ) {
        for variant in figures.values() {
            if self.trust(model, variant.role, now) == Trust::PartnersBacklog {
                continue;
            }
            for instance in variant.instances.values() {
                if let (CapacityReason::Observed, Some(output)) =
                    (instance.k2_source, instance.output_tokens)
                {
                    let key = history_key(&variant.engine, variant.role, output);
                    readings.entry(key).or_default().push(instance.in_use);
                }
            }
        }
    }

    /// Remembers a variant; false if the size of no KV cache was reported or stated. A report counts
    /// for more than arguments.
    fn record_one(
        &mut self,
        model: &ModelKey,
        variant: &VariantKey,
        figures: &TokenVariantFigures,
        now: Moment,
    ) -> bool {
        let size_by = |source: SizeSource| {
            let instances = figures.instances.values();
            let sized = instances.filter(|instance| instance.total_source == source);
            median(sized.map(|instance| (instance.total, instance.k2_source)))
        };
        let size = size_by(SizeSource::Reported).or_else(|| size_by(SizeSource::Arguments));
        let (Some((total, _)), Some(capacity)) = (size, figures.per_instance) else {
            return false;
        };
        let earlier = self.record(model, variant, &figures.engine);
        let confirmed = if figures.is_capacity_known() {
            Some(Confirmed { capacity, at: now })
        } else {
            earlier.and_then(|record| record.confirmed)
        };
        let ranks = figures.ranks;
        let exemplar = Exemplar { capacity, ranks, updated: now };
        let likeness = figures.engine.likeness(figures.args.as_ref());
        self.exemplify(&likeness, exemplar);
        let record = CapacityRecord {
            engine: figures.engine.clone(),
            total,
            capacity,
            ranks,
            updated: now,
            confirmed,
        };
        let records = self.records.entry(model.clone()).or_default();
        records.insert(variant.clone(), record);
        true
    }

    /// The newest report of an engine stands for it; of several, the least.
    fn exemplify(&mut self, engine: &EngineKey, new: Exemplar) {
        let has_room = self.engines.len() < MAX_ENGINES;
        let is_better = |known: &Exemplar| {
            known.updated != new.updated || new.of_replica().order(known.of_replica()).is_lt()
        };
        match self.engines.get_mut(engine) {
            Some(known) if is_better(known) => *known = new,
            None if has_room => {
                self.engines.insert(engine.clone(), new);
            }
            Some(_) | None => {}
        }
    }
}

/// Whether any decode replica has a full memory and a long queue: then prefill replicas wait for it
/// as well, and their queues say nothing about themselves.
fn decodes_are_full(
    model: &TokenModelInput,
    figures: &BTreeMap<VariantKey, TokenVariantFigures>,
) -> bool {
    figures
        .values()
        .filter(|variant| variant.role == ServingRole::Decode)
        .flat_map(|variant| variant.instances.values())
        .any(|instance| instance.is_full(&model.thresholds))
}
