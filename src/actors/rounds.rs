//! A pump that writes in rounds: it compares what is with what is to be, and writes the differences. The cluster holds
//! what it did, so that it has nothing to lose.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};

use crate::cluster::autoscaler::AutoscalerWriteError;
use crate::state::Readers;
use crate::state::permission_reporter::PermissionReporter;
use crate::state::requests::RequestReporter;
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorResult, Context, Event, TimerEpoch};

const IN_FLIGHT: usize = 8;
/// Most requests of one round. With the longest ones it stays below the limit on silence.
const AT_A_TIME: usize = 64;
/// How long an object is not written after a write that is not allowed; where none is allowed, no object.
pub(super) const DENIED_PAUSE: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) enum RoundMessage {
    /// Something was published.
    Published,
    /// To itself: time for the next round.
    Round(TimerEpoch),
}

/// What the rounds of one role write.
pub(crate) trait RoundWork: Debug + Send + Sync + 'static {
    /// What is written to.
    type Object: Ord + Clone + Debug + Display + Send + Sync;
    /// What is written to it.
    type Change: Debug + Send + Sync;

    /// What a write that failed was about, in the log.
    const ABOUT: &str;
    /// Most requests of one write.
    const REQUESTS: u32;
    /// Least time between two rounds: many decisions are one round.
    const PAUSE: Duration;

    /// From one round to the next: things change without a new decision.
    fn until_next(&self) -> Duration;

    /// What is not as it is to be.
    fn differences(&mut self, now: Moment) -> Vec<(Self::Object, Self::Change)>;

    /// Takes note of those whose turn it is.
    fn begin(&mut self, _due: &[(Self::Object, Self::Change)], _now: Moment) {}

    /// Makes one of them good.
    fn write(
        &self,
        object: &Self::Object,
        change: Self::Change,
    ) -> impl Future<Output = Result<(), AutoscalerWriteError>> + Send;
}

#[derive(Debug, Clone)]
pub(crate) struct Rounds<W: RoundWork> {
    work: W,
    shared: Readers,
    requests: Arc<RequestReporter>,
    permissions: PermissionReporter,
    last: Option<Moment>,
    /// The last object of the round before.
    reached: Option<W::Object>,
    /// Objects whose write is not allowed, and until when they are left alone: that may concern them alone.
    denied: BTreeMap<W::Object, Moment>,
    /// Until when the API server is left alone.
    pub(super) spared: Option<Moment>,
    timer: TimerEpoch,
}

impl<W: RoundWork> Rounds<W> {
    pub(crate) fn new(
        work: W,
        shared: Readers,
        requests: Arc<RequestReporter>,
        permissions: PermissionReporter,
    ) -> Self {
        Self {
            work,
            shared,
            requests,
            permissions,
            last: None,
            reached: None,
            denied: BTreeMap::new(),
            spared: None,
            timer: TimerEpoch::default(),
        }
    }

    pub(super) async fn round(&mut self, now: Moment) {
        self.last = Some(now);
        let is_spared = |until: Moment| now.monotonic < until.monotonic;
        if self.spared.is_some_and(is_spared) {
            return;
        }
        self.denied.retain(|_, until| now.monotonic < until.monotonic);
        let mut differences = self.work.differences(now);
        differences.retain(|(object, _)| !self.denied.contains_key(object));
        let most = AT_A_TIME / usize::try_from(W::REQUESTS.max(1)).unwrap_or(AT_A_TIME);
        let due = turn(differences, self.reached.as_ref(), most);
        self.work.begin(&due, now);
        self.reached = due.last().map(|(object, _)| object.clone());
        let work = &self.work;
        let write = async |(object, change): (W::Object, W::Change)| {
            let written = work.write(&object, change).await;
            (object, written)
        };
        let outcomes: BTreeMap<_, _> =
            stream::iter(due.into_iter().map(write)).buffer_unordered(IN_FLIGHT).collect().await;
        let is_denied = |outcome: &Result<(), AutoscalerWriteError>| {
            matches!(outcome, Err(AutoscalerWriteError::Denied { .. }))
        };
        if !outcomes.is_empty() && outcomes.values().all(is_denied) {
            self.spared = self.spared.max(Some(now.later(DENIED_PAUSE)));
        }
        for (object, outcome) in outcomes {
            match outcome {
                Ok(()) => self.requests.worked(),
                Err(error) => self.failed(now, &object, &error),
            }
        }
    }

    /// A later round finds what is left to do.
    fn failed(&mut self, now: Moment, object: &W::Object, error: &AutoscalerWriteError) {
        let asked = self.shared.hooks.retry_after(error.retry_after());
        self.spared = self.spared.max(asked.map(|asked| now.later(asked)));
        if error.concerns_everything() {
            self.requests.failed(&error.to_string());
        }
        match error {
            // A later round sees what became of it.
            AutoscalerWriteError::Gone
            | AutoscalerWriteError::Outdated
            | AutoscalerWriteError::Expired => return,
            AutoscalerWriteError::Denied { .. } => {
                self.permissions.report("Write", error);
                self.denied.insert(object.clone(), now.later(DENIED_PAUSE));
            }
            _ => {}
        }
        tracing::warn!(%object, %error, "{} not written", W::ABOUT);
    }

    fn arm(&mut self, cx: &Context<RoundMessage>, after: Duration) {
        cx.arm(after, RoundMessage::Round(self.timer.advance()));
    }
}

/// The differences of a round: those after the last object of the round before come first, so that objects that are
/// refused do not keep the others from their turn.
pub(super) fn turn<O: Ord, C>(
    mut differences: Vec<(O, C)>,
    reached: Option<&O>,
    most: usize,
) -> Vec<(O, C)> {
    differences.sort_by(|one, other| one.0.cmp(&other.0));
    let done =
        differences.partition_point(|(object, _)| reached.is_some_and(|last| object <= last));
    differences.rotate_left(done);
    differences.truncate(most);
    differences
}

impl<W: RoundWork> Actor for Rounds<W> {
    type Msg = RoundMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        match event {
            Event::Message(RoundMessage::Round(timer)) if timer != self.timer => return Ok(()),
            Event::Message(RoundMessage::Published) => {
                let since = self.last.map(|last| cx.now().since(last));
                if let Some(rest) = since.and_then(|since| W::PAUSE.checked_sub(since)) {
                    self.arm(cx, rest);
                    return Ok(());
                }
            }
            Event::Started | Event::Message(RoundMessage::Round(_)) => {}
        }
        self.round(cx.now()).await;
        self.arm(cx, self.work.until_next());
        Ok(())
    }
}

#[cfg(test)]
pub(in crate::actors) mod tests;
