//! Writes the status of VariantAutoscalings: only what differs, at most eight at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tracing::{Instrument, Span};

use crate::actors::WriterContext;
use crate::actors::emitter::StatusWriteResult;
use crate::actors::retry_queue::RetryEntry;
use crate::actors::status_patch::{self, StatusDifference};
use crate::cluster::permit::WritePermit;
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::status::{CountPatch, StatusError, apply_count, apply_status};
use crate::policy::key::VariantKey;
use crate::policy::record::PublishedRecord;
use crate::policy::units::Replicas;
use crate::telemetry::in_cycle;
use wva_base::backoff::Backoff;
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorResult, Context, Event, Generator, TimerEpoch};

const IN_FLIGHT: usize = 8;
/// For how long one occasion goes on. With what eight writes may take after that, it is well below the limit on
/// silence.
const AT_A_TIME: Duration = Duration::from_secs(15);
const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
/// Delay after an object was found changed: the watch brings the new version.
const OUTDATED: Duration = Duration::from_millis(100);
/// A change of words alone is written this long after the last write at the earliest: words change
/// more often than what they are about.
const WORDS: Duration = Duration::from_secs(30);
/// After a claim that was too short for a write, until it is looked at again: leases are renewed
/// every few seconds.
const RENEWAL: Duration = Duration::from_secs(1);
const REQUESTS: u32 = 5;

#[derive(Debug)]
pub(crate) enum StatusWriterMessage {
    /// Something is in the set of intents.
    Work,
    /// To itself: a delayed intent is due.
    Due(TimerEpoch),
}

#[derive(Debug, Clone)]
pub(crate) struct StatusWriter {
    context: WriterContext,
    generator: Generator,
    /// When each object was written last.
    written: BTreeMap<VariantKey, Moment>,
    /// Until when the API server has asked to be left alone: it has too many requests, whichever objects they are
    /// about, and a status that was decided meanwhile is one more.
    spared: Option<Moment>,
    term: u64,
    timer: TimerEpoch,
}

#[derive(Debug)]
enum WriteOutcome {
    Absent,
    Nothing(Option<Replicas>),
    /// Only words differ, and the object was written a moment ago.
    Later(Moment),
    /// With live controllers that write the object, too.
    Written(BTreeSet<String>, Option<Replicas>),
    Failed(StatusError),
    NoClaim,
}

impl Deref for StatusWriter {
    type Target = WriterContext;

    fn deref(&self) -> &WriterContext {
        &self.context
    }
}

impl StatusWriter {
    pub(crate) fn new(context: WriterContext, generator: Generator) -> Self {
        Self {
            context,
            generator,
            written: BTreeMap::new(),
            spared: None,
            term: 0,
            timer: TimerEpoch::default(),
        }
    }

    /// Everything that was published, and what stayed on scalers; what is in the objects already is found out one by
    /// one.
    fn full_pass(&self) {
        let left = self.shared.mirrors.left_counts(&self.api.manager);
        for key in self.shared.records.snapshot().into_keys().chain(left) {
            self.mailboxes.statuses.add(key);
        }
    }

    /// Writes what is due. It goes on with what becomes due meanwhile, but not for so long that it passes for hung:
    /// where writes are not answered, each takes its time.
    async fn work(&mut self, cx: &Context<StatusWriterMessage>) {
        let began = cx.now();
        let term = self.shared.claim.term();
        if term != self.term {
            self.term = term;
            self.mailboxes.statuses.clear();
            self.full_pass();
        }
        while self.spared_until(cx.now()).is_none() {
            if cx.now().since(began) >= AT_A_TIME {
                cx.send_self(StatusWriterMessage::Work);
                return;
            }
            let batch = self.mailboxes.statuses.take_due(cx.now(), IN_FLIGHT);
            if batch.is_empty() {
                break;
            }
            let this = &*self;
            let outcomes: Vec<_> = batch
                .into_iter()
                .map(|(key, intent)| async move {
                    let cycle = this.cycle_of(&key);
                    let write = this.write(cx.now(), &key).instrument(cycle.clone());
                    (write.await, key, intent, cycle)
                })
                .collect::<FuturesUnordered<_>>()
                .collect()
                .await;
            for (outcome, key, intent, cycle) in outcomes {
                cycle.in_scope(|| self.settle(cx.now(), outcome, key, intent));
            }
        }
        let spared = self.spared_until(cx.now());
        if let Some(due) = spared.or_else(|| self.mailboxes.statuses.next_due(cx.now())) {
            let timer = self.timer.advance();
            cx.arm(due.since(cx.now()), StatusWriterMessage::Due(timer));
        }
    }

