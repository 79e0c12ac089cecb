//! Joins the two answers about one signal: which pod has which value, and how old it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::names::{is_dns_label, is_dns_subdomain, is_model_name};
use super::query::{MODEL, NAMESPACE, PODS, SOURCE, SignalSources};
use super::resolver::{Candidate, Standing, choose};
use super::result::{Interner, QueryResult, SampleRef, Symbol};
use crate::policy::key::ModelKey;
use crate::policy::signal::FreshnessBands;
use crate::policy::snapshot::Sample;

/// Why a sample does not count, or not by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ignored {
    /// Its namespace is missing or not a DNS-1123 label.
    Namespace,
    /// Its model name is missing, absurdly long or not printable.
    Model,
    /// Its pod name is missing or not a DNS-1123 subdomain.
    Pod,
    /// It names no source of the signal.
    Source,
    /// Another sample says the same of itself; the higher of the two was taken.
    Duplicate,
    /// Nothing says how old it is.
    NoAge,
}

impl Ignored {
    /// A bounded word for metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Model => "model",
            Self::Pod => "pod",
            Self::Source => "source",
            Self::Duplicate => "duplicate",
            Self::NoAge => "no_age",
        }
    }
}

/// The name of a pod and what was chosen for it.
pub(super) type PodSample = (Arc<str>, Sample);

/// What is known about one signal after both answers.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// The chosen sample of each pod, by model.
    pub(super) samples: Vec<(ModelKey, Vec<PodSample>)>,
    /// How many pods each source name supplied with something usable.
    pub(super) sources: BTreeMap<Arc<str>, u64>,
    /// Samples that were left out or merged.
    pub(super) ignored: BTreeMap<Ignored, u64>,
}

/// One sample that says all about itself.
#[derive(Debug, Clone, Copy)]
struct Reading {
    key: ReadingKey,
    time: f64,
    number: f64,
}

/// The pod and the source of a reading. Symbols order by arrival, which is enough to find equal
/// ones; the order of the outcome comes from the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ReadingKey {
    namespace: Symbol,
    model: Symbol,
    pod: Symbol,
    source: usize,
}

impl ReadingKey {
    fn same_model(&self, other: &Self) -> bool {
        (self.namespace, self.model) == (other.namespace, other.model)
    }
}

/// Joins values and ages, and chooses among the sources of each pod.
pub(super) fn join(
    row: &SignalSources,
    values: &QueryResult,
    ages: &QueryResult,
    bands: &FreshnessBands,
    names: &mut Interner,
) -> Joined {
    let mut joined = Joined::default();
    // The same series stand behind both answers: what is wrong with them is counted once.
    let ages = readings(row, ages, names, &mut BTreeMap::new());
    let values = readings(row, values, names, &mut joined.ignored);
    for model in values.chunk_by(|left, right| left.key.same_model(&right.key)) {
        let mut pods = Vec::new();
        for pod in model.chunk_by(|left, right| left.key.pod == right.key.pod) {
            let candidates = candidates(pod, &ages, &mut joined.ignored);
            let Some((chosen, standing)) = choose(candidates, bands) else {
                continue;
            };
            if standing != Standing::Unusable
                && let Some(name) = row.names.get(chosen.source)
            {
                *joined.sources.entry(Arc::from(*name)).or_default() += 1;
            }
            if let Some(name) = pod.first().and_then(|first| names.get(first.key.pod)) {
                pods.push((Arc::clone(name), chosen.sample));
            }
        }
        if let (Some(key), false) = (model_key(model, names), pods.is_empty()) {
            joined.samples.push((key, pods));
        }
    }
    joined
}

fn model_key(readings: &[Reading], names: &Interner) -> Option<ModelKey> {
    let key = readings.first()?.key;
    let name = |symbol| names.get(symbol).cloned();
    Some(ModelKey::new(name(key.namespace)?, name(key.model)?))
}

/// The values of one pod with their ages.
fn candidates(
    values: &[Reading],
    ages: &[Reading],
    ignored: &mut BTreeMap<Ignored, u64>,
) -> Vec<Candidate> {
    let mut candidates = Vec::with_capacity(values.len());
    for value in values {
        match age_of(value.key, ages) {
            Some(age) => candidates.push(Candidate {
                source: value.key.source,
                sample: Sample {
                    value: value.number,
                    age,
                },
            }),
            None => *ignored.entry(Ignored::NoAge).or_default() += 1,
        }
    }
    candidates
}

/// Time between the newest raw sample and the evaluation that found it, both by the clock of
/// Prometheus.
fn age_of(key: ReadingKey, ages: &[Reading]) -> Option<Duration> {
    let found = ages.binary_search_by_key(&key, |age| age.key).ok()?;
    let age = ages.get(found)?;
    // Prometheus counts in milliseconds; what lies below comes from floating point.
    let seconds = ((age.time - age.number) * 1000.0).round() / 1000.0;
    // No sample is newer than the evaluation that found it, so less than nothing is nothing. What is
    // not a number is no age at all.
    let seconds = if seconds < 0.0 { 0.0 } else { seconds };
    age.number
        .is_finite()
        .then(|| Duration::try_from_secs_f64(seconds).ok())?
}

