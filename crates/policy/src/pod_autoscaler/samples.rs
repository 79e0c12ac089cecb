//! What pods and metrics APIs were read to report: one entry for what is read, however many objects rest on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::amounts::AMOUNTS;
use super::check::AutoscalerPolicy;
use super::demand::SourceReading;
use super::source::{MetricSource, SourceKind};
use crate::signal::{Failure, FreshnessBands, Signal};
use wva_base::moment::Moment;

/// What is read: a metric source without its target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleSource {
    /// Where the value comes from.
    pub kind: SourceKind,
    /// Name of the metric.
    pub metric: Arc<str>,
}

impl SampleSource {
    /// What a metric source is read by.
    pub fn of(source: &MetricSource) -> Self {
        Self { kind: source.kind.clone(), metric: Arc::clone(&source.metric) }
    }
}

/// One value that is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleKey {
    /// Namespace of the object, its target and its pods.
    pub namespace: Arc<str>,
    /// The pod; `None` for a total.
    pub pod: Option<Arc<str>>,
    /// What is read.
    pub source: SampleSource,
}

/// What reading one value brought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampleReading {
    /// The last value, with the time that it was read at.
    pub value: Option<(f64, Moment)>,
    /// Why the last read brought none; `None` if it did.
    pub failure: Option<ReadFailure>,
}

/// Why a read brought no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFailure {
    /// What it means for a decision.
    pub kind: Failure,
    /// What happened, and the remedy.
    pub why: Arc<str>,
    /// Since when the pod answers that it is scaling (HTTP 503), as one does that moves its shards.
    pub unavailable_since: Option<Moment>,
    /// Whether the source answers, and its first value takes more reads.
    pub needs_reads: bool,
}

impl ReadFailure {
    /// A read that failed.
    pub fn new(kind: Failure, why: impl Into<Arc<str>>) -> Self {
        Self { kind, why: why.into(), unavailable_since: None, needs_reads: false }
    }
}

/// A pod that starts or scales for longer has failed. Source: the default of `progressDeadlineSeconds`, after
/// which Kubernetes reports that a Deployment makes no progress.
pub(super) const PROGRESS_DEADLINE: Duration = Duration::from_mins(10);

impl SampleReading {
    /// Whether the page answers that the pod moves its shards: what it showed before does not count.
    pub fn is_resharding(&self, now: Moment) -> bool {
        let failure = self.failure.as_ref();
        let since = failure.and_then(|failure| failure.unavailable_since);
        since.is_some_and(|since| now.since(since) < PROGRESS_DEADLINE)
    }

    /// The value as a decision uses it. A value that is still fresh enough outlives a read that failed; the absence of
    /// the series does not leave it one.
    pub fn signal(&self, now: Moment, bands: &FreshnessBands) -> Signal {
        let failed = self.failure.as_ref().map(|failure| failure.kind);
        match (self.value, failed) {
            (None, why) => why.unwrap_or(Failure::Absent).into(),
            (Some(_), Some(why @ (Failure::Absent | Failure::Invalid))) => why.into(),
            (Some((value, at)), _) => bands.judge(value, now.since(at), AMOUNTS),
        }
    }
}

/// All values that are read by one reader.
pub type SampleTable = BTreeMap<SampleKey, SampleReading>;

/// The first failed read of each source of a policy, in the order of these pods, with the pod that it concerns.
pub fn read_failures<'a>(
    policy: &AutoscalerPolicy,
    pods: impl Iterator<Item = &'a Arc<str>>,
    tables: &[&SampleTable],
) -> Vec<Arc<str>> {
    let pods: Vec<&Arc<str>> = pods.collect();
    let first = |source: &MetricSource| {
        let totals = source.is_total().then_some(None);
        let each = pods.iter().filter(|_| !source.is_total());
        let each = each.map(|pod| Some(*pod));
        totals.into_iter().chain(each).find_map(|pod| {
            let reading = reading(policy, source, pod, tables)?;
            let why = &reading.failure.as_ref()?.why;
            Some(match pod {
                Some(pod) => format!("{source}: pod {pod}: {why}").into(),
                None => format!("{source}: {why}").into(),
            })
        })
    };
    policy.sources.iter().filter_map(first).collect()
}

fn reading<'t>(
    policy: &AutoscalerPolicy,
    source: &MetricSource,
    pod: Option<&Arc<str>>,
    tables: &[&'t SampleTable],
) -> Option<&'t SampleReading> {
    let key = SampleKey {
        namespace: Arc::clone(&policy.metadata.namespace),
        pod: pod.cloned(),
        source: SampleSource::of(source),
    };
    tables.iter().find_map(|table| table.get(&key))
}

/// Whether a value that a policy needs has not been read as often as it takes. `serving` are the pods that serve.
pub fn is_unread<'a>(
    policy: &AutoscalerPolicy,
    serving: impl Iterator<Item = &'a Arc<str>>,
    tables: &[&SampleTable],
) -> bool {
    let serving: Vec<&Arc<str>> = serving.collect();
    let is_open = |source: &MetricSource, pod: Option<&Arc<str>>| {
        let reading = reading(policy, source, pod, tables);
        let failure = reading.map(|reading| reading.failure.as_ref());
        failure.is_none_or(|failure| failure.is_some_and(|failure| failure.needs_reads))
    };
    policy.sources.iter().any(|source| {
        if source.is_total() {
            is_open(source, None)
        } else {
            serving.iter().any(|pod| is_open(source, Some(*pod)))
        }
    })
}

/// What each source of a policy reports, in its order. `pods` are the pods of the target.
pub fn source_readings<'a>(
    policy: &AutoscalerPolicy,
    pods: impl Iterator<Item = &'a Arc<str>>,
    tables: &[&SampleTable],
    now: Moment,
) -> Vec<SourceReading> {
    let bands = FreshnessBands::default();
    let pods: Vec<&Arc<str>> = pods.collect();
    let signal = |pod: Option<&Arc<str>>, source: &MetricSource| {
        let reading = reading(policy, source, pod, tables);
        let reading = reading.filter(|reading| pod.is_none() || !reading.is_resharding(now));
        reading.map(|reading| reading.signal(now, &bands))
    };
    let read = |source: &MetricSource| {
        if source.is_total() {
            let absent = Signal::from(Failure::Absent);
            return SourceReading::Total(signal(None, source).unwrap_or(absent));
        }
        let values = pods.iter().filter_map(|pod| {
            let signal = signal(Some(*pod), source)?;
            Some((Arc::clone(pod), signal))
        });
        SourceReading::Pods(values.collect())
    };
    policy.sources.iter().map(read).collect()
}
