//! What routers report about a model, and about the pods that they send its requests to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::ages::Ages;
use super::join::{Answers, Ignored, Joined, PodSample};
use super::query::QueryName;
use super::reading::{Names, ReadingKey, SampleReading};
use super::resolver::{Candidate, SampleQuality, choose};
use super::result::Symbol;
use super::sources::RouterSignal;
use crate::policy::key::ModelKey;
use crate::policy::signal::FreshnessBands;
use crate::policy::snapshot::Sample;

#[derive(Debug, Clone, Copy)]
pub(super) struct Routers<'a> {
    pub(super) answers: &'a Answers,
    pub(super) ages: &'a Ages,
    pub(super) bands: &'a FreshnessBands,
    pub(super) names: &'a Names,
}

#[derive(Debug, Default)]
pub(super) struct RouterJoined {
    pub(super) samples: Vec<(ModelKey, Sample)>,
    /// How many models each series supplied with something usable.
    pub(super) sources: BTreeMap<Arc<str>, u64>,
    pub(super) ignored: BTreeMap<Ignored, u64>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    /// What it is grouped by: namespace, and model or pod.
    group: (Symbol, Symbol),
    candidate: Candidate,
}

impl Routers<'_> {
    pub(super) fn models(&self, signal: &RouterSignal) -> RouterJoined {
        let mut joined = RouterJoined::default();
        let parts = self.parts(signal, &mut joined.ignored, |reading| {
            (reading.key.namespace, reading.key.model)
        });
        for (group, sample, source) in self.chosen(signal, &parts) {
            let name = |symbol| self.names.get(symbol).cloned();
            if group.1 != self.names.none
                && let (Some(namespace), Some(model)) = (name(group.0), name(group.1))
            {
                let key = ModelKey::new(namespace, model);
                joined.samples.push((key, sample));
                count(&mut joined.sources, source);
            }
        }
        joined
    }

    /// Works one signal out for each pod, under every model that the pod itself reports: routers may
    /// know it by the names of its adapters.
    pub(super) fn pods(&self, signal: &RouterSignal) -> Joined {
        let mut joined = Joined::default();
        let parts = self
            .parts(signal, &mut joined.ignored, |reading| (reading.key.namespace, reading.key.pod));
        for (group, whole, source) in self.chosen(signal, &parts) {
            let name = |symbol| self.names.get(symbol).cloned();
            let (Some(namespace), Some(pod)) = (name(group.0), name(group.1)) else {
                continue;
            };
            let models = self.ages.models(group.0, group.1).filter_map(name);
            for model in models {
                let key = ModelKey::new(Arc::clone(&namespace), model);
                let sample = PodSample { pod: Arc::clone(&pod), whole, ranks: Vec::new() };
                joined.samples.push((key, vec![sample]));
                count(&mut joined.sources, source);
            }
        }
        joined
    }

    fn parts(
        &self,
        signal: &RouterSignal,
        ignored: &mut BTreeMap<Ignored, u64>,
        group: impl Fn(&SampleReading) -> (Symbol, Symbol),
    ) -> Vec<Part> {
        let ages = QueryName::RouterAge.terms();
        let mut parts = Vec::new();
        for (query, readings) in self.answers {
            let terms = query.terms();
            // For each arm, its place among the sources and where its age stands.
            let places: Vec<Option<(usize, usize)>> = terms
                .iter()
                .map(|term| {
                    let mut sources = signal.sources.iter();
                    let source =
                        sources.position(|one| one.query == *query && one.name == term.name)?;
                    let age = signal.sources.get(source)?.age;
                    Some((source, ages.iter().position(|term| term.name == age)?))
                })
                .collect();
            for reading in readings {
                let Some((source, place)) = places.get(reading.key.source).copied().flatten()
                else {
                    continue;
                };
                let Some(age) = self.age(reading, place) else {
                    *ignored.entry(Ignored::NoAge).or_default() += 1;
                    continue;
                };
                let value = reading.number;
                parts.push(Part {
                    group: group(reading),
                    candidate: Candidate { source, sample: Sample { value, age } },
                });
            }
        }
        parts.sort_by_key(|part| (part.group, part.candidate.source));
        parts
    }

    fn age(&self, reading: &SampleReading, source: usize) -> Option<Duration> {
        let key = ReadingKey { source, ..reading.key };
        self.ages.own(QueryName::RouterAge, key)
    }

    fn chosen<'p>(
        &'p self,
        signal: &'p RouterSignal,
        parts: &'p [Part],
    ) -> impl Iterator<Item = ((Symbol, Symbol), Sample, Option<&'static str>)> + 'p {
        let groups = parts.chunk_by(|left, right| left.group == right.group);
        groups.filter_map(move |group| {
            let sources =
                group.chunk_by(|left, right| left.candidate.source == right.candidate.source);
            let candidates = sources.filter_map(|parts| together(parts, self.bands));
            let (chosen, standing) = choose(candidates, self.bands)?;
            let name = signal.sources.get(chosen.source).map(|source| source.name);
            let name = name.filter(|_| standing != SampleQuality::Unusable);
            Some((group.first()?.group, chosen.sample, name))
        })
    }
}

/// What the parts of one source say together. Those that are worth less than the best do not count:
/// a router that was replaced leaves its last words behind.
fn together(parts: &[Part], bands: &FreshnessBands) -> Option<Candidate> {
    let standing = |part: &Part| SampleQuality::of(part.candidate.sample, bands);
    let best = parts.iter().map(standing).min()?;
    let mut best = parts.iter().filter(|part| standing(part) == best);
    let mut sum = best.next()?.candidate;
    for part in best {
        sum.sample.value += part.candidate.sample.value;
        sum.sample.age = sum.sample.age.max(part.candidate.sample.age);
    }
    Some(sum)
}

fn count(sources: &mut BTreeMap<Arc<str>, u64>, source: Option<&'static str>) {
    if let Some(source) = source {
        *sources.entry(Arc::from(source)).or_default() += 1;
    }
}
