//! Writes what PodAutoscalers decide: `/scale`, generated HorizontalPodAutoscalers and statuses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::actors::event_recorder::Events;
use crate::actors::permission_reporter::PermissionReporter;
use crate::actors::retry_queue::{RetryEntry, RetryQueue};
use crate::cluster::autoscaler::{AutoscalerApi, AutoscalerWriteError, ScaleWrite};
use crate::cluster::event::{EventNotice, EventReason, EventType};
use crate::cluster::permit::WritePermit;
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::cluster::scale::kind_without_watcher;
use crate::policy::key::{ObjectKey, TargetKey};
use crate::policy::pod_autoscaler::check::ScalingStrategy;
use crate::policy::pod_autoscaler::decide::AutoscalerDecision;
use crate::policy::pod_autoscaler::event::{AutoscalerSeverity, events};
use crate::policy::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict};
use crate::policy::pod_autoscaler::status::{ScaleOutcome, next_status};
use crate::state::Readers;
use crate::state::autoscalers::regarding;
use crate::state::requests::RequestReporter;
use wva_base::backoff::Backoff;
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorError, Context, DirtySet, Event, Generator};

/// Objects in flight.
const IN_FLIGHT: usize = 16;
/// For how long one handled message goes on, well below the limit on silence.
const AT_A_TIME: Duration = Duration::from_secs(15);
/// A decision that is older than two ticks is not written: another one is due.
const LONGEST_AGE: Duration = Duration::from_secs(20);
/// Delays between attempts at one object.
const RETRY: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_mins(1),
};
/// Delay after an object was found changed: the watch brings the new version.
const OUTDATED: Duration = Duration::from_millis(100);

/// Messages of the writer.
#[derive(Debug)]
pub enum AutoscalerWriterMessage {
    /// Something is in the queue.
    Work,
    /// To itself: a delayed entry is due.
    Due {
        /// Only the newest timer counts.
        timer_epoch: u64,
    },
}

/// Ways to others.
#[derive(Debug, Clone)]
pub struct AutoscalerWriterConnections {
    /// Kubernetes events.
    pub events: Events,
    /// People, of a right that is missing.
    pub permissions: PermissionReporter,
    /// The reader of targets whose kinds have no watcher.
    pub named: DirtySet<TargetKey>,
}

/// The pump behind the role.
#[derive(Debug)]
pub struct AutoscalerWriter {
    shared: Readers,
    requests: Arc<RequestReporter>,
    queue: RetryQueue<ObjectKey>,
    connections: AutoscalerWriterConnections,
    api: AutoscalerApi,
    generator: Generator,
    /// What was written last of each object.
    done: BTreeMap<ObjectKey, WrittenRecord>,
    /// Until when the API server has asked to be left alone.
    spared: Option<Moment>,
    timer_epoch: u64,
}

/// A record whose decision was carried out.
#[derive(Debug, Clone)]
struct WrittenRecord {
    record: Arc<AutoscalerRecord>,
    outcome: ScaleOutcome,
}

/// What became of one entry.
#[derive(Debug)]
struct Attempt {
    /// What was carried out; `None` if the object or its record is gone, or not ours to write.
    written: Option<WrittenRecord>,
    /// What is to be tried again.
    failure: Option<AutoscalerWriteError>,
}

impl Attempt {
    const NOTHING: Self = Self {
        written: None,
        failure: None,
    };
}

impl AutoscalerWriter {
    /// A new life of the role.
    pub fn new(
        shared: Readers,
        requests: Arc<RequestReporter>,
        queue: RetryQueue<ObjectKey>,
        connections: AutoscalerWriterConnections,
        api: AutoscalerApi,
        generator: Generator,
    ) -> Self {
        Self {
            shared,
            requests,
            queue,
            connections,
            api,
            generator,
            done: BTreeMap::new(),
            spared: None,
            timer_epoch: 0,
        }
    }

    async fn work(&mut self, cx: &Context<AutoscalerWriterMessage>) {
        let began = cx.now();
        while self.spared_until(cx.now()).is_none() {
            if cx.now().since(began) >= AT_A_TIME {
                cx.tell_self(AutoscalerWriterMessage::Work);
                return;
            }
            let batch = self.queue.take_due(cx.now(), IN_FLIGHT);
            if batch.is_empty() {
                break;
            }
            let this = &*self;
            let attempts: Vec<_> = batch
                .into_iter()
                .map(|(key, entry)| async move { (this.attempt(cx.now(), &key).await, key, entry) })
                .collect::<FuturesUnordered<_>>()
                .collect()
                .await;
            for (attempt, key, entry) in attempts {
                self.settle(cx.now(), attempt, key, entry);
            }
        }
        let spared = self.spared_until(cx.now());
        if let Some(due) = spared.or_else(|| self.queue.next_due()) {
            self.timer_epoch += 1;
            let timer_epoch = self.timer_epoch;
            let due = due.since(cx.now());
            cx.arm(due, AutoscalerWriterMessage::Due { timer_epoch });
        }
    }