/// The usable samples of an answer, sorted by key, one per key.
fn readings(
    row: &SignalSources,
    result: &QueryResult,
    names: &mut Interner,
    ignored: &mut BTreeMap<Ignored, u64>,
) -> Vec<Reading> {
    let mut readings = Vec::with_capacity(result.len());
    let mut columns = Columns::of(row, result);
    for sample in result.samples() {
        match columns.identify(sample, names) {
            Ok(key) => readings.push(Reading {
                key,
                time: sample.time,
                number: sample.value,
            }),
            Err(reason) => *ignored.entry(reason).or_default() += 1,
        }
    }
    readings.sort_unstable_by_key(|reading| reading.key);
    readings.dedup_by(|later, kept| {
        let same = later.key == kept.key;
        if same {
            // Of two values the higher, of two times the newer; a number wins over NaN.
            kept.number = kept.number.max(later.number);
            *ignored.entry(Ignored::Duplicate).or_default() += 1;
        }
        same
    });
    readings
}

/// The labels of one answer that identify a sample.
struct Columns<'a> {
    namespace: Column<'a, Symbol>,
    model: Column<'a, Symbol>,
    pods: [Column<'a, Symbol>; PODS.len()],
    source: Column<'a, usize>,
    sources: &'a [&'static str],
}

impl<'a> Columns<'a> {
    fn of(row: &'a SignalSources, result: &'a QueryResult) -> Self {
        Self {
            namespace: Column::new(result, NAMESPACE),
            model: Column::new(result, MODEL),
            pods: PODS.map(|name| Column::new(result, name)),
            source: Column::new(result, SOURCE),
            sources: row.names,
        }
    }

    fn identify(
        &mut self,
        sample: SampleRef<'_>,
        names: &mut Interner,
    ) -> Result<ReadingKey, Ignored> {
        let sources = self.sources;
        let position = |text: &Arc<str>| sources.iter().position(|name| **name == **text);
        let namespace = self.namespace.read(sample, named(is_dns_label, names));
        let namespace = namespace
            .and_then(Judged::accepted)
            .ok_or(Ignored::Namespace)?;
        let model = self.model.read(sample, named(is_model_name, names));
        let model = model.and_then(Judged::accepted).ok_or(Ignored::Model)?;
        let mut pods = self.pods.iter_mut();
        let pod = pods.find_map(|pod| pod.read(sample, named(is_dns_subdomain, names)));
        let pod = pod.and_then(Judged::accepted).ok_or(Ignored::Pod)?;
        let source = self
            .source
            .read(sample, position)
            .and_then(Judged::accepted);
        Ok(ReadingKey {
            namespace,
            model,
            pod,
            source: source.ok_or(Ignored::Source)?,
        })
    }
}

/// Takes a text that is a name of its kind, and refuses any other.
fn named(
    is_name: fn(&str) -> bool,
    names: &mut Interner,
) -> impl FnOnce(&Arc<str>) -> Option<Symbol> {
    move |text| is_name(text).then(|| names.intern_shared(text))
}

/// One label of an answer. What a value means is worked out once, however many samples carry it.
struct Column<'a, T> {
    result: &'a QueryResult,
    label: Option<Symbol>,
    /// By the number of the value; `None` until somebody asks.
    meanings: Vec<Option<Judged<T>>>,
}

/// What a value of a label means.
#[derive(Clone, Copy)]
enum Judged<T> {
    /// Nothing: it is no name of its kind.
    Refused,
    /// This.
    Accepted(T),
}

impl<T> Judged<T> {
    fn accepted(self) -> Option<T> {
        match self {
            Self::Refused => None,
            Self::Accepted(meaning) => Some(meaning),
        }
    }
}

impl<'a, T: Copy> Column<'a, T> {
    fn new(result: &'a QueryResult, label: &str) -> Self {
        Self {
            result,
            label: result.symbol(label),
            meanings: Vec::new(),
        }
    }

    /// The meaning of the label on one sample; `None` where the label is absent or empty, which is
    /// the same in Prometheus.
    fn read(
        &mut self,
        sample: SampleRef<'_>,
        judge: impl FnOnce(&Arc<str>) -> Option<T>,
    ) -> Option<Judged<T>> {
        let value = sample.value_of(self.label?)?;
        let text = self.result.text(value).filter(|text| !text.is_empty())?;
        let place = value.index();
        if self.meanings.len() <= place {
            self.meanings.resize(place + 1, None);
        }
        let meaning = self.meanings.get_mut(place)?;
        let judged = || judge(text).map_or(Judged::Refused, Judged::Accepted);
        Some(*meaning.get_or_insert_with(judged))
    }
}
