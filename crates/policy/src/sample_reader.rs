//! What the replicas of a variant say about themselves, judged by age and range.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use crate::key::ModelKey;
use crate::params::DynamicSettings;
use crate::reuse::Reuse;
use crate::router_queue::{DirectQueues, KnownQueue, QueueSource};
use crate::signal::{Failure, FreshnessBands, LOOK, Signal, SignalName, StaleBand};
use crate::snapshot::{
    ClusterSnapshot, MetricsSnapshot, PodSamples, PodView, Readiness, RouterSamples, Sample,
    VariantView,
};
use wva_base::moment::Moment;

const KV_RANGE: RangeInclusive<f64> = 0.0..=1.0;
const QUEUE_RANGE: RangeInclusive<f64> = 0.0..=f64::MAX;

type SamplesByPod = BTreeMap<Arc<str>, PodSamples>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleReader<'a> {
    metrics: &'a MetricsSnapshot,
    bands: &'a FreshnessBands,
    /// Time since the samples were collected, which adds to their age.
    lag: Duration,
    /// The bands by ages at collection.
    collected: FreshnessBands,
    collection: Collection,
    direct: Option<&'a DirectQueues>,
    /// The model that is read, with its samples.
    own: Option<(&'a ModelKey, Option<&'a SamplesByPod>)>,
    now: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Collection {
    Complete,
    /// A query failed that no model can do without, or nothing was collected: no sample is usable.
    Failed,
    /// It is older than a collection may be when it is used again: no sample is usable, either.
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Report {
    Usable(ReplicaLoad),
    /// A sample that is too old to act on: what it was taken from may be under any load by now.
    Outdated,
    /// No sample that is young enough to be one and a number in its range.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReplicaLoad {
    pub(super) kv: Option<f64>,
    pub(super) queue: Option<f64>,
    /// Whether one of them is too old to shrink on.
    pub(super) stale: bool,
}

impl<'a> SampleReader<'a> {
    /// Reads `metrics` as of `now`, unless they have been kept for longer than `reuse`.
    pub(crate) fn new(
        metrics: &'a MetricsSnapshot,
        bands: &'a FreshnessBands,
        reuse: Reuse,
        now: Moment,
    ) -> Self {
        let lag = metrics.collected.map_or(Duration::ZERO, |collected| now.since(collected));
        let needed = [SignalName::KvUsage, SignalName::QueueLength];
        let has_failure = needed.iter().any(|signal| metrics.failures.contains_key(signal));
        let collection = if has_failure || metrics.collected.is_none() {
            Collection::Failed
        } else if reuse.has_ended(metrics.collected, now) {
            Collection::Expired
        } else {
            Collection::Complete
        };
        let collected = FreshnessBands {
            fresh: bands.fresh.saturating_sub(lag),
            stale: bands.stale.saturating_sub(lag),
            unavailable: bands.unavailable.saturating_sub(lag),
        };
        Self { metrics, bands, lag, collected, collection, direct: None, own: None, now }
    }

    pub(crate) fn of(
        snapshot: &'a ClusterSnapshot,
        settings: &'a DynamicSettings,
        now: Moment,
    ) -> Self {
        let (bands, reuse) = (&settings.freshness, settings.cache.reuse);
        Self { direct: Some(&snapshot.direct), ..Self::new(&snapshot.metrics, bands, reuse, now) }
    }

    /// Looks the samples of a model up once for all that is read of it.
    pub(crate) fn of_model(self, model: &'a ModelKey) -> Self {
        Self { own: Some((model, self.samples(model))), ..self }
    }

    pub(crate) fn reach(&self) -> Duration {
        self.lag.saturating_add(LOOK)
    }

    /// Whether a replica has been ready for less time than peaks reach back.
    pub(super) fn is_newest(&self, pod: &PodView) -> bool {
        let ready = pod.ready_since;
        ready.is_some_and(|ready| self.now.wall.since(ready) < self.reach())
    }

    pub(crate) fn awaits_collection(&self) -> bool {
        self.metrics.collected.is_none()
    }

    /// Whether a query failed that no model can do without, or nothing was collected at all.
    pub(crate) fn has_failed(&self) -> bool {
        self.collection == Collection::Failed
    }

    pub(crate) fn has_expired(&self) -> bool {
        self.collection == Collection::Expired
    }

    /// The report of every ready pod of a variant, under the variant's own model.
    pub(super) fn reports<'v>(
        self,
        view: &'v VariantView,
    ) -> impl Iterator<Item = (&'v PodView, Report)> + use<'a, 'v> {
        self.ready(view).map(move |(pod, samples)| (pod, self.report(samples)))
    }

    /// The samples of every ready pod of a variant, under the variant's own model.
    pub(crate) fn ready<'v>(
        self,
        view: &'v VariantView,
    ) -> impl Iterator<Item = (&'v PodView, Option<&'a PodSamples>)> + use<'a, 'v> {
        let mut samples = self.samples(&view.model).map(PodLookup::of);
        view.pods
            .iter()
            .filter(|pod| pod.readiness == Readiness::Ready)
            .map(move |pod| (pod, samples.as_mut().and_then(|all| all.get(&pod.name))))
    }

    pub(crate) fn count(self, view: &VariantView) -> (u32, u32) {
        self.reports(view).fold((0, 0), |(ready, reporting), (_, report)| {
            let usable = u32::from(matches!(report, Report::Usable(_)));
            (ready + 1, reporting + usable)
        })
    }

    /// Samples by pod under the variant's own model; `None` where no sample is usable.
    pub(crate) fn samples(self, model: &ModelKey) -> Option<&'a BTreeMap<Arc<str>, PodSamples>> {
        match (self.own, self.collection) {
            (Some((own, samples)), _) if own == model => samples,
            (_, Collection::Complete) => self.metrics.models.get(model),
            (_, Collection::Failed | Collection::Expired) => None,
        }
    }

    /// Samples of the router in front of a model; `None` where there is none, or no sample is usable.
    pub(crate) fn router(self, model: &ModelKey) -> Option<&'a RouterSamples> {
        match self.collection {
            Collection::Complete => self.metrics.routers.get(model),
            Collection::Failed | Collection::Expired => None,
        }
    }

    /// Requests that wait in the router of a model: the fresher of what Prometheus and the router
    /// itself say, and of two of one age the longer queue. What one of them does not know, the other one
    /// may.
    pub(crate) fn queued(self, model: &ModelKey) -> Option<KnownQueue> {
        let observed = self.router_alone(model).and_then(|router| router.queue_requests);
        let observed = observed.map(|sample| (sample.value, sample.age.saturating_add(self.lag)));
        let seen = self.direct.and_then(|direct| direct.get(model)?.counted);
        let seen = seen.map(|counted| (counted.requests, self.now.since(counted.at)));
        let known = |reading: Option<(f64, Duration)>, source| {
            let (value, age) = reading?;
            let (requests, is_stale) = self.bands.judge(value, age, QUEUE_RANGE).usable()?;
            let queue = KnownQueue { requests, is_stale, age, source };
            Some(queue)
        };
        let known = [known(observed, QueueSource::Prometheus), known(seen, QueueSource::Router)];
        known.into_iter().flatten().min_by(|one, other| {
            let longer_first = other.requests.total_cmp(&one.requests);
            one.age.cmp(&other.age).then(longer_first)
        })
    }

    pub(crate) fn router_failure(self, model: &ModelKey) -> Option<&'a Arc<str>> {
        self.direct?.get(model)?.failure.as_ref()
    }

    /// Whether the query for the queues of routers failed: a model that none of them names may have one
    /// all the same.
    pub(crate) fn lost_routers(self) -> bool {
        self.failed(SignalName::RouterQueueRequests)
    }

    /// Whether the query for a signal failed: who has no sample of it may have one all the same.
    pub(crate) fn failed(self, signal: SignalName) -> bool {
        self.metrics.failures.contains_key(&signal)
    }

    /// Samples of the router alone, whatever became of the queries about replicas: an old one is judged
    /// by its age. `None` where the query for its queue failed.
    pub(crate) fn router_alone(self, model: &ModelKey) -> Option<&'a RouterSamples> {
        if self.lost_routers() {
            return None;
        }
        self.metrics.routers.get(model)
    }

    /// A value that may be acted on, and whether it is too old to shrink on.
    pub(crate) fn value(&self, sample: Option<Sample>, most: f64) -> Option<(f64, bool)> {
        self.judge_collected(sample, 0.0..=most).usable()
    }

    pub(crate) fn is_reporting(self, view: &VariantView) -> bool {
        self.ready(view).filter_map(|(_, samples)| samples).any(|pod| {
            let ranks = pod.ranks.values();
            self.value(pod.arrival_rate, f64::MAX).is_some()
                || matches!(self.report(Some(pod)), Report::Usable(_))
                || ranks.into_iter().any(|rank| {
                    self.value(rank.kv_usage, 1.0).is_some()
                        || self.value(rank.queue_length, f64::MAX).is_some()
                })
        })
    }

    fn report(&self, samples: Option<&PodSamples>) -> Report {
        let kv = self.judge_collected(samples.and_then(|pod| pod.kv_usage), KV_RANGE);
        let queue = self.judge_collected(samples.and_then(|pod| pod.queue_length), QUEUE_RANGE);
        match (kv.usable(), queue.usable()) {
            (None, None) if is_held(kv) || is_held(queue) => Report::Outdated,
            // Beyond the unavailable threshold a sample is none.
            (None, None) => Report::Nothing,
            _ if is_outdated(kv) || is_outdated(queue) => Report::Outdated,
            (kv, queue) => Report::Usable(ReplicaLoad {
                stale: [kv, queue].iter().flatten().any(|(_, stale)| *stale),
                kv: kv.map(|(value, _)| value),
                queue: queue.map(|(value, _)| value),
            }),
        }
    }

    /// [`Self::judge`], but for the age that is said.
    fn judge_collected(&self, sample: Option<Sample>, range: RangeInclusive<f64>) -> Signal {
        let absent = Signal::from(Failure::Absent);
        sample.map_or(absent, |sample| self.collected.judge(sample.value, sample.age, range))
    }

    /// What a sample is good for.
    pub(crate) fn judge(&self, sample: Option<Sample>, range: RangeInclusive<f64>) -> Signal {
        let absent = Signal::from(Failure::Absent);
        sample.map_or(absent, |sample| {
            let age = sample.age.saturating_add(self.lag);
            self.bands.judge(sample.value, age, range)
        })
    }
}