    fn spared_until(&self, now: Moment) -> Option<Moment> {
        self.spared.filter(|until| now.monotonic < until.monotonic)
    }

    async fn attempt(&self, now: Moment, key: &ObjectKey) -> Attempt {
        let record = self.shared.autoscalers.get(key);
        let stored = self.shared.mirrors.managed_autoscaler(key);
        let Some((record, stored)) = record.zip(stored) else {
            return Attempt::NOTHING;
        };
        let is_current = record.uid == stored.uid && record.term == self.shared.claim.term();
        if !is_current || now.since(record.decided) > LONGEST_AGE {
            return Attempt::NOTHING;
        }
        let known = self.done.get(key);
        let known = known.filter(|known| known.record.decided == record.decided);
        let known = known.map(|known| known.outcome.clone());
        let (outcome, mut failure) = match known {
            Some(outcome) => (outcome, None),
            None => self.carry_out(&record, &stored).await,
        };
        let status = next_status(&record, &stored.status, &outcome, record.decided.wall);
        if status != stored.status && failure.is_none() {
            let written = match self.permit(&record, 1) {
                Ok(permit) => self.api.write_status(permit, &stored, &status).await,
                Err(error) => Err(error),
            };
            match written {
                Ok(()) => self.requests.worked(),
                Err(error) => failure = Some(error),
            }
        }
        Attempt {
            written: Some(WrittenRecord { record, outcome }),
            failure,
        }
    }

    /// Writes what was decided, and what is to be tried again.
    async fn carry_out(
        &self,
        record: &AutoscalerRecord,
        stored: &StoredAutoscaler,
    ) -> (ScaleOutcome, Option<AutoscalerWriteError>) {
        let strategy = record.policy.as_ref().map(|policy| policy.strategy);
        let result = match (&record.verdict, strategy) {
            (AutoscalerVerdict::Decided(decision), Some(ScalingStrategy::Hpa)) => {
                self.generate(record, stored, decision).await
            }
            (AutoscalerVerdict::Decided(decision), _) => {
                match self.retire_hpa(record, stored).await {
                    Ok(()) => self.scale(record, decision).await,
                    Err(error) => Err(error),
                }
            }
            (AutoscalerVerdict::Invalid { .. } | AutoscalerVerdict::Conflict(_), _) => {
                let retired = self.retire_hpa(record, stored).await;
                retired.map(|()| ScaleOutcome::NotWritten)
            }
            (AutoscalerVerdict::Unseen { .. } | AutoscalerVerdict::Uncounted { .. }, _) => {
                Ok(ScaleOutcome::NotWritten)
            }
        };
        match result {
            Ok(outcome) => (outcome, None),
            Err(AutoscalerWriteError::Foreign(why)) => (ScaleOutcome::HpaRefused { why }, None),
            // Nothing is known of the object that was not known before, and its next tick is near.
            Err(error @ (AutoscalerWriteError::Expired | AutoscalerWriteError::Outdated)) => {
                (ScaleOutcome::NotWritten, Some(error))
            }
            Err(error) => {
                let why = error.to_string().into();
                self.report(&error);
                (ScaleOutcome::Failed { why }, None)
            }
        }
    }

    /// The right to carry out a decision of the present term, by the present time.
    fn permit(
        &self,
        record: &AutoscalerRecord,
        requests: u32,
    ) -> Result<WritePermit, AutoscalerWriteError> {
        let now = self.shared.clock.now();
        let permit = self.shared.permit(now, self.api.timeout * requests);
        let permit = permit.filter(|permit| permit.term() == record.term);
        permit.ok_or(AutoscalerWriteError::Expired)
    }

