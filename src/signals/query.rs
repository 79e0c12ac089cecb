//! The query set: which queries there are, the series of each, and its text.

use std::collections::BTreeSet;
use std::time::Duration;

use super::promql::{Aggregation, Namespace, RangeWindow, SeriesSelector, Vector};
use super::published::Question;
use super::sources::{ARRIVALS, ENGINE, Formula, ROUTER};
use crate::policy::params::RequiredSignals;
use crate::policy::signal::FreshnessBands;

/// Queries of one collection, at most: those for signals, and those for
/// [other publishers](super::published). The documents quote it.
pub const MAX_QUERIES: usize = QueryName::ALL.len() + Question::ALL.len();

/// Queries for the [history](super::history) of engines, once in the life of a process.
pub const HISTORY_QUERIES: usize = 1;

/// The label that names the series of an arm of a query.
pub const SOURCE: &str = "source";

/// What a sample says about itself. Pods are called `pod` where the scrape relabels, and `pod_name`
/// by some exporters.
pub(super) const NAMESPACE: &str = "namespace";
pub(super) const MODEL: &str = "model_name";
pub(super) const PODS: [&str; 2] = ["pod", "pod_name"];
/// Data-parallel ranks of vLLM and SGLang.
pub(super) const RANKS: [&str; 2] = ["engine", "dp_rank"];
/// What a router's own series say. A model that is not rewritten has no target; a namespace that
/// collides with that of the scrape is put aside.
pub(super) const TARGET_MODEL: &str = "target_model_name";
pub(super) const ASIDE: &str = "exported_namespace";
/// The pod that a router picked. Its label `pod` is the router itself.
pub(super) const ENDPOINTS: [&str; 2] = ["endpoint_name", "pod_name"];
pub(super) const BLOCKS: &str = "num_gpu_blocks";
pub(super) const BLOCK_SIZE: &str = "block_size";

/// What distinguishes the series of one page that several jobs or several Prometheis scrape. These
/// series count once.
const SCRAPE: [&str; 6] =
    ["job", "service", "endpoint", "container", "prometheus", "prometheus_replica"];

const PER_POD: [&str; 4] = [NAMESPACE, MODEL, "pod", "pod_name"];
const PER_RANK: [&str; 6] = [NAMESPACE, MODEL, "pod", "pod_name", "engine", "dp_rank"];
/// The cache does not say which model it serves.
const PER_CACHE: [&str; 5] = [NAMESPACE, "pod", "pod_name", "engine", "dp_rank"];
const PER_CACHE_SHAPE: [&str; 7] =
    [NAMESPACE, "pod", "pod_name", "engine", "dp_rank", BLOCKS, BLOCK_SIZE];
const PER_MODEL: [&str; 3] = [NAMESPACE, MODEL, TARGET_MODEL];
const PER_ENDPOINT: [&str; 6] =
    [NAMESPACE, ASIDE, MODEL, TARGET_MODEL, "pod_name", "endpoint_name"];

/// The window a peak, a latency or a rate is taken over. Source: the original's `[1m]`.
const MINUTE: RangeWindow = RangeWindow::of(Duration::from_mins(1));
/// The window a rate is taken over where a minute holds fewer than two samples: two scrapes a minute
/// apart, and some jitter.
const SPARSE: RangeWindow = RangeWindow::of(Duration::from_secs(150));
/// The window the size of a request is taken over. Source: the original's `[5m]`.
const SIZES: RangeWindow = RangeWindow::of(Duration::from_mins(5));

wva_base::named! {
    listed
    /// One query of a collection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum QueryName {
        /// Peak shares of KV cache in use.
        KvUsage = "kv_cache_usage",
        /// When they were last read.
        KvUsageAge = "kv_cache_usage_age",
        /// Peak numbers of waiting requests.
        QueueLength = "queue_length",
        /// When they were last read.
        QueueLengthAge = "queue_length_age",
        /// What engines show right now.
        EngineState = "engine_state",
        /// Sizes of KV caches.
        KvCapacity = "kv_capacity",
        /// Rates behind the mean size of a request.
        RequestSizes = "request_sizes",
        /// Rates behind latencies and throughput.
        EngineRates = "engine_rates",
        /// What routers hold.
        RouterQueue = "router_queue",
        /// What routers take in and where they send it.
        RouterRates = "router_rates",
        /// When routers were last read.
        RouterAge = "router_age",
    }
}

impl QueryName {
    /// The least appetite that it is sent for.
    fn wanted_from(self) -> RequiredSignals {
        match self {
            Self::KvUsage | Self::KvUsageAge | Self::QueueLength | Self::QueueLengthAge => {
                RequiredSignals::Saturation
            }
            Self::EngineState
            | Self::EngineRates
            | Self::RouterQueue
            | Self::RouterRates
            | Self::RouterAge => RequiredSignals::Use,
            Self::KvCapacity | Self::RequestSizes => RequiredSignals::Everything,
        }
    }

