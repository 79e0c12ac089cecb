//! What the readers of samples share: which values PodAutoscalers need, what each read brought, and a bounded
//! number of requests in flight.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

use crate::policy::pod_autoscaler::check::ScalingStrategy;
use crate::policy::pod_autoscaler::record::MeasuredPod;
use crate::policy::pod_autoscaler::samples::{SampleKey, SampleSource};
use crate::policy::pod_autoscaler::source::MetricSource;
use crate::state::board::AutoscalerBoard;

/// The values that all PodAutoscalers need, with the pods that they are of; those of an older record count where a newer
/// one does not name the pod. The strategy `HPA` needs none: its HorizontalPodAutoscaler reads for itself.
pub(super) fn wanted_samples(
    board: &AutoscalerBoard,
    is_wanted: impl Fn(&MetricSource) -> bool,
) -> BTreeMap<SampleKey, Option<MeasuredPod>> {
    let mut records: Vec<_> = board.snapshot().into_values().collect();
    records.sort_by_key(|record| record.decided);
    let mut wanted = BTreeMap::new();
    for record in &records {
        let policy = record.policy.as_ref();
        let policy = policy.filter(|policy| policy.strategy != ScalingStrategy::Hpa);
        let sources = policy.iter().flat_map(|policy| &policy.sources);
        for source in sources.filter(|source| is_wanted(source)) {
            let key = |pod: Option<&Arc<str>>| SampleKey {
                namespace: Arc::clone(&record.key.namespace),
                pod: pod.cloned(),
                source: SampleSource::of(source),
            };
            if source.is_total() {
                wanted.insert(key(None), None);
                continue;
            }
            for (name, pod) in record.pods.iter() {
                wanted.insert(key(Some(name)), Some(pod.clone()));
            }
        }
    }
    wanted
}

/// Requests in flight, no more than there are slots. They go on only while a slice of them is awaited.
pub(super) struct RequestSlots<T> {
    width: usize,
    in_flight: FuturesUnordered<BoxFuture<'static, T>>,
}

wva_base::debug_of!([T] RequestSlots<T>: width);

impl<T> RequestSlots<T> {
    pub(super) fn new(width: usize) -> Self {
        Self { width, in_flight: FuturesUnordered::new() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.in_flight.len() >= self.width
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    pub(super) fn push(&mut self, request: BoxFuture<'static, T>) {
        self.in_flight.push(request);
    }

    pub(super) fn clear(&mut self) {
        self.in_flight.clear();
    }

    /// The next one that ends; `None` at the end of the slice, or without any.
    pub(super) async fn next(&mut self, slice: SliceEnd) -> Option<T> {
        timeout_at(slice.0, self.in_flight.next()).await.unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SliceEnd(Instant);

impl SliceEnd {
    pub(super) fn after(length: Duration) -> Self {
        Self(Instant::now() + length)
    }

    /// Whether it is reached: requests that end at once leave no time for other messages else.
    pub(super) fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

#[cfg(test)]
pub(in crate::actors) mod tests;