    /// Until when the API server is left alone, if it is.
    fn spared_until(&self, now: Moment) -> Option<Moment> {
        self.spared.filter(|until| now.monotonic < until.monotonic)
    }

    fn cycle_of(&self, key: &VariantKey) -> Span {
        let record = self.shared.records.get(key);
        in_cycle(record.and_then(|record| record.decided.cycle))
    }

    async fn write(&self, now: Moment, key: &VariantKey) -> WriteOutcome {
        let outcome = self.write_variant(now, key).await;
        if !matches!(outcome, WriteOutcome::Absent | WriteOutcome::Nothing(_)) {
            return outcome;
        }
        let mut failed = None;
        for left in self.shared.mirrors.removals(key, &self.api.manager) {
            let kept = self.remove_count(now, &left).await;
            failed = failed.or(kept);
        }
        failed.unwrap_or(outcome)
    }

    /// Takes our count from a scaler that declares no variant any more, so that it is not believed when it declares one
    /// again; what went wrong.
    async fn remove_count(&self, now: Moment, left: &CountPatch) -> Option<WriteOutcome> {
        let Some(permit) = self.permit(now, self.shared.claim.term()) else {
            return Some(WriteOutcome::NoClaim);
        };
        let removed = apply_count(permit, &self.api, left, &BTreeSet::new()).await;
        removed.err().map(WriteOutcome::Failed)
    }

    async fn write_variant(&self, now: Moment, key: &VariantKey) -> WriteOutcome {
        // Read before the record, which may be replaced meanwhile.
        let term = self.shared.records.term();
        let record = self.shared.records.get(key);
        let object = self.shared.mirrors.managed(key);
        let Some((record, object)) = record.zip(object) else {
            return WriteOutcome::Absent;
        };
        if object.declared_by.is_some() {
            return self.write_count(now, term, &record, &object).await;
        }
        let Some((mut patch, difference)) =
            status_patch::patch(&record, &object, &self.api.manager, now.wall)
        else {
            return WriteOutcome::Nothing(object.object.stored.desired);
        };
        if difference == StatusDifference::Words
            && let Some(mut due) = self.written.get(key).copied()
        {
            due.monotonic += WORDS;
            if now < due {
                return WriteOutcome::Later(due);
            }
        }
        // What was decided in an earlier term is not stored in this one: another instance may have led since.
        let Some(permit) = self.permit(now, term) else {
            return WriteOutcome::NoClaim;
        };
        self.shared.hooks.status(&object, &mut patch);
        let retired = self.dead(&object, now);
        let stored = apply_status(permit, &self.api, &patch, &retired).await;
        outcome(&record, stored.map(|stored| stored.ownership_conflicts))
    }

    fn permit(&self, now: Moment, term: u64) -> Option<WritePermit> {
        let permit = self.shared.permit(now, self.api.timeout * REQUESTS);
        permit.filter(|permit| permit.term() == term)
    }

    /// All that is stored of a variant that a scaler declares.
    async fn write_count(
        &self,
        now: Moment,
        term: u64,
        record: &PublishedRecord,
        object: &VariantRecord,
    ) -> WriteOutcome {
        let Some(patch) = status_patch::count(record, object) else {
            return WriteOutcome::Nothing(object.object.stored.desired);
        };
        let Some(permit) = self.permit(now, term) else {
            return WriteOutcome::NoClaim;
        };
        let retired = self.shared.ownership_conflicts.load().retired();
        let stored = apply_count(permit, &self.api, &patch, &retired).await;
        outcome(record, stored.map(|()| BTreeSet::new()))
    }

