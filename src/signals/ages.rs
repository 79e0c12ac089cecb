//! How old readings are. All series of one page are scraped at once, so the newest of those whose
//! times are asked for dates the others.

use std::collections::BTreeMap;
use std::time::Duration;

use super::query::QueryName;
use super::reading::{Names, ReadingKey, SampleReading};
use super::result::Symbol;

/// How the names of one page begin. The spellings of a page go together.
const PAGES: [&str; 4] = ["vllm:", "vllm_", "sglang:", "sglang_"];

pub(super) fn page_of(name: &str) -> Option<usize> {
    PAGES.iter().position(|page| name.starts_with(page))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgeSource {
    /// It is asked for by itself, at this position of that query.
    Own(QueryName, usize),
    Page(usize),
}

impl AgeSource {
    /// Where the age of an engine's series comes from.
    pub(super) fn of(name: &str) -> Option<Self> {
        let own = |query: QueryName| {
            let place = query.terms().iter().position(|term| term.name == name)?;
            Some(Self::Own(query, place))
        };
        own(QueryName::KvUsageAge)
            .or_else(|| own(QueryName::QueueLengthAge))
            .or_else(|| page_of(name).map(Self::Page))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Page {
    namespace: Symbol,
    pod: Symbol,
    model: Symbol,
    number: usize,
    /// Last, so that the newest time comes first.
    age: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Ages {
    own: BTreeMap<QueryName, Vec<SampleReading>>,
    pages: Vec<Page>,
    /// By how much everything is older than it says.
    pub(super) repeated: Duration,
}

impl Ages {
    pub(super) fn add(&mut self, query: QueryName, readings: Vec<SampleReading>) {
        let terms = query.terms();
        let pages = readings.iter().filter_map(|reading| {
            let key = reading.key;
            let name = terms.get(key.source)?.name;
            Some(Page {
                namespace: key.namespace,
                pod: key.pod,
                model: key.model,
                number: page_of(name)?,
                age: age(reading)?,
            })
        });
        self.pages.extend(pages);
        self.pages.sort_unstable();
        self.pages.dedup_by_key(|page| Page { age: Duration::ZERO, ..*page });
        self.own.insert(query, readings);
    }

    pub(super) fn own(&self, query: QueryName, key: ReadingKey) -> Option<Duration> {
        let readings = self.own.get(&query)?;
        let found = readings.binary_search_by_key(&key, |reading| reading.key);
        Some(age(readings.get(found.ok()?)?)?.saturating_add(self.repeated))
    }

    pub(super) fn of(&self, source: AgeSource, key: ReadingKey, names: &Names) -> Option<Duration> {
        match source {
            AgeSource::Own(query, source) => {
                self.own(query, ReadingKey { source, part: names.none, ..key })
            }
            AgeSource::Page(number) => {
                let wanted = (key.namespace, key.pod, key.model, number);
                let found = self.pages.binary_search_by_key(&wanted, |page| {
                    (page.namespace, page.pod, page.model, page.number)
                });
                let age = self.pages.get(found.ok()?)?.age;
                Some(age.saturating_add(self.repeated))
            }
        }
    }

    pub(super) fn models(
        &self,
        namespace: Symbol,
        pod: Symbol,
    ) -> impl Iterator<Item = Symbol> + '_ {
        let start =
            self.pages.partition_point(|page| (page.namespace, page.pod) < (namespace, pod));
        let own = self.pages.iter().skip(start);
        let own = own.take_while(move |page| (page.namespace, page.pod) == (namespace, pod));
        let mut last = None;
        own.map(|page| page.model).filter(move |model| last.replace(*model) != Some(*model))
    }
}

/// Time between the newest raw sample and the evaluation that found it, both by the clock of
/// Prometheus.
fn age(reading: &SampleReading) -> Option<Duration> {
    // Prometheus counts in milliseconds; what lies below comes from floating point.
    let seconds = ((reading.time - reading.number) * 1000.0).round() / 1000.0;
    // No sample is newer than the evaluation that found it, so less than nothing is nothing. What is
    // not a number is no age at all.
    let seconds = if seconds < 0.0 { 0.0 } else { seconds };
    reading.number.is_finite().then(|| Duration::try_from_secs_f64(seconds).ok())?
}
