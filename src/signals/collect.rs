//! One collection: all queries at once, their answers joined into samples per pod and per router.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};

use super::ages::Ages;
use super::client::PromApi;
use super::error::QueryError;
use super::evaluations::Evaluated;
use super::join::{Answers, Engines, Ignored, Joined, join, ranked};
use super::promql::Namespace;
use super::query::{QueryName, QueryScope};
use super::reading::{Names, note_unlabelled, readings};
use super::recipe::SignalRow;
use super::result::QueryResult;
use super::routers::{RouterJoined, Routers};
use super::sources::{ARRIVALS, ENGINE, ROUTER, RouterSignal};
use crate::policy::params::RequiredSignals;
use crate::policy::signal::{FreshnessBands, SignalName};
use crate::policy::snapshot::{MetricsSnapshot, PodSamples, RankSamples, Sample, Unlabelled};
use wva_base::moment::Moment;

/// What a collection is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionSettings {
    /// What decisions rest on; no query is sent for nothing.
    pub required_signals: RequiredSignals,
    /// How old a sample may be; the oldest decides how far back is looked.
    pub freshness: FreshnessBands,
    /// The only namespace to read, or all.
    pub namespace: Option<Namespace>,
    /// Time for each query; they run at the same time.
    pub deadline: Duration,
    /// Most samples of one collection, or no bound.
    pub max_samples: Option<NonZeroU64>,
}

/// What one collection brought; a snapshot once it has a time.
#[derive(Debug, Clone)]
pub struct Collection {
    snapshot: MetricsSnapshot,
    /// What happened on the way.
    pub report: CollectionReport,
}

impl Collection {
    /// The snapshot, as of the moment the collection ended.
    pub fn into_snapshot(mut self, collected: Moment) -> MetricsSnapshot {
        self.snapshot.collected = Some(collected);
        self.snapshot
    }
}

/// What happened during a collection, for metrics and the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionReport {
    /// One entry per query, in the order of the table.
    pub queries: Vec<QueryReport>,
    /// Samples that were left out or merged, by reason.
    pub ignored: BTreeMap<Ignored, u64>,
    /// For how long the oldest of the answers has been repeated already.
    pub repeated: Duration,
}

/// What became of one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryReport {
    /// The query.
    pub query: QueryName,
    /// Number of samples, or why there are none.
    pub outcome: Result<u64, QueryError>,
    /// What the server warned of: usually that the answer is incomplete.
    pub warnings: Vec<String>,
}

/// The answers of one collection, or why there are none.
pub(super) type Results = BTreeMap<QueryName, Result<QueryResult, QueryError>>;

/// Queries every wanted signal of all workloads, in a fixed number of queries that run at the same
/// time. A signal of which any query fails has failed as a whole; the others are not touched by it.
/// `repeated_for` says for how long the oldest of the answers has been repeated already, see
/// [`Evaluations`](super::Evaluations): so much is added to all ages.
pub async fn collect(
    api: &dyn PromApi,
    settings: &CollectionSettings,
    repeated_for: impl FnOnce(&Evaluated) -> Duration,
) -> Collection {
    let mut results = ask(api, settings).await;
    bound(&mut results, settings.max_samples);
    let repeated = repeated_for(&evaluated(&results));
    Collection::of(results, &settings.freshness, repeated)
}

/// All samples of an answer are of the time of its evaluation.
fn evaluated(results: &Results) -> Evaluated {
    let times = results.iter().filter_map(|(query, result)| {
        let first = result.as_ref().ok()?.samples().next()?;
        Some((*query, first.time))
    });
    times.collect()
}

/// Sends all queries and waits for all answers. The order in which they arrive does not show.
async fn ask(api: &dyn PromApi, settings: &CollectionSettings) -> Results {
    let scope = QueryScope::new(&settings.freshness, settings.namespace.clone());
    QueryName::wanted(settings.required_signals)
        .map(|query| {
            let promql = query.text(&scope);
            async move { (query, api.query(&promql, settings.deadline).await) }
        })
        .collect::<FuturesUnordered<_>>()
        .collect()
        .await
}

/// Fails every query whose samples do not fit any more, counted in the order of the table.
fn bound(results: &mut Results, max_samples: Option<NonZeroU64>) {
    let Some(limit) = max_samples.map(NonZeroU64::get) else {
        return;
    };
    let mut total: u64 = 0;
    for result in results.values_mut() {
        total = total.saturating_add(result.as_ref().map_or(0, count));
        if total > limit && result.is_ok() {
            *result = Err(QueryError::TooMany(limit));
        }
    }
}

