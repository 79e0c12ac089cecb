//! The query set: which series names a signal has had, and the two queries that read each signal of
//! all workloads at once.

use std::time::Duration;

use super::promql::{Aggregation, Namespace, Series, Vector, Window};
use crate::policy::signal::FreshnessBands;
use crate::policy::snapshot::SignalName;

/// Queries of one collection, at most.
pub const MAX_QUERIES: usize = 15;

/// The label that tells which source name an arm of a query stands for.
pub const SOURCE: &str = "source";

/// What a sample must say about itself. Pods are called `pod` where the scrape relabels, and
/// `pod_name` by some exporters.
pub(super) const NAMESPACE: &str = "namespace";
pub(super) const MODEL: &str = "model_name";
pub(super) const PODS: [&str; 2] = ["pod", "pod_name"];

/// One pod, by whichever label names it.
const PER_POD: [&str; 4] = [NAMESPACE, MODEL, "pod", "pod_name"];
/// One data-parallel rank of a pod.
const PER_RANK: [&str; 5] = [NAMESPACE, MODEL, "pod", "pod_name", "engine"];

/// The window a peak is taken over. Source: `max_over_time(...[1m])` of the original.
const PEAK: Window = Window::of(Duration::from_mins(1));

/// How the data-parallel ranks of one pod add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranks {
    /// Counts add.
    Sum,
    /// Shares average.
    Mean,
}

/// One row of the table: a signal and the names it has had, the preferred one first. A new engine or
/// a new name is one more string here.
#[derive(Debug, Clone, Copy)]
pub struct SignalSources {
    /// The signal.
    pub signal: SignalName,
    /// How ranks add up.
    pub ranks: Ranks,
    /// Series names; some stores and relabelling rules rewrite the colon to an underscore.
    pub names: &'static [&'static str],
}

/// All signals that are collected.
pub const TABLE: &[SignalSources] = &[
    SignalSources {
        signal: SignalName::KvUsage,
        ranks: Ranks::Mean,
        names: &[
            "vllm:kv_cache_usage_perc",
            "vllm_kv_cache_usage_perc",
            "vllm:gpu_cache_usage_perc",
            "vllm_gpu_cache_usage_perc",
        ],
    },
    SignalSources {
        signal: SignalName::QueueLength,
        ranks: Ranks::Sum,
        names: &["vllm:num_requests_waiting", "vllm_num_requests_waiting"],
    },
];

/// The two questions that a signal is read with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Its value.
    Value,
    /// The time of its newest raw sample.
    Age,
}

impl Part {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Value, Self::Age];

    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Age => "age",
        }
    }
}

/// How far back the queries look and whose series they read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    namespace: Option<Namespace>,
    look_back: Window,
    age_look_back: Window,
    step: Window,
}

impl Scope {
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
        let look_back = unavailable.max(PEAK.seconds()).saturating_add(step);
        let window = |seconds| Window::of(Duration::from_secs(seconds));
        Self {
            namespace,
            look_back: window(look_back),
            age_look_back: window(look_back.saturating_add(2 * step)),
            step: window(step),
        }
    }

    fn series(&self, name: &'static str) -> Series {
        let series = Series::named(name);
        match &self.namespace {
            Some(namespace) => series.matching(NAMESPACE, namespace.as_str()),
            None => series,
        }
    }
}

impl SignalSources {
    /// The query for one part: an arm per source name, each tagged with that name, so that `or`
    /// drops nothing and the choice is made per pod by the [resolver](super::resolver).
    pub fn query(&self, part: Part, scope: &Scope) -> String {
        self.names
            .iter()
            .map(|name| {
                let series = scope.series(name);
                let arm = match part {
                    Part::Value => self.value(&series, scope),
                    Part::Age => newest_sample(&series, scope),
                };
                arm.tagged(SOURCE, name)
            })
            .reduce(|query, arm| query.or(&arm))
            .map(Vector::into_text)
            .unwrap_or_default()
    }

    /// The peak of the last minute, or the last value before it for a pod without a sample in that
    /// minute. Within a rank the highest counts, so that a pod that is scraped twice is not counted
    /// twice.
    fn value(&self, series: &Series, scope: &Scope) -> Vector {
        let ranks = match self.ranks {
            Ranks::Sum => Aggregation::Sum,
            Ranks::Mean => Aggregation::Mean,
        };
        let per_pod = |raw: Vector| {
            raw.grouped(Aggregation::Max, &PER_RANK)
                .grouped(ranks, &PER_POD)
        };
        per_pod(series.highest_in(PEAK)).or(&per_pod(series.last_in(scope.look_back)))
    }
}

/// The time of the newest raw sample of each pod. A failed scrape ends a series at once, so a pod
/// that is not live is looked up in the past.
fn newest_sample(series: &Series, scope: &Scope) -> Vector {
    let per_pod = |raw: Vector| raw.grouped(Aggregation::Max, &PER_POD);
    per_pod(series.live_timestamp()).or(&per_pod(
        series.newest_timestamp_in(scope.age_look_back, scope.step),
    ))
}