/// Finds samples of pods that follow each other by name without a search for each.
struct PodLookup<'a> {
    all: &'a BTreeMap<Arc<str>, PodSamples>,
    next: Option<Range<'a, Arc<str>, PodSamples>>,
}

impl<'a> PodLookup<'a> {
    fn of(all: &'a BTreeMap<Arc<str>, PodSamples>) -> Self {
        Self { all, next: None }
    }

    fn get(&mut self, pod: &Arc<str>) -> Option<&'a PodSamples> {
        let own = |(name, samples): (&Arc<str>, _)| (name == pod).then_some(samples);
        let follows = self.next.as_mut().and_then(Iterator::next).and_then(own);
        follows.or_else(|| {
            let from = (Bound::Included(&**pod), Bound::Unbounded);
            let mut rest = self.all.range::<str, _>(from);
            let found = rest.next().and_then(own);
            self.next = Some(rest);
            found
        })
    }
}

fn is_held(signal: Signal) -> bool {
    matches!(signal, Signal::Stale { band: StaleBand::Hold, .. })
}

fn is_outdated(signal: Signal) -> bool {
    is_held(signal) || signal == Signal::from(Failure::TooOld)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva_base::moment::WallTime;

    #[test]
    fn a_sample_is_judged_by_its_age_now() {
        let at = |seconds| Moment { monotonic: Duration::from_secs(seconds), wall: WallTime(0) };
        let metrics = MetricsSnapshot::empty(Some(at(1_000)));
        let bands = FreshnessBands::default();
        for lag in [0, 1, 59, 60, 61, 120, 299, 300, 1_000] {
            let reuse = Reuse::within(Duration::from_hours(1));
            let reader = SampleReader::new(&metrics, &bands, reuse, at(1_000 + lag));
            for seconds in [0, 1, 59, 60, 61, 119, 120, 299, 300, u64::MAX] {
                for value in [-1.0, -0.0, 0.0, 0.5, 2.0, f64::INFINITY, f64::NAN] {
                    let sample = Some(Sample { value, age: Duration::from_secs(seconds) });
                    let bits = |known: Option<(f64, bool)>| {
                        known.map(|(value, is_stale)| (value.to_bits(), is_stale))
                    };
                    let judged = reader.judge(sample, 0.0..=1.0).usable();
                    assert_eq!(
                        bits(reader.value(sample, 1.0)),
                        bits(judged),
                        "{value} {seconds} s and {lag} s old"
                    );
                }
            }
        }
    }
}
