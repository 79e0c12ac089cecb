//! Joins readings and ages: which pod has which value of a signal, and how old it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::ages::Ages;
use super::query::QueryName;
use super::reading::{Names, ReadingKey, SampleReading};
use super::recipe::{SignalFormula, SignalRow};
use super::resolver::{Candidate, SampleQuality, choose};
use super::result::Symbol;
use crate::policy::key::ModelKey;
use crate::policy::signal::FreshnessBands;
use crate::policy::snapshot::Sample;

wva_base::named! {
    /// Why a sample does not count, or not by itself.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Ignored {
        /// Its namespace is missing or not a DNS-1123 label.
        Namespace = "namespace",
        /// Its model name is missing, absurdly long or not printable.
        Model = "model",
        /// Its pod name is missing or not a DNS-1123 subdomain.
        Pod = "pod",
        /// It names no source of the signal.
        Source = "source",
        /// It is to describe a cache, and does not.
        Shape = "shape",
        /// Another sample says the same of itself; the higher of the two was taken.
        Duplicate = "duplicate",
        /// Nothing says how old it is.
        NoAge = "no_age",
    }
}

#[derive(Debug)]
pub(super) struct PodSample {
    pub(super) pod: Arc<str>,
    /// All of its ranks together.
    pub(super) whole: Sample,
    /// Each of its ranks, where it has several.
    pub(super) ranks: Vec<(Arc<str>, Sample)>,
}

#[derive(Debug, Default)]
pub(super) struct Joined {
    pub(super) samples: Vec<(ModelKey, Vec<PodSample>)>,
    /// How many pods each source supplied with something usable, by the name of its first series.
    pub(super) sources: BTreeMap<Arc<str>, u64>,
    pub(super) ignored: BTreeMap<Ignored, u64>,
}

pub(super) type Answers = BTreeMap<QueryName, Vec<SampleReading>>;

#[derive(Debug, Clone, Copy)]
pub(super) struct Engines<'a> {
    pub(super) answers: &'a Answers,
    pub(super) ages: &'a Ages,
    pub(super) ranked: &'a BTreeSet<(Symbol, Symbol)>,
    pub(super) bands: &'a FreshnessBands,
    pub(super) names: &'a Names,
}

/// Pods of which any series distinguishes ranks.
pub(super) fn ranked(answers: &Answers, names: &Names) -> BTreeSet<(Symbol, Symbol)> {
    let mut ranked = BTreeSet::new();
    for readings in answers.values() {
        for pod in readings.chunk_by(|left, right| left.key.pod() == right.key.pod()) {
            let mut parts = pod.iter().map(|reading| reading.key.part);
            let first = parts.find(|part| *part != names.none);
            let is_other = |part| part != names.none && Some(part) != first;
            if let (Some(reading), true) = (pod.first(), parts.any(is_other)) {
                ranked.insert((reading.key.namespace, reading.key.pod));
            }
        }
    }
    ranked
}

/// Works one signal out, choosing among the sources of each pod.
pub(super) fn join(row: &SignalRow, engines: Engines<'_>) -> Joined {
    let mut joined = Joined::default();
    let operands = gather(row, engines, &mut joined.ignored);
    for model in operands.chunk_by(|left, right| left.key.model() == right.key.model()) {
        let mut pods = Vec::new();
        for pod in model.chunk_by(|left, right| left.key.pod == right.key.pod) {
            pods.extend(engines.pod(row, pod, &mut joined));
        }
        if let (Some(key), false) = (engines.model_key(model), pods.is_empty()) {
            joined.samples.push((key, pods));
        }
    }
    joined
}

/// The readings that a row is made of, with their place among its operands for a source, sorted.
fn gather(
    row: &SignalRow,
    engines: Engines<'_>,
    ignored: &mut BTreeMap<Ignored, u64>,
) -> Vec<SampleReading> {
    let mut operands = Vec::new();
    for (query, readings) in engines.answers {
        let places = row.places(*query);
        for reading in readings {
            let Some(source) = places.get(reading.key.source).copied().flatten() else {
                continue;
            };
            let key = ReadingKey { source, ..reading.key };
            let before = operands.len();
            if key.model == engines.names.none {
                // What does not say its model is of every model of its pod.
                let models = engines.ages.models(key.namespace, key.pod);
                operands.extend(
                    models.map(|model| SampleReading {
                        key: ReadingKey { model, ..key },
                        ..*reading
                    }),
                );
            } else {
                operands.push(SampleReading { key, ..*reading });
            }
            if operands.len() == before {
                *ignored.entry(Ignored::NoAge).or_default() += 1;
            }
        }
    }
    operands.sort_unstable_by_key(|operand| operand.key);
    operands
}

impl Engines<'_> {
    fn model_key(&self, operands: &[SampleReading]) -> Option<ModelKey> {
        let key = operands.first()?.key;
        let name = |symbol| self.names.get(symbol).cloned();
        Some(ModelKey::new(name(key.namespace)?, name(key.model)?))
    }

    fn pod(
        &self,
        row: &SignalRow,
        operands: &[SampleReading],
        joined: &mut Joined,
    ) -> Option<PodSample> {
        let key = operands.first()?.key;
        let mut candidates = Vec::with_capacity(1);
        for (source, signal_formula) in row.formulas.iter().enumerate() {
            let Some(value) = signal_formula.value(row.ranks, operands) else {
                continue;
            };
            match self.age(signal_formula, key) {
                Some(age) => {
                    candidates.push(Candidate { source, sample: Sample::collected(value, age) });
                }
                None => *joined.ignored.entry(Ignored::NoAge).or_default() += 1,
            }
        }
        let (chosen, standing) = choose(candidates, self.bands)?;
        let signal_formula = row.formulas.get(chosen.source)?;
        if standing != SampleQuality::Unusable {
            *joined.sources.entry(Arc::from(signal_formula.name)).or_default() += 1;
        }
        let is_ranked = self.ranked.contains(&(key.namespace, key.pod));
        Some(PodSample {
            pod: Arc::clone(self.names.get(key.pod)?),
            whole: chosen.sample,
            ranks: if is_ranked {
                self.ranks(row, signal_formula, operands, chosen.sample)
            } else {
                Vec::new()
            },
        })
    }

    fn age(&self, signal_formula: &SignalFormula, key: ReadingKey) -> Option<Duration> {
        self.ages.of(signal_formula.age, key, self.names)
    }

    /// The value of each rank, by the source that was chosen for the pod.
    fn ranks(
        &self,
        row: &SignalRow,
        signal_formula: &SignalFormula,
        operands: &[SampleReading],
        whole: Sample,
    ) -> Vec<(Arc<str>, Sample)> {
        let parts: BTreeSet<Symbol> = operands
            .iter()
            .map(|operand| operand.key.part)
            .filter(|part| *part != self.names.none)
            .collect();
        let ranks = parts.into_iter().filter_map(|part| {
            let own: Vec<SampleReading> =
                operands.iter().filter(|operand| operand.key.part == part).copied().collect();
            let value = signal_formula.value(row.ranks, &own)?;
            Some((Arc::clone(self.names.get(part)?), Sample::collected(value, whole.age)))
        });
        ranks.collect()
    }
}