    /// The queries that are sent.
    pub fn wanted(required_signals: RequiredSignals) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |query| query.wanted_from() <= required_signals)
    }

    /// Its terms, series by series; no series twice.
    pub(super) fn terms(self) -> Vec<QueryTerm> {
        let mut seen = BTreeSet::new();
        let mut terms: Vec<QueryTerm> = match self {
            Self::KvUsageAge => ages_of(Self::KvUsage),
            Self::QueueLengthAge => ages_of(Self::QueueLength),
            Self::RouterAge => router_ages(),
            Self::RouterQueue | Self::RouterRates => self.router_arms(),
            Self::KvUsage
            | Self::QueueLength
            | Self::EngineState
            | Self::KvCapacity
            | Self::RequestSizes
            | Self::EngineRates => self.engine_arms(),
        };
        terms.retain(|term| seen.insert(term.name));
        terms
    }

    fn engine_arms(self) -> Vec<QueryTerm> {
        let sources = ENGINE.iter().flat_map(|row| row.sources);
        let formulas = sources.filter(|source| source.query == self).map(|source| source.formula);
        let terms = formulas.flat_map(|formula| {
            let shape = match formula {
                Formula::Blocks(_) => TermKind::Cache,
                Formula::Value(_) | Formula::Share { .. } | Formula::Total(_) => self.shape(),
            };
            let series = formula.operands().into_iter();
            series
                .flat_map(move |series| series.0.iter().map(move |name| QueryTerm { name, shape }))
        });
        terms.collect()
    }

    fn router_arms(self) -> Vec<QueryTerm> {
        let rows = ROUTER.iter().chain([&ARRIVALS]);
        let sources = rows.flat_map(|row| row.sources);
        sources
            .filter(|source| source.query == self)
            .map(|source| QueryTerm {
                name: source.name,
                shape: if is_of_endpoints(source.name) {
                    TermKind::EndpointRate
                } else {
                    self.shape()
                },
            })
            .collect()
    }

    fn shape(self) -> TermKind {
        match self {
            Self::KvUsage | Self::QueueLength => TermKind::Peak,
            Self::EngineState | Self::KvCapacity => TermKind::Last,
            Self::RequestSizes => TermKind::Rate(SIZES),
            Self::EngineRates => TermKind::RecentRate,
            Self::RouterQueue => TermKind::RouterLast,
            Self::RouterRates => TermKind::RouterRate,
            Self::KvUsageAge | Self::QueueLengthAge => TermKind::Age,
            Self::RouterAge => TermKind::RouterAge,
        }
    }

    /// The text: an arm per series, each tagged with its name, so that `or` drops nothing and the
    /// choice is made per pod by the [resolver](super::resolver).
    pub fn text(self, scope: &QueryScope) -> String {
        self.terms()
            .into_iter()
            .map(|term| term.vector(scope).tagged(SOURCE, term.name))
            .reduce(|query, term| query.or(&term))
            .map(Vector::into_text)
            .unwrap_or_default()
    }
}

/// Queries of which a history is made: those that say what engines did.
pub(super) const RECORDED: [QueryName; 4] = [
    QueryName::EngineState,
    QueryName::KvCapacity,
    QueryName::RequestSizes,
    QueryName::EngineRates,
];

/// The label that names the query of an arm of a history.
pub(super) const PART: &str = "part";

/// Queries what [`RECORDED`] queries would have brought at every step of the time before now. Series
/// that have ended are left out.
pub(super) fn history_text(scope: &QueryScope, range: RangeWindow, step: RangeWindow) -> String {
    let terms = RECORDED.into_iter().flat_map(|query| {
        let terms = query.terms().into_iter();
        terms.filter_map(move |term| {
            let vector = term.recorded(scope)?.tagged(SOURCE, term.name);
            Some(vector.tagged(PART, query.as_str()))
        })
    });
    let all = terms.reduce(|history, term| history.or(&term));
    all.map(|all| all.over(range, step)).unwrap_or_default()
}

fn ages_of(query: QueryName) -> Vec<QueryTerm> {
    let terms = query.engine_arms().into_iter();
    terms.map(|term| QueryTerm { shape: TermKind::Age, ..term }).collect()
}

fn router_ages() -> Vec<QueryTerm> {
    let rows = ROUTER.iter().chain([&ARRIVALS]);
    let names = rows.flat_map(|row| row.sources).map(|source| source.age);
    names
        .map(|name| QueryTerm {
            name,
            shape: if is_of_endpoints(name) { TermKind::EndpointAge } else { TermKind::RouterAge },
        })
        .collect()
}

/// Whether a series of a router counts per endpoint.
fn is_of_endpoints(name: &str) -> bool {
    ARRIVALS.sources.iter().any(|source| source.name == name)
}

/// The part of a query that reads one series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueryTerm {
    pub(super) name: &'static str,
    pub(super) shape: TermKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TermKind {
    /// The peak of the last minute by rank.
    Peak,
    /// The last value by rank.
    Last,
    /// What a counter grew by per second of the last minute, by rank.
    RecentRate,
    /// What a counter grew by per second of a window, by rank.
    Rate(RangeWindow),
    /// The shape of a cache, in its labels.
    Cache,
    /// The time of the newest raw sample by pod.
    Age,
    /// The last value of all routers by model.
    RouterLast,
    /// What counters of all routers grew by per second, by model.
    RouterRate,
    /// As before by the pod that was picked.
    EndpointRate,
    /// The time of the newest raw sample by model.
    RouterAge,
    /// As before by the pod that was picked.
    EndpointAge,
}