fn count(result: &QueryResult) -> u64 {
    u64::try_from(result.len()).unwrap_or(u64::MAX)
}

fn report(query: QueryName, result: &Result<QueryResult, QueryError>) -> QueryReport {
    QueryReport {
        query,
        outcome: result.as_ref().map(count).map_err(Clone::clone),
        warnings: result.as_ref().map_or_else(|_| Vec::new(), |result| result.warnings().to_vec()),
    }
}

#[derive(Debug)]
struct CollectedAnswers {
    engines: Answers,
    routers: Answers,
    ages: Ages,
    names: Names,
    unlabelled: Unlabelled,
    /// Queries that were sent, and why they brought nothing.
    sent: BTreeMap<QueryName, Option<Arc<str>>>,
}

impl CollectedAnswers {
    /// Reads the results, one at a time, so that the text of only one is held together with its readings.
    fn of(results: Results, ignored: &mut BTreeMap<Ignored, u64>) -> Self {
        let mut collected = Self {
            engines: Answers::new(),
            routers: Answers::new(),
            ages: Ages::default(),
            names: Names::new(),
            unlabelled: Unlabelled::default(),
            sent: BTreeMap::new(),
        };
        for (query, result) in results {
            let failure = match result {
                Ok(result) => {
                    collected.take(query, &result, ignored);
                    None
                }
                Err(error) => Some(Arc::from(format!("{} query: {error}", query.as_str()))),
            };
            collected.sent.insert(query, failure);
        }
        collected
    }

    fn take(
        &mut self,
        query: QueryName,
        result: &QueryResult,
        ignored: &mut BTreeMap<Ignored, u64>,
    ) {
        match query {
            QueryName::KvUsageAge | QueryName::QueueLengthAge | QueryName::RouterAge => {
                // The same series stand behind the values: what is wrong with them is counted once.
                let ages = readings(query, result, &mut self.names, &mut BTreeMap::new());
                self.ages.add(query, ages);
            }
            QueryName::RouterQueue | QueryName::RouterRates => {
                let answer = readings(query, result, &mut self.names, ignored);
                self.routers.insert(query, answer);
            }
            QueryName::KvUsage | QueryName::QueueLength => {
                let mut left_out = BTreeMap::new();
                let answer = readings(query, result, &mut self.names, &mut left_out);
                let labels = [Ignored::Namespace, Ignored::Pod];
                if labels.iter().any(|label| left_out.contains_key(label)) {
                    note_unlabelled(query, result, &mut self.names, &mut self.unlabelled);
                }
                for (reason, count) in left_out {
                    *ignored.entry(reason).or_default() += count;
                }
                self.engines.insert(query, answer);
            }
            QueryName::EngineState
            | QueryName::KvCapacity
            | QueryName::RequestSizes
            | QueryName::EngineRates => {
                let answer = readings(query, result, &mut self.names, ignored);
                self.engines.insert(query, answer);
            }
        }
    }

    /// What came of the queries that a signal takes, and of those that say how old it is.
    fn state(
        &self,
        values: impl IntoIterator<Item = QueryName>,
        ages: impl IntoIterator<Item = QueryName>,
    ) -> State {
        let failure = |query: &QueryName| self.sent.get(query).cloned().flatten();
        let asked: Vec<QueryName> =
            values.into_iter().filter(|query| self.sent.contains_key(query)).collect();
        if asked.is_empty() {
            return State::Unasked;
        }
        let ages: Vec<QueryName> = ages.into_iter().collect();
        match asked.iter().chain(&ages).find_map(failure) {
            Some(why) => State::Failed(why),
            None => State::Answered,
        }
    }

    /// Why no page has an age: one of its queries would be enough.
    fn page_failure(&self) -> Option<Arc<str>> {
        let failure = |query| self.sent.get(&query).cloned().flatten();
        failure(QueryName::KvUsageAge).and_then(|_| failure(QueryName::QueueLengthAge))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Unasked,
    Answered,
    Failed(Arc<str>),
}

impl State {
    /// Failed where it would be answered, and there is a reason.
    fn or_failed(self, why: Option<Arc<str>>) -> Self {
        match (self, why) {
            (Self::Answered, Some(why)) => Self::Failed(why),
            (state, _) => state,
        }
    }
}

impl Collection {
    /// What the answers say, the oldest of which has been repeated for so long.
    pub(super) fn of(results: Results, freshness: &FreshnessBands, repeated: Duration) -> Self {
        let queries = results.iter().map(|(query, result)| report(*query, result)).collect();
        let mut collection = Self {
            snapshot: MetricsSnapshot::empty(None),
            report: CollectionReport { queries, ignored: BTreeMap::new(), repeated },
        };
        let mut collected = CollectedAnswers::of(results, &mut collection.report.ignored);
        collected.ages.repeated = repeated;
        collection.take_engines(&collected, freshness);
        collection.take_routers(&collected, freshness);
        collection.snapshot.unlabelled = collected.unlabelled;
        collection
    }