    fn settle(&mut self, now: Moment, outcome: WriteOutcome, key: VariantKey, intent: RetryEntry) {
        match outcome {
            WriteOutcome::Absent => {
                self.written.remove(&key);
                self.settled(key, None);
            }
            WriteOutcome::Nothing(stored) => self.settled(key, stored),
            WriteOutcome::Later(due) => {
                self.settled(key.clone(), None);
                let intent = RetryEntry::at(0, due);
                self.mailboxes.statuses.put_back(key, intent);
            }
            WriteOutcome::NoClaim => {
                self.count("no-claim");
                self.await_claim(now, key);
            }
            WriteOutcome::Written(rivals, stored) => {
                if !rivals.is_empty() {
                    tracing::warn!(variant = %key, ?rivals, "another controller writes this object too; give each its own CONTROLLER_INSTANCE");
                }
                self.written.insert(key.clone(), now);
                self.requests.worked();
                self.count("written");
                self.settled(key, stored);
            }
            WriteOutcome::Failed(error) => self.failed(now, &error, key, intent),
        }
    }

    fn failed(&mut self, now: Moment, error: &StatusError, key: VariantKey, intent: RetryEntry) {
        let asked = self.shared.hooks.retry_after(error.retry_after());
        self.spared = self.spared.max(asked.map(|asked| now.later(asked)));
        let failures = intent.failures.saturating_add(1);
        let backoff = RETRY.delay(usize::try_from(failures).unwrap_or(usize::MAX));
        let delay = match error {
            StatusError::Gone(_) => return self.count("dropped"),
            StatusError::Expired(_) => {
                self.count("dropped");
                return self.await_claim(now, key);
            }
            StatusError::Outdated(_) if failures < 5 => OUTDATED,
            _ => backoff,
        };
        self.count("failed");
        self.report_failure(error);
        let delay = self.generator.jitter(delay, 0.2);
        let delay = self.shared.hooks.retry_delay(delay);
        let delay = delay.max(asked.unwrap_or_default());
        if !matches!(error, StatusError::Outdated(_)) {
            self.settled(key.clone(), None);
            tracing::warn!(variant = %key, %error, failures, retry_in = ?delay, "status not written");
        }
        let intent = RetryEntry::at(failures, now.later(delay));
        if !self.shared.hooks.drops_failed_status() {
            self.mailboxes.statuses.put_back(key, intent);
        }
    }

    /// A claim that is too short for a request may be renewed, which is no change of term. Without a
    /// claim the intent is dropped: the next leader computes its own.
    fn await_claim(&self, now: Moment, key: VariantKey) {
        if self.shared.claim.may_write(now) {
            let intent = RetryEntry::at(0, now.later(RENEWAL));
            self.mailboxes.statuses.put_back(key, intent);
        }
    }

    /// Sends the emitter the count that is stored now, if that is known.
    fn settled(&self, key: VariantKey, stored: Option<Replicas>) {
        self.mailboxes.settled.insert(StatusWriteResult { key, stored });
    }

    fn count(&self, result: &str) {
        let writes = &self.shared.series.process.status_writes;
        writes.with_label_values(&[result]).inc();
    }

    /// Controllers whose fields may be taken: those that are taken for dead, and those that left
    /// nothing but an old word.
    fn dead(&self, object: &VariantRecord, now: Moment) -> BTreeSet<String> {
        let mut dead = self.shared.ownership_conflicts.load().retired();
        let stale = status_patch::stale_reports(object, &self.api.manager, now.wall);
        dead.extend(stale.map(|owner| owner.manager.to_string()));
        dead
    }

    /// What concerns more than one object is said of the controller.
    fn report_failure(&self, error: &StatusError) {
        if let Some(grievance) = error.grievance() {
            self.requests.failed(&grievance);
        }
        if matches!(error, StatusError::Forbidden { .. }) {
            self.permissions.report("Write", error);
        }
    }
}

fn outcome(
    record: &PublishedRecord,
    stored: Result<BTreeSet<String>, StatusError>,
) -> WriteOutcome {
    match stored {
        Ok(rivals) => WriteOutcome::Written(rivals, record.values.map(|values| values.desired)),
        Err(error) => WriteOutcome::Failed(error),
    }
}

impl Actor for StatusWriter {
    type Msg = StatusWriterMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        match event {
            Event::Started => self.full_pass(),
            Event::Message(StatusWriterMessage::Due(timer)) if timer != self.timer => return Ok(()),
            Event::Message(StatusWriterMessage::Due(_) | StatusWriterMessage::Work) => {}
        }
        self.work(cx).await;
        Ok(())
    }

    async fn retire(&mut self, cx: &Context<StatusWriterMessage>) {
        self.work(cx).await;
    }
}

#[cfg(test)]
mod tests;
