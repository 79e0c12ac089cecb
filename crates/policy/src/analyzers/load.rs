//! Whether anybody uses a model, by what its replicas and its routers say.

use super::{AnalyzedModel, queued_at};
use crate::backlog::Waiting;
use crate::key::ModelKey;
use crate::samples::{PodSamples, Sample};
use crate::signal::SignalName;
use crate::zero::{ModelActivity, ModelLoad};

/// Signs of use of a model. Those of replicas are known where every ready one says so.
pub(crate) fn load_of(key: &ModelKey, subject: AnalyzedModel<'_>) -> ModelLoad {
    let samples = FreshSamples(subject);
    let pods = ready(subject);
    let total = |read: &dyn Fn(&PodSamples) -> Option<f64>| -> Option<f64> {
        pods.as_ref()?.iter().map(|pod| read(pod)).sum()
    };
    let router = subject.reader.router(key);
    let accepted = samples
        .arrivals(SignalName::RouterArrivalRate, router.and_then(|router| router.arrival_rate));
    let sent = total(&|pod| samples.arrivals(SignalName::ArrivalRate, pod.arrival_rate));
    let queued = subject.reader.queued(key);
    ModelLoad {
        running: total(&|pod| samples.fresh(SignalName::Running, pod.running)),
        waiting: total(&|pod| samples.fresh(SignalName::QueueLength, pod.queue_length)),
        queued: queued.filter(|queue| !queue.is_stale).map(|queue| queue.requests),
        ended: total(&|pod| samples.counted(pod, SignalName::CompletionRate, pod.completion_rate)),
        written: total(&|pod| {
            samples.counted(pod, SignalName::GenerationRate, pod.generation_rate)
        }),
        arriving: greater(accepted, sent),
    }
}

/// Requests that wait in the engines and the router of a model, as far as they say so.
pub(crate) fn waiting_of(key: &ModelKey, subject: AnalyzedModel<'_>) -> Waiting {
    let reader = subject.reader;
    let routed = queued_at(key, subject);
    let mut waiting = Waiting { requests: routed.unwrap_or(0.0), routed, ready: 0 };
    for (view, _) in subject.members {
        for (_, samples) in reader.ready(view) {
            let queue = samples.and_then(|pod| pod.queue_length);
            let queue = reader.value(queue, f64::MAX);
            waiting.requests += queue.map_or(0.0, |(requests, _)| requests);
            waiting.ready = waiting.ready.saturating_add(1);
        }
    }
    waiting
}

/// Whether anything is asked of a model: idle where every ready replica, and there is one, says that
/// none is sent to it, none waits and none runs, and the router, where there is one, that none is
/// accepted and none waits. Other than in [`load_of`] each of them must say so: what is asked is
/// acted on at once, so a series that is not there is no zero.
pub(crate) fn activity_of(key: &ModelKey, subject: AnalyzedModel<'_>) -> ModelActivity {
    let samples = FreshSamples(subject);
    let reader = subject.reader;
    let Some(pods) = ready(subject).filter(|pods| !pods.is_empty()) else {
        return ModelActivity::Unknown;
    };
    let of_pods = pods.into_iter().flat_map(|pod| {
        [
            samples.fresh(SignalName::ArrivalRate, pod.arrival_rate),
            samples.fresh(SignalName::QueueLength, pod.queue_length),
            samples.fresh(SignalName::Running, pod.running),
        ]
    });
    let (router, queued) = (reader.router(key), reader.queued(key));
    let is_routed = router.is_some()
        || queued.is_some()
        || reader.lost_routers()
        || reader.failed(SignalName::RouterArrivalRate);
    let of_router = is_routed.then(|| {
        let accepted = router.and_then(|router| router.arrival_rate);
        [
            queued.filter(|queue| !queue.is_stale).map(|queue| queue.requests),
            samples.fresh(SignalName::RouterArrivalRate, accepted),
        ]
    });
    ModelActivity::of(of_pods.chain(of_router.into_iter().flatten()))
}

fn ready(subject: AnalyzedModel<'_>) -> Option<Vec<&PodSamples>> {
    let pods = subject.members.iter().map(|(view, _)| view.pods.len());
    let mut all = Vec::with_capacity(pods.sum());
    for (view, target) in subject.members {
        let before = all.len();
        for (_, samples) in subject.reader.ready(view) {
            all.push(samples?);
        }
        if u32::try_from(all.len() - before).ok()? < target.ready.0 {
            return None;
        }
    }
    Some(all)
}

/// The greater of two; one that is above zero is a sign of use, whatever became of the other.
fn greater(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other).filter(|known| *known > 0.0),
    }
}

/// Signs of requests of the last minute, besides gauges of requests.
const TRACES: [SignalName; 6] = [
    SignalName::KvUsage,
    SignalName::KvUsageNow,
    SignalName::TimeToFirstToken,
    SignalName::InterTokenLatency,
    SignalName::GenerationRate,
    SignalName::CompletionRate,
];

#[derive(Clone, Copy)]
struct FreshSamples<'a>(AnalyzedModel<'a>);

impl FreshSamples<'_> {
    /// A value that is fresh. A zero that an earlier collection left is no news where the query for it
    /// failed.
    fn fresh(self, signal: SignalName, sample: Option<Sample>) -> Option<f64> {
        let (value, is_stale) = self.0.reader.value(sample, f64::MAX)?;
        let is_left_over = value <= 0.0 && self.0.reader.failed(signal);
        (!is_stale && !is_left_over).then_some(value)
    }

    /// Requests that arrive. Not every router counts them, so that a series that is not there says
    /// nothing; one that could not be read, or is old, might say something.
    fn arrivals(self, signal: SignalName, sample: Option<Sample>) -> Option<f64> {
        match sample {
            Some(_) => self.fresh(signal, sample),
            None => (!self.0.reader.failed(signal)).then_some(0.0),
        }
    }

    /// What an engine counts. Some engines show a counter only after their first request, so that it
    /// is zero where it is missing and nothing else shows a request; otherwise it is not known.
    fn counted(self, pod: &PodSamples, signal: SignalName, sample: Option<Sample>) -> Option<f64> {
        match sample {
            Some(_) => self.fresh(signal, sample),
            None => self.shows_no_use(pod).then_some(0.0),
        }
    }

    /// Whether nothing shows a request of the last minute: the peak of the cache is known to be
    /// zero, no latency was measured, and what is counted at all did not move.
    fn shows_no_use(self, pod: &PodSamples) -> bool {
        let is_zero = |signal, sample: Option<Sample>| self.fresh(signal, sample) == Some(0.0);
        let is_none_or_zero =
            |signal, sample: Option<Sample>| sample.is_none() || is_zero(signal, sample);
        let is_lost = TRACES.iter().any(|name| self.0.reader.failed(*name));
        let is_measured = pod.time_to_first_token.is_some() || pod.inter_token_latency.is_some();
        !is_lost
            && !is_measured
            && is_zero(SignalName::KvUsage, pod.kv_usage)
            && is_none_or_zero(SignalName::KvUsageNow, pod.kv_usage_now)
            && is_none_or_zero(SignalName::GenerationRate, pod.generation_rate)
            && is_none_or_zero(SignalName::CompletionRate, pod.completion_rate)
    }
}
