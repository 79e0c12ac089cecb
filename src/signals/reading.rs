//! Reads what the samples of one answer are of: the labels, judged once per value, and the number.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::join::Ignored;
use super::query::{
    ASIDE, BLOCK_SIZE, BLOCKS, ENDPOINTS, MODEL, NAMESPACE, PODS, QueryName, QueryTerm, RANKS,
    SOURCE, TARGET_MODEL, TermKind,
};
use super::result::{QueryResult, SampleRef, Symbol, SymbolTable};
use crate::policy::snapshot::Unlabelled;
use wva_base::names::{is_dns_label, is_dns_subdomain};

const MAX_RANK: usize = 63;

/// Longest model name that is believed. Repository names stay below 200 bytes; paths to local
/// weights are longer.
const MAX_MODEL: usize = 1024;

#[derive(Debug, Clone, Copy)]
pub(super) struct SampleReading {
    pub(super) key: ReadingKey,
    /// When it was evaluated, in seconds since the Unix epoch by the clock of Prometheus.
    pub(super) time: f64,
    pub(super) number: f64,
}

/// What a reading is of. Symbols order by arrival, which is enough to find equal ones; the order of
/// the outcome comes from the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadingKey {
    pub(super) namespace: Symbol,
    /// The empty name where the series does not say.
    pub(super) model: Symbol,
    /// The empty name where it is of no pod.
    pub(super) pod: Symbol,
    /// Position among the arms of the query.
    pub(super) source: usize,
    /// The rank of an engine, or the name under which a router was asked for the model.
    pub(super) part: Symbol,
}

impl ReadingKey {
    pub(super) fn model(&self) -> (Symbol, Symbol) {
        (self.namespace, self.model)
    }

    pub(super) fn pod(&self) -> (Symbol, Symbol, Symbol) {
        (self.namespace, self.model, self.pod)
    }
}

/// Names seen in one collection, the empty one first.
#[derive(Debug)]
pub(super) struct Names {
    symbols: SymbolTable,
    pub(super) none: Symbol,
}

impl Names {
    pub(super) fn new() -> Self {
        let mut symbols = SymbolTable::default();
        let none = symbols.intern("");
        Self { symbols, none }
    }

    pub(super) fn get(&self, symbol: Symbol) -> Option<&Arc<str>> {
        self.symbols.get(symbol)
    }

    fn named(
        &mut self,
        is_name: fn(&str) -> bool,
    ) -> impl FnOnce(&Arc<str>) -> Option<Symbol> + use<'_> {
        move |text| is_name(text).then(|| self.symbols.intern_shared(text))
    }
}

/// What becomes of readings that are of the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DuplicatePolicy {
    /// Of two values the higher, of two times the newer; a number wins over NaN.
    Highest,
    /// They add: several routers serve one model, each with a queue of its own.
    Sum,
}

/// The usable samples of an answer, sorted by key, one per key.
pub(super) fn readings(
    query: QueryName,
    result: &QueryResult,
    names: &mut Names,
    ignored: &mut BTreeMap<Ignored, u64>,
) -> Vec<SampleReading> {
    let terms = query.terms();
    let mut readings = Vec::with_capacity(result.len());
    let mut columns = Columns::of(&terms, result);
    for sample in result.samples() {
        match columns.read(sample, names) {
            Ok(reading) => readings.push(reading),
            Err(reason) => *ignored.entry(reason).or_default() += 1,
        }
    }
    let duplicates = match query {
        QueryName::RouterQueue | QueryName::RouterRates => DuplicatePolicy::Sum,
        QueryName::KvUsage
        | QueryName::KvUsageAge
        | QueryName::QueueLength
        | QueryName::QueueLengthAge
        | QueryName::EngineState
        | QueryName::KvCapacity
        | QueryName::RequestSizes
        | QueryName::EngineRates
        | QueryName::RouterAge => DuplicatePolicy::Highest,
    };
    readings.sort_unstable_by_key(|reading| reading.key);
    readings.dedup_by(|later, kept| {
        let same = later.key == kept.key;
        if same && duplicates == DuplicatePolicy::Highest {
            kept.number = kept.number.max(later.number);
            *ignored.entry(Ignored::Duplicate).or_default() += 1;
        } else if same {
            kept.number += later.number;
        }
        same
    });
    readings
}