    pub(super) fn of_the_past(self) -> MetricsSnapshot {
        self.snapshot
    }

    fn take_engines(&mut self, collected: &CollectedAnswers, bands: &FreshnessBands) {
        let ranked = ranked(&collected.engines, &collected.names);
        let engines = Engines {
            answers: &collected.engines,
            ages: &collected.ages,
            ranked: &ranked,
            bands,
            names: &collected.names,
        };
        for signal in ENGINE {
            let row = SignalRow::of(signal);
            let state = collected.state(row.queries(), row.own_ages());
            if self.is_answered(signal.signal, state.or_failed(collected.page_failure())) {
                self.add(signal.signal, join(&row, engines));
            }
        }
        for pod in self.snapshot.models.values_mut().flat_map(BTreeMap::values_mut) {
            share_with_ranks(pod);
        }
    }

    fn take_routers(&mut self, collected: &CollectedAnswers, bands: &FreshnessBands) {
        let routers = Routers {
            answers: &collected.routers,
            ages: &collected.ages,
            bands,
            names: &collected.names,
        };
        let state = |signal: &RouterSignal| {
            let values = signal.sources.iter().map(|source| source.query);
            collected.state(values, [QueryName::RouterAge])
        };
        for signal in ROUTER {
            let state = state(signal);
            if self.is_answered(signal.signal, state) {
                self.add_routers(signal.signal, routers.models(signal));
            }
        }
        let state = state(&ARRIVALS).or_failed(collected.page_failure());
        if self.is_answered(ARRIVALS.signal, state) {
            self.add(ARRIVALS.signal, routers.pods(&ARRIVALS));
        }
        // A model without an entry has no router. A failed query is no absence.
        if self.snapshot.failures.contains_key(&SignalName::RouterQueueRequests) {
            for model in self.snapshot.models.keys() {
                self.snapshot.routers.entry(model.clone()).or_default();
            }
        }
    }

    fn is_answered(&mut self, signal: SignalName, state: State) -> bool {
        match state {
            State::Unasked => false,
            State::Answered => true,
            State::Failed(why) => {
                self.snapshot.failures.insert(signal, why);
                false
            }
        }
    }

    fn add(&mut self, signal: SignalName, joined: Joined) {
        self.count(signal, joined.sources, joined.ignored);
        for (model, pods) in joined.samples {
            let known = self.snapshot.models.entry(model).or_default();
            for pod in pods {
                let samples = known.entry(pod.pod).or_default();
                if let Some(place) = samples.place(signal) {
                    *place = Some(pod.whole);
                }
                let is_by_rank = RankSamples::<Sample>::SIGNALS.contains(&signal);
                for (rank, sample) in pod.ranks.into_iter().filter(|_| is_by_rank) {
                    if let Some(place) = samples.ranks.entry(rank).or_default().place(signal) {
                        *place = Some(sample);
                    }
                }
            }
        }
    }

    fn add_routers(&mut self, signal: SignalName, joined: RouterJoined) {
        self.count(signal, joined.sources, joined.ignored);
        for (model, sample) in joined.samples {
            let samples = self.snapshot.routers.entry(model).or_default();
            if let Some(place) = samples.place(signal) {
                *place = Some(sample);
            }
        }
    }

    fn count(
        &mut self,
        signal: SignalName,
        sources: BTreeMap<Arc<str>, u64>,
        ignored: BTreeMap<Ignored, u64>,
    ) {
        for (reason, count) in ignored {
            *self.report.ignored.entry(reason).or_default() += count;
        }
        self.snapshot.sources.insert(signal, sources);
    }
}

/// Ranks that do not count requests by themselves take their pod's mean request.
fn share_with_ranks(pod: &mut PodSamples) {
    for rank in pod.ranks.values_mut() {
        *rank = RankSamples {
            input_tokens: rank.input_tokens.or(pod.input_tokens),
            output_tokens: rank.output_tokens.or(pod.output_tokens),
            prefix_hit_rate: rank.prefix_hit_rate.or(pod.prefix_hit_rate),
            ..*rank
        };
    }
}
