//! Carries out one decision: `/scale`, the generated object, the status.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::WriterContext;
use crate::cluster::autoscaler::{AutoscalerWriteError, ScaleWrite, is_in_place, reported};
use crate::cluster::permit::WritePermit;
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::cluster::scale::kind_without_watcher;
use crate::policy::key::ObjectKey;
use crate::policy::pod_autoscaler::check::ScalingStrategy;
use crate::policy::pod_autoscaler::decide::AutoscalerDecision;
use crate::policy::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict};
use crate::policy::pod_autoscaler::status::{PodAutoscalerStatus, ScaleOutcome, next_status};
use wva_base::moment::Moment;

/// A decision that is older than two ticks is not written: another one is due.
const LONGEST_AGE: Duration = Duration::from_secs(20);

/// A record whose decision was carried out.
#[derive(Debug, Clone)]
pub(super) struct WrittenRecord {
    pub(super) record: Arc<AutoscalerRecord>,
    pub(super) outcome: ScaleOutcome,
    pub(super) status: Option<WrittenStatus>,
}

/// A status, and what the server kept of it: a definition of another version drops fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenStatus {
    sent: PodAutoscalerStatus,
    kept: PodAutoscalerStatus,
}

#[derive(Debug)]
pub(super) struct Attempt {
    /// What was carried out; `None` if the object or its record is gone, or not ours to write.
    pub(super) written: Option<WrittenRecord>,
    /// Whether the decision itself was not carried out, and is to be.
    pub(super) is_open: bool,
    /// What is to be tried again.
    pub(super) failure: Option<AutoscalerWriteError>,
}

impl Attempt {
    const NOTHING: Self = Self { written: None, is_open: false, failure: None };
}

impl WriterContext {
    /// Carries out what was decided on one object, unless it was already: `before` is what was carried out last.
    pub(super) async fn attempt(
        &self,
        now: Moment,
        key: &ObjectKey,
        before: Option<WrittenRecord>,
    ) -> Attempt {
        let record = self.shared.autoscalers.get(key);
        let stored = self.shared.mirrors.managed_autoscaler(key);
        let Some((record, stored)) = record.zip(stored) else {
            return Attempt::NOTHING;
        };
        let is_current = record.uid == stored.uid && record.term == self.shared.claim.term();
        if !is_current || now.since(record.decided) > LONGEST_AGE {
            return Attempt::NOTHING;
        }
        let known = before.as_ref();
        let known = known.filter(|known| known.record.decided == record.decided);
        let known = known.map(|known| known.outcome.clone());
        let (outcome, mut failure) = match known {
            Some(outcome) => (outcome, None),
            None => self.carry_out(&record, &stored, before.as_ref()).await,
        };
        let is_open = failure.is_some();
        let sent = next_status(&record, &stored.status, &outcome, record.decided.wall);
        let mut status = before.and_then(|before| before.status);
        let is_kept = (status.as_ref())
            .is_some_and(|last| (&last.sent, &last.kept) == (&sent, &stored.status));
        if sent != stored.status && !is_kept && failure.is_none() {
            let written = match self.permit(&record, 1) {
                Ok(permit) => self.api.write_status(permit, &stored, &sent).await,
                Err(error) => Err(error),
            };
            match written {
                Ok(kept) => {
                    self.requests.worked();
                    status = Some(WrittenStatus { sent, kept });
                }
                Err(error) => failure = Some(error),
            }
        }
        Attempt { written: Some(WrittenRecord { record, outcome, status }), is_open, failure }
    }

    /// Writes what was decided, and what is to be tried again.
    async fn carry_out(
        &self,
        record: &AutoscalerRecord,
        stored: &StoredAutoscaler,
        before: Option<&WrittenRecord>,
    ) -> (ScaleOutcome, Option<AutoscalerWriteError>) {
        let strategy = record.policy.as_ref().map(|policy| policy.strategy);
        let result = match (&record.verdict, strategy) {
            (AutoscalerVerdict::Decided(decision), Some(ScalingStrategy::Hpa)) => {
                match self.generate(record, stored, decision, before).await {
                    Ok(applied) => self.scale(record, decision).await.map(|_| applied),
                    Err(error) => Err(error),
                }
            }
            (AutoscalerVerdict::Decided(decision), _) => {
                match self.retire_hpa(record, stored).await {
                    Ok(()) => self.scale(record, decision).await,
                    Err(error) => Err(error),
                }
            }
            // The target was there when the object was generated, and is not read at present.
            (
                AutoscalerVerdict::Unseen { .. }
                | AutoscalerVerdict::Unread { .. }
                | AutoscalerVerdict::Uncounted { .. },
                Some(ScalingStrategy::Hpa) | None,
            ) => Ok(ScaleOutcome::NotWritten),
            (
                AutoscalerVerdict::Invalid { .. }
                | AutoscalerVerdict::Conflict(_)
                | AutoscalerVerdict::Unseen { .. }
                | AutoscalerVerdict::Unread { .. }
                | AutoscalerVerdict::Uncounted { .. },
                _,
            ) => {
                let retired = self.retire_hpa(record, stored).await;
                retired.map(|()| ScaleOutcome::NotWritten)
            }
        };
        match result {
            Ok(outcome) => (outcome, None),
            Err(AutoscalerWriteError::Foreign(why)) => (ScaleOutcome::HpaRefused { why }, None),
            // Nothing is known of the object that was not known before, and its next tick is near.
            Err(error @ (AutoscalerWriteError::Expired | AutoscalerWriteError::Outdated)) => {
                (ScaleOutcome::NotWritten, Some(error))
            }
            Err(error) if error.retry_after().is_some() => (ScaleOutcome::NotWritten, Some(error)),
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
            self.mailboxes.named.insert(target.clone());
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
        before: Option<&WrittenRecord>,
    ) -> Result<ScaleOutcome, AutoscalerWriteError> {
        let Some(hpa) = &decision.hpa else {
            return Ok(ScaleOutcome::NotWritten);
        };
        let before = before.and_then(|before| before.record.decision()?.hpa.as_ref());
        // What was left out since then is gone only once it is applied.
        let is_new = before.is_some_and(|before| before != hpa);
        let found = self.shared.mirrors.generated_hpa(stored);
        if let Some(found) = found.filter(|found| !is_new && is_in_place(found, hpa)) {
            return Ok(ScaleOutcome::HpaApplied(reported(&found)));
        }
        let permit = self.permit(record, 2)?;
        let status = self.api.apply_hpa(permit, stored, hpa, is_new).await?;
        self.requests.worked();
        Ok(ScaleOutcome::HpaApplied(status))
    }

    /// Deletes the generated object of another strategy.
    async fn retire_hpa(
        &self,
        record: &AutoscalerRecord,
        stored: &StoredAutoscaler,
    ) -> Result<(), AutoscalerWriteError> {
        let Some(found) = self.shared.mirrors.generated_hpa(stored) else {
            return Ok(());
        };
        let permit = self.permit(record, 1)?;
        self.api.delete_hpa(permit, found.metadata.clone()).await
    }

    pub(super) fn report(&self, error: &AutoscalerWriteError) {
        if let AutoscalerWriteError::Denied { .. } = error {
            self.permissions.report("Write", error);
        }
        if error.concerns_everything() {
            self.requests.failed(&error.to_string());
        }
    }
}
