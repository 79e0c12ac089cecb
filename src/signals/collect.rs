//! One collection: all queries at once, their answers joined into samples per pod.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};

use super::client::PromApi;
use super::error::QueryError;
use super::join::{Ignored, Joined, join};
use super::promql::Namespace;
use super::query::{Part, Scope, SignalSources, TABLE};
use super::result::{Interner, QueryResult};
use crate::policy::moment::Moment;
use crate::policy::signal::FreshnessBands;
use crate::policy::snapshot::{MetricsSnapshot, PodSamples, SignalName};

/// What a collection is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionSettings {
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
}

/// What became of one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryReport {
    /// The signal it belongs to.
    pub signal: SignalName,
    /// What it asked for.
    pub part: Part,
    /// Number of samples, or why there are none.
    pub outcome: Result<u64, QueryError>,
    /// What the server warned of: usually that the answer is incomplete.
    pub warnings: Vec<String>,
}

type Answers = BTreeMap<(SignalName, Part), Result<QueryResult, QueryError>>;

/// Asks for every signal of all workloads, in a fixed number of queries that run at the same time.
/// A signal of which either query fails has failed as a whole; the others are not touched by it.
pub async fn collect(api: &dyn PromApi, settings: &CollectionSettings) -> Collection {
    let mut answers = ask(api, settings).await;
    bound(&mut answers, settings.max_samples);
    let report = CollectionReport {
        queries: answers
            .iter()
            .map(|(query, answer)| report(*query, answer))
            .collect(),
        ignored: BTreeMap::new(),
    };
    let snapshot = MetricsSnapshot {
        collected: None,
        models: BTreeMap::new(),
        routers: BTreeMap::new(),
        failures: BTreeMap::new(),
        sources: BTreeMap::new(),
    };
    let mut collection = Collection { snapshot, report };
    let mut names = Interner::default();
    for row in TABLE {
        match both(&mut answers, row.signal) {
            Ok((values, ages)) => {
                let joined = join(row, &values, &ages, &settings.freshness, &mut names);
                collection.add(row.signal, joined);
            }
            Err(why) => {
                collection.snapshot.failures.insert(row.signal, why);
            }
        }
    }
    collection
}

/// Sends all queries and waits for all answers. The order in which they arrive does not show.
async fn ask(api: &dyn PromApi, settings: &CollectionSettings) -> Answers {
    let scope = Scope::new(&settings.freshness, settings.namespace.clone());
    let query = |row: &SignalSources, part| {
        let promql = row.query(part, &scope);
        let id = (row.signal, part);
        async move { (id, api.query(&promql, settings.deadline).await) }
    };
    TABLE
        .iter()
        .flat_map(|row| Part::ALL.map(|part| query(row, part)))
        .collect::<FuturesUnordered<_>>()
        .collect()
        .await
}

/// Fails every query whose samples do not fit any more, counted in the order of the table.
fn bound(answers: &mut Answers, max_samples: Option<NonZeroU64>) {
    let Some(limit) = max_samples.map(NonZeroU64::get) else {
        return;
    };
    let mut total: u64 = 0;
    for answer in answers.values_mut() {
        total = total.saturating_add(answer.as_ref().map_or(0, count));
        if total > limit && answer.is_ok() {
            *answer = Err(QueryError::TooMany { limit });
        }
    }
}

fn count(result: &QueryResult) -> u64 {
    u64::try_from(result.len()).unwrap_or(u64::MAX)
}

fn report(
    (signal, part): (SignalName, Part),
    answer: &Result<QueryResult, QueryError>,
) -> QueryReport {
    QueryReport {
        signal,
        part,
        outcome: answer.as_ref().map(count).map_err(Clone::clone),
        warnings: answer
            .as_ref()
            .map_or_else(|_| Vec::new(), |result| result.warnings().to_vec()),
    }
}

/// The two answers about a signal, or why there are not both.
fn both(answers: &mut Answers, signal: SignalName) -> Result<(QueryResult, QueryResult), Arc<str>> {
    let mut answer = |part: Part| match answers.remove(&(signal, part)) {
        Some(Ok(result)) => Ok(result),
        Some(Err(error)) => Err(Arc::from(format!("{} query: {error}", part.as_str()))),
        None => Err(Arc::from(format!("{} query: not sent", part.as_str()))),
    };
    Ok((answer(Part::Value)?, answer(Part::Age)?))
}

impl Collection {
    fn add(&mut self, signal: SignalName, joined: Joined) {
        for (reason, count) in joined.ignored {
            *self.report.ignored.entry(reason).or_default() += count;
        }
        self.snapshot.sources.insert(signal, joined.sources);
        for (model, pods) in joined.samples {
            let known = self.snapshot.models.entry(model).or_default();
            for (pod, sample) in pods {
                let samples: &mut PodSamples = known.entry(pod).or_default();
                match signal {
                    SignalName::KvUsage => samples.kv_usage = Some(sample),
                    SignalName::QueueLength => samples.queue_length = Some(sample),
                }
            }
        }
    }
}
