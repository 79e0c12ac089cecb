//! Writes what PodAutoscalers decide: `/scale`, generated HorizontalPodAutoscalers and statuses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::timeout;

use self::carrier::{Attempt, WrittenRecord};
use crate::actors::WriterContext;
use crate::actors::retry_queue::{RetryEntry, RetryQueue};
use crate::cluster::autoscaler::AutoscalerWriteError;
use crate::cluster::event::{EventNotice, EventReason};
use crate::policy::key::ObjectKey;
use crate::policy::pod_autoscaler::event::events;
use crate::state::autoscalers::regarding;
use wva_base::backoff::Backoff;
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorResult, Context, Event, Generator, TimerEpoch};

const IN_FLIGHT: usize = 16;
/// Objects that are taken off the queue at once.
const AHEAD: usize = 8 * IN_FLIGHT;
/// For how long one handled message goes on, well below the limit on silence.
const AT_A_TIME: Duration = Duration::from_secs(15);
/// Between two looks at the queue while attempts are in flight.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Delays between attempts at one object.
const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
/// Delay after an object was found changed: the watch brings the new version.
const OUTDATED: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) enum AutoscalerWriterMessage {
    /// Something is in the queue.
    Work,
    /// To itself: a delayed entry is due.
    Due(TimerEpoch),
}

#[derive(Debug, Clone)]
pub(crate) struct AutoscalerWriter {
    carrier: Arc<WriterContext>,
    generator: Generator,
    /// What was written last of each object.
    done: BTreeMap<ObjectKey, WrittenRecord>,
    /// Until when the API server has asked to leave an object alone.
    spared: BTreeMap<ObjectKey, Moment>,
    timer: TimerEpoch,
}

impl AutoscalerWriter {
    pub(crate) fn new(context: WriterContext, generator: Generator) -> Self {
        Self {
            carrier: Arc::new(context),
            generator,
            done: BTreeMap::new(),
            spared: BTreeMap::new(),
            timer: TimerEpoch::default(),
        }
    }

    fn queue(&self) -> &RetryQueue<ObjectKey> {
        &self.carrier.mailboxes.autoscaler_writes
    }

    /// Keeps attempts in flight until nothing is due: one that takes long holds its own place alone.
    async fn work(&mut self, cx: &Context<AutoscalerWriterMessage>) {
        let began = cx.now();
        let mut due = VecDeque::new();
        let mut busy = BTreeSet::new();
        let mut running = FuturesUnordered::new();
        loop {
            let is_late = cx.now().since(began) >= AT_A_TIME;
            let may_begin = !is_late;
            if may_begin && due.len() < AHEAD {
                let taken = self.queue().take_due(cx.now(), AHEAD - due.len());
                queue_up(&mut due, taken);
            }
            while may_begin && running.len() < IN_FLIGHT {
                let Some((key, entry)) = due.pop_front() else {
                    break;
                };
                if let Some(entry) = self.spared_entry(&key, entry, cx.now()) {
                    self.queue().put_back(key, entry);
                    continue;
                }
                // Two attempts at one object would overtake each other.
                if !busy.insert(key.clone()) {
                    self.queue().put_back(key, entry);
                    continue;
                }
                let (carrier, before) = (Arc::clone(&self.carrier), self.done.get(&key).cloned());
                let now = cx.now();
                running.push(async move {
                    let attempt = carrier.attempt(now, &key, before).await;
                    (attempt, key, entry)
                });
            }
            let (attempt, key, entry) = match timeout(LOOK_AGAIN, running.next()).await {
                Ok(Some(done)) => done,
                Ok(None) => break,
                Err(_elapsed) => continue,
            };
            busy.remove(&key);
            self.settle(cx.now(), attempt, key, entry);
        }
        let is_left = cx.now().since(began) >= AT_A_TIME || !due.is_empty();
        for (key, entry) in due {
            self.queue().put_back(key, entry);
        }
        self.come_back(cx, is_left);
    }