/// Notes the models of series that do not say which pod they are of.
pub(super) fn note_unlabelled(
    query: QueryName,
    result: &QueryResult,
    names: &mut Names,
    unlabelled: &mut Unlabelled,
) {
    let terms = query.terms();
    let mut columns = Columns::of(&terms, result);
    for sample in result.samples() {
        let Err(lack @ (Ignored::Namespace | Ignored::Pod)) = columns.read(sample, names) else {
            continue;
        };
        let model = columns.own_model(sample, names);
        let Some(model) = model.and_then(|model| names.get(model)).cloned() else {
            continue;
        };
        if lack == Ignored::Namespace {
            unlabelled.add_without_namespace(&model);
        } else if let Some(namespace) = columns.namespace(sample, names)
            && let Some(namespace) = names.get(namespace)
        {
            unlabelled.add_without_pod(namespace, &model);
        }
    }
}

/// The labels of one answer that say what a sample is of.
struct Columns<'a> {
    terms: &'a [QueryTerm],
    source: Column<'a, usize>,
    namespace: Column<'a, Symbol>,
    aside: Column<'a, Symbol>,
    model: Column<'a, Symbol>,
    target: Column<'a, Symbol>,
    pods: [Column<'a, Symbol>; PODS.len()],
    endpoints: [Column<'a, Symbol>; ENDPOINTS.len()],
    ranks: [Column<'a, Symbol>; RANKS.len()],
    shape: [Column<'a, u32>; 2],
}

impl<'a> Columns<'a> {
    fn of(terms: &'a [QueryTerm], result: &'a QueryResult) -> Self {
        Self {
            terms,
            source: Column::new(result, SOURCE),
            namespace: Column::new(result, NAMESPACE),
            aside: Column::new(result, ASIDE),
            model: Column::new(result, MODEL),
            target: Column::new(result, TARGET_MODEL),
            pods: PODS.map(|name| Column::new(result, name)),
            endpoints: ENDPOINTS.map(|name| Column::new(result, name)),
            ranks: RANKS.map(|name| Column::new(result, name)),
            shape: [BLOCKS, BLOCK_SIZE].map(|name| Column::new(result, name)),
        }
    }

    fn read(&mut self, sample: SampleRef<'_>, names: &mut Names) -> Result<SampleReading, Ignored> {
        let terms = self.terms;
        let position = |text: &Arc<str>| terms.iter().position(|term| *term.name == **text);
        let namespace = self.namespace(sample, names).ok_or(Ignored::Namespace)?;
        let source = self.source.read(sample, position);
        let source = source.and_then(Judged::accepted);
        let shape = source.and_then(|place| terms.get(place)).map(|term| term.shape);
        let mut number = sample.value;
        let (model, pod, part) = match shape {
            None
            | Some(
                TermKind::Peak
                | TermKind::Last
                | TermKind::RecentRate
                | TermKind::Rate(_)
                | TermKind::Age,
            ) => (
                self.own_model(sample, names).ok_or(Ignored::Model)?,
                self.pod(sample, names).ok_or(Ignored::Pod)?,
                self.rank(sample, names),
            ),
            Some(TermKind::Cache) => {
                let pod = self.pod(sample, names).ok_or(Ignored::Pod)?;
                number = self.tokens(sample).ok_or(Ignored::Shape)?;
                (names.none, pod, self.rank(sample, names))
            }
            Some(TermKind::RouterLast | TermKind::RouterRate | TermKind::RouterAge) => (
                self.served_model(sample, names).ok_or(Ignored::Model)?,
                names.none,
                self.own_model(sample, names).unwrap_or(names.none),
            ),
            Some(TermKind::EndpointRate | TermKind::EndpointAge) => (
                self.served_model(sample, names).unwrap_or(names.none),
                self.endpoint(sample, names).ok_or(Ignored::Pod)?,
                self.own_model(sample, names).unwrap_or(names.none),
            ),
        };
        let key =
            ReadingKey { namespace, model, pod, source: source.ok_or(Ignored::Source)?, part };
        Ok(SampleReading { key, time: sample.time, number })
    }

    /// Its own namespace where the scrape put that aside, else that of the scrape.
    fn namespace(&mut self, sample: SampleRef<'_>, names: &mut Names) -> Option<Symbol> {
        let aside = self.aside.read(sample, names.named(is_dns_label));
        aside
            .or_else(|| self.namespace.read(sample, names.named(is_dns_label)))
            .and_then(Judged::accepted)
    }

    fn own_model(&mut self, sample: SampleRef<'_>, names: &mut Names) -> Option<Symbol> {
        let model = self.model.read(sample, names.named(is_model_name));
        model.and_then(Judged::accepted)
    }

    fn served_model(&mut self, sample: SampleRef<'_>, names: &mut Names) -> Option<Symbol> {
        match self.target.read(sample, names.named(is_model_name)) {
            Some(target) => target.accepted(),
            None => self.own_model(sample, names),
        }
    }

    fn pod(&mut self, sample: SampleRef<'_>, names: &mut Names) -> Option<Symbol> {
        first(&mut self.pods, sample, is_dns_subdomain, names)
    }

    fn endpoint(&mut self, sample: SampleRef<'_>, names: &mut Names) -> Option<Symbol> {
        first(&mut self.endpoints, sample, is_dns_subdomain, names)
    }

    fn rank(&mut self, sample: SampleRef<'_>, names: &mut Names) -> Symbol {
        first(&mut self.ranks, sample, is_rank, names).unwrap_or(names.none)
    }

    fn tokens(&mut self, sample: SampleRef<'_>) -> Option<f64> {
        let mut tokens = 1.0;
        for column in &mut self.shape {
            let count = column.read(sample, |text| text.parse().ok());
            let count = count.and_then(Judged::accepted);
            tokens *= f64::from(count.filter(|count| *count > 0)?);
        }
        Some(tokens)
    }
}

fn is_rank(text: &str) -> bool {
    text.len() <= MAX_RANK && !text.chars().any(char::is_control)
}

/// The first of several labels that is there.
fn first(
    columns: &mut [Column<'_, Symbol>],
    sample: SampleRef<'_>,
    is_name: fn(&str) -> bool,
    names: &mut Names,
) -> Option<Symbol> {
    let mut columns = columns.iter_mut();
    let found = columns.find_map(|column| column.read(sample, names.named(is_name)));
    found.and_then(Judged::accepted)
}

/// One label of an answer. What a value means is worked out once, however many samples carry it.
struct Column<'a, T> {
    result: &'a QueryResult,
    label: Option<Symbol>,
    /// By the number of the value; `None` until it is read.
    meanings: Vec<Option<Judged<T>>>,
}

/// What a value of a label means.
#[derive(Clone, Copy)]
enum Judged<T> {
    /// Nothing: it is no name of its kind.
    Refused,
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
        Self { result, label: result.symbol(label), meanings: Vec::new() }
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

/// Whether `text` can be the name of a model: not empty, not absurdly long, printable.
fn is_model_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_MODEL && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::is_model_name;

    #[test]
    fn models_are_printable_and_not_absurd() {
        for good in ["meta/llama0-70b", "/mnt/models", "a\"b{}", &"m".repeat(1024)] {
            assert!(is_model_name(good), "{good:?}");
        }
        for bad in ["", "a\nb", "\u{0}", &"m".repeat(1025)] {
            assert!(!is_model_name(bad), "{bad:?}");
        }
    }
}