    async fn scale(
        &self,
        record: &AutoscalerRecord,
        decision: &AutoscalerDecision,
    ) -> Result<ScaleOutcome, AutoscalerWriteError> {
        let (Some(policy), Some(target)) = (&record.policy, &record.target) else {
            return Ok(ScaleOutcome::NotWritten);
        };
        if !decision.should_scale() {
            return Ok(ScaleOutcome::NotWritten);
        }
        let write = ScaleWrite {
            target,
            api_version: &policy.target.api_version,
            field: &record.field,
            from: decision.current,
            to: decision.desired,
        };
        let permit = self.permit(record, ScaleWrite::REQUESTS)?;
        let written = self.api.scale(permit, &write).await;
        // The next decision rests on what the target has now.
        if kind_without_watcher(target).is_some() {
            self.connections.named.insert(target.clone());
        }
        written?;
        self.requests.worked();
        tracing::info!(
            autoscaler = %record.key, target = %target, field = %record.field, from = %decision.current, to = %decision.desired,
            reason = decision.reason(), "target scaled"
        );
        Ok(ScaleOutcome::Written)
    }

    async fn generate(
        &self,
        record: &AutoscalerRecord,
        stored: &StoredAutoscaler,
        decision: &AutoscalerDecision,
    ) -> Result<ScaleOutcome, AutoscalerWriteError> {
        let Some(hpa) = &decision.hpa else {
            return Ok(ScaleOutcome::NotWritten);
        };
        let before = self.done.get(&record.key);
        let before = before.and_then(|before| before.record.decision()?.hpa.as_ref());
        let permit = self.permit(record, 2)?;
        let status = self.api.apply_hpa(permit, stored, hpa, before).await?;
        self.requests.worked();
        Ok(ScaleOutcome::HpaApplied(status))
    }

    /// Deletes the generated object of another strategy.
    async fn retire_hpa(
        &self,
        record: &AutoscalerRecord,
        stored: &StoredAutoscaler,
    ) -> Result<(), AutoscalerWriteError> {
        let Some(name) = self.shared.mirrors.generated_hpa(stored) else {
            return Ok(());
        };
        let permit = self.permit(record, 2)?;
        self.api.delete_hpa(permit, stored, &name).await
    }

    fn settle(&mut self, now: Moment, attempt: Attempt, key: ObjectKey, entry: RetryEntry) {
        let Some(written) = attempt.written else {
            if self.shared.autoscalers.get(&key).is_none() {
                self.done.remove(&key);
            }
            return;
        };
        let before = self.done.get(&key);
        let is_repeated =
            before.is_some_and(|before| before.record.decided == written.record.decided);
        if !is_repeated {
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
        let Some(stored) = self.shared.mirrors.pod_autoscalers.get(key) else {
            return;
        };
        let before = before.filter(|before| before.record.uid == written.record.uid);
        let before = before.map(|before| (&*before.record, &before.outcome));
        for event in events(before, &written.record, &written.outcome) {
            let severity = match event.severity {
                AutoscalerSeverity::Normal => EventType::Normal,
                AutoscalerSeverity::Warning => EventType::Warning,
            };
            let notice = EventNotice {
                regarding: regarding(&stored),
                severity,
                reason: EventReason::Autoscaler(event.reason),
                action: "Scale",
                note: event.note,
                cycle: None,
            };
            self.connections.events.throw(now, notice);
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
        let asked = self.shared.hooks.retry_after(error.retry_after());
        self.spared = self.spared.max(asked.map(|asked| now.later(asked)));
        let failures = entry.failures.saturating_add(1);
        let delay = match error {
            AutoscalerWriteError::Outdated if failures < 5 => OUTDATED,
            _ => RETRY.delay(usize::try_from(failures).unwrap_or(usize::MAX)),
        };
        let delay = self
            .generator
            .jitter(delay, 0.2)
            .max(asked.unwrap_or_default());
        if !matches!(error, AutoscalerWriteError::Outdated) {
            self.report(error);
            tracing::warn!(autoscaler = %key, %error, failures, retry_in = ?delay, "status not written");
        }
        let entry = RetryEntry {
            failures,
            not_before: Some(now.later(delay)),
        };
        self.queue.put_back(key, entry);
    }

    fn report(&self, error: &AutoscalerWriteError) {
        if let AutoscalerWriteError::Denied { .. } = error {
            self.connections.permissions.tell("Write", error);
        }
        if error.concerns_everything() {
            self.requests.failed(&error.to_string());
        }
    }
}

impl Actor for AutoscalerWriter {
    type Msg = AutoscalerWriterMessage;

    async fn handle(
        &mut self,
        cx: &Context<AutoscalerWriterMessage>,
        event: Event<AutoscalerWriterMessage>,
    ) -> Result<(), ActorError> {
        match event {
            Event::Started => {
                for key in self.shared.autoscalers.snapshot().into_keys() {
                    self.queue.add(key);
                }
            }
            Event::Message(AutoscalerWriterMessage::Due { timer_epoch })
                if timer_epoch != self.timer_epoch =>
            {
                return Ok(());
            }
            Event::Message(_) => {}
        }
        self.work(cx).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