    fn come_back(&mut self, cx: &Context<AutoscalerWriterMessage>, is_left: bool) {
        if is_left {
            cx.send_self(AutoscalerWriterMessage::Work);
            return;
        }
        if let Some(due) = self.queue().next_due(cx.now()) {
            let timer = self.timer.advance();
            cx.arm(due.since(cx.now()), AutoscalerWriterMessage::Due(timer));
        }
    }

    /// An entry that waits for as long as the API server has asked for, where it has, whatever was decided since.
    fn spared_entry(
        &mut self,
        key: &ObjectKey,
        entry: RetryEntry,
        now: Moment,
    ) -> Option<RetryEntry> {
        let until = *self.spared.get(key)?;
        if now.monotonic >= until.monotonic {
            self.spared.remove(key);
            return None;
        }
        Some(RetryEntry { not_before: Some(until), ..entry })
    }

    fn settle(&mut self, now: Moment, attempt: Attempt, key: ObjectKey, entry: RetryEntry) {
        let Some(written) = attempt.written else {
            if self.carrier.shared.autoscalers.get(&key).is_none() {
                self.done.remove(&key);
            }
            return;
        };
        let before = self.done.get(&key);
        let is_repeated =
            before.is_some_and(|before| before.record.decided == written.record.decided);
        // What is open is carried out at the next attempt, which must not take it for done.
        if !is_repeated && !attempt.is_open {
            self.publish(now, &key, before, &written);
            self.done.insert(key.clone(), written);
        }
        if let Some(error) = attempt.failure {
            self.retry(now, &error, key, entry);
        }
    }

    fn publish(
        &self,
        now: Moment,
        key: &ObjectKey,
        before: Option<&WrittenRecord>,
        written: &WrittenRecord,
    ) {
        let Some(stored) = self.carrier.shared.mirrors.pod_autoscalers.get(key) else {
            return;
        };
        let before = before.filter(|before| before.record.uid == written.record.uid);
        let before = before.map(|before| (&*before.record, &before.outcome));
        for event in events(before, &written.record, &written.outcome) {
            let notice = EventNotice {
                regarding: regarding(&stored),
                severity: event.severity,
                reason: EventReason::Autoscaler(event.reason),
                action: "Scale",
                note: event.note,
                cycle: None,
            };
            self.carrier.mailboxes.events.throw(now, notice);
        }
    }

    fn retry(
        &mut self,
        now: Moment,
        error: &AutoscalerWriteError,
        key: ObjectKey,
        entry: RetryEntry,
    ) {
        if matches!(error, AutoscalerWriteError::Gone) {
            return;
        }
        let asked = self.carrier.shared.hooks.retry_after(error.retry_after());
        if let Some(asked) = asked {
            self.spared.insert(key.clone(), now.later(asked));
        }
        let failures = entry.failures.saturating_add(1);
        let delay = match error {
            AutoscalerWriteError::Outdated if failures < 5 => OUTDATED,
            _ => RETRY.delay(usize::try_from(failures).unwrap_or(usize::MAX)),
        };
        let delay = self.generator.jitter(delay, 0.2).max(asked.unwrap_or_default());
        if !matches!(error, AutoscalerWriteError::Outdated) {
            self.carrier.report(error);
            tracing::warn!(autoscaler = %key, %error, failures, retry_in = ?delay, "status not written");
        }
        let entry = RetryEntry::at(failures, now.later(delay));
        self.queue().put_back(key, entry);
    }
}

/// Appends what was taken off the queue. A key that is there already keeps its place.
fn queue_up(due: &mut VecDeque<(ObjectKey, RetryEntry)>, taken: Vec<(ObjectKey, RetryEntry)>) {
    for (key, entry) in taken {
        match due.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = entry,
            None => due.push_back((key, entry)),
        }
    }
}

impl Actor for AutoscalerWriter {
    type Msg = AutoscalerWriterMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        match event {
            Event::Started => {
                for key in self.carrier.shared.autoscalers.snapshot().into_keys() {
                    self.queue().add(key);
                }
            }
            Event::Message(AutoscalerWriterMessage::Due(timer)) if timer != self.timer => {
                return Ok(());
            }
            Event::Message(_) => {}
        }
        self.work(cx).await;
        Ok(())
    }
}

mod carrier;

#[cfg(test)]
mod tests;