impl QueryTerm {
    /// What a series that has not ended reports about an engine.
    fn recorded(&self, scope: &QueryScope) -> Option<Vector> {
        let series = scope.series(self.name);
        let now = |labels| series.now().grouped(Aggregation::Max, labels);
        match self.shape {
            TermKind::Last => Some(now(&PER_RANK)),
            TermKind::Cache => Some(now(&PER_CACHE_SHAPE)),
            TermKind::RecentRate | TermKind::Rate(_) => Some(self.vector(scope)),
            TermKind::Peak
            | TermKind::Age
            | TermKind::RouterLast
            | TermKind::RouterRate
            | TermKind::EndpointRate
            | TermKind::RouterAge
            | TermKind::EndpointAge => None,
        }
    }

    fn vector(&self, scope: &QueryScope) -> Vector {
        let series = scope.series(self.name);
        let highest = |raw: Vector, labels| raw.grouped(Aggregation::Max, labels);
        let sum = |raw: Vector, labels| raw.but_for(&SCRAPE).grouped(Aggregation::Sum, labels);
        let picked = || scope.series(self.name).matching("status", "success");
        match self.shape {
            // What a rank showed before it ended counts only where the pod shows nothing newer.
            TermKind::Peak => highest(series.highest_in(MINUTE), &PER_RANK)
                .or_on(&PER_POD, &highest(series.last_in(scope.look_back), &PER_RANK)),
            TermKind::Last => highest(series.now(), &PER_RANK)
                .or_on(&PER_POD, &highest(series.last_in(scope.look_back), &PER_RANK)),
            TermKind::Cache => highest(series.now(), &PER_CACHE_SHAPE)
                .or_on(&PER_CACHE, &highest(series.last_in(scope.look_back), &PER_CACHE_SHAPE)),
            TermKind::RecentRate => sum(recent_rate(&series), &PER_RANK),
            TermKind::Rate(window) => sum(series.rate_in(window), &PER_RANK),
            TermKind::RouterLast => {
                sum(series.now(), &PER_MODEL).or(&sum(series.last_in(scope.look_back), &PER_MODEL))
            }
            TermKind::RouterRate => sum(recent_rate(&series), &PER_MODEL),
            TermKind::EndpointRate => sum(recent_rate(&picked()), &PER_ENDPOINT),
            TermKind::Age => newest_sample(&series, &PER_POD, scope),
            TermKind::RouterAge => newest_sample(&series, &PER_MODEL, scope),
            TermKind::EndpointAge => newest_sample(&picked(), &PER_ENDPOINT, scope),
        }
    }
}

/// What counters grew by per second of the last minute, or of the last two scrapes where these are
/// further apart.
fn recent_rate(series: &SeriesSelector) -> Vector {
    series.rate_in(MINUTE).or(&series.rate_in(SPARSE))
}

/// The time of the newest raw sample. A failed scrape ends a series at once, so what is not live is
/// looked up in the past.
fn newest_sample(series: &SeriesSelector, labels: &[&'static str], scope: &QueryScope) -> Vector {
    let newest = |raw: Vector| raw.grouped(Aggregation::Max, labels);
    newest(series.live_timestamp())
        .or(&newest(series.newest_timestamp_in(scope.age_look_back, scope.step)))
}

/// How far back the queries look and whose series they read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryScope {
    namespace: Option<Namespace>,
    look_back: RangeWindow,
    age_look_back: RangeWindow,
    step: RangeWindow,
}

impl QueryScope {
    /// Looks back a little further than the oldest sample that can matter, so that the end of the
    /// window decides nothing: Prometheus 2 counts a sample at its very edge, Prometheus 3 does not.
    /// Ages are looked up further back than any value, the peak included, so that none is without.
    ///
    /// The step is a twentieth of the unavailable threshold, from 1 s to 15 s. The age of a series
    /// that has ended is exact where the step is no longer than its scrape interval, and at most one
    /// step too long otherwise.
    pub fn new(bands: &FreshnessBands, namespace: Option<Namespace>) -> Self {
        let fraction = u64::from(bands.unavailable.subsec_nanos() > 0);
        let unavailable = bands.unavailable.as_secs().saturating_add(fraction);
        let step = unavailable.div_ceil(20).clamp(1, 15);
        let look_back = unavailable.max(MINUTE.seconds()).saturating_add(step);
        let window = |seconds| RangeWindow::of(Duration::from_secs(seconds));
        Self {
            namespace,
            look_back: window(look_back),
            age_look_back: window(look_back.saturating_add(2 * step)),
            step: window(step),
        }
    }

    fn series(&self, name: &'static str) -> SeriesSelector {
        let series = SeriesSelector::named(name);
        match &self.namespace {
            Some(namespace) => series.matching(NAMESPACE, namespace.as_str()),
            None => series,
        }
    }
}
