//! Answers that go on: a message at once, and one more with every change.

use futures::Stream;
use futures::future::{select, select_all};
use futures::stream;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;
use tonic::Status;

use super::decisions::DecisionLookup;
use super::proto::{GetMetricSpecResponse, IsActiveResponse};
use super::trigger::ScalerTrigger;

/// Between two looks at an answer where no change of its objects is noticed: not all that it rests on wakes a stream.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct StreamTerms {
    closing: watch::Receiver<bool>,
    /// Held for the next stream to have once this one ends.
    _place: OwnedSemaphorePermit,
}

impl StreamTerms {
    /// Ends a stream once `closing` is true, and frees `place` with it.
    pub(super) fn new(closing: watch::Receiver<bool>, place: OwnedSemaphorePermit) -> Self {
        Self { closing, _place: place }
    }

    async fn closed(&mut self) {
        // An error says that the connection is gone.
        drop(self.closing.wait_for(|closing| *closing).await);
    }

    fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }
}

/// Activity of a ScaledObject on its way to KEDA. Nothing is sent while it is unknown: KEDA opens a stream that
/// fails again after up to a minute, and would miss the first decision.
struct ActivityStream {
    decisions: DecisionLookup,
    trigger: ScalerTrigger,
    terms: StreamTerms,
    sent: Option<bool>,
}

impl ActivityStream {
    /// The next message; `None` ends the stream.
    async fn next(mut self) -> Option<(Result<IsActiveResponse, Status>, Self)> {
        while !self.terms.is_closing() {
            // A change from here on is noticed, before or after the answer is looked up.
            let changes = self.decisions.changes(&self.trigger);
            let answer = self.decisions.answer(&self.trigger);
            let active = answer.map(|answer| answer.is_active()).ok();
            if active.is_some() && active != self.sent {
                self.sent = active;
                let result = active.unwrap_or_default();
                return Some((Ok(IsActiveResponse { result }), self));
            }
            let closed = pin!(self.terms.closed());
            let woken = select(select_all(changes), closed);
            drop(timeout(LOOK_AGAIN, woken).await);
        }
        None
    }
}

/// Whether a ScaledObject is active: now, and again whenever that changes.
pub(super) fn activity(
    decisions: DecisionLookup,
    trigger: ScalerTrigger,
    terms: StreamTerms,
) -> impl Stream<Item = Result<IsActiveResponse, Status>> + Send + 'static {
    let stream = ActivityStream { decisions, trigger, terms, sent: None };
    stream::unfold(stream, ActivityStream::next)
}

/// The metrics of a trigger, which never change: KEDA keeps what it was sent.
pub(super) fn metric_specs(
    specs: GetMetricSpecResponse,
    terms: StreamTerms,
) -> impl Stream<Item = Result<GetMetricSpecResponse, Status>> + Send + 'static {
    stream::unfold((Some(specs), terms), |(specs, mut terms)| async move {
        if let Some(specs) = specs {
            return Some((Ok(specs), (None, terms)));
        }
        terms.closed().await;
        None
    })
}
