//! What the emitter says besides the gauges: log lines and Kubernetes events.

use std::sync::Arc;

use super::{Emitter, labels};
use crate::cluster::event::{EventNotice, EventReason, EventType, Regarding};
use crate::metrics::UnhealthyCondition;
use crate::policy::condition::{self, ConditionReason, ConditionStatus, ConditionType};
use crate::policy::key::VariantKey;
use crate::policy::ownership::Ownership;
use crate::policy::plan::{Action, Decision, PlanStage};
use crate::policy::record::PublishedRecord;
use crate::policy::safety_net;
use crate::policy::units::Replicas;
use crate::policy::variant;
use wva_base::moment::Moment;

/// An object of the name of a variant that cannot stand for it: another one does, and it is malformed itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongNamesake {
    regarding: Regarding,
    why: Arc<str>,
}

impl Emitter {
    /// Objects that no record is made from, and that nothing else would say it of.
    pub(super) fn wrong_namesakes(&self, key: &VariantKey) -> Vec<WrongNamesake> {
        let others = self.shared.mirrors.all_managed(key).into_iter().skip(1);
        let wrong = others.filter_map(|other| {
            let why = variant::read(&other.object).err()?;
            let regarding = other.regarding();
            Some(WrongNamesake { regarding, why })
        });
        wrong.collect()
    }

    /// One event for each that was not said before.
    pub(super) fn report_namesakes(
        &mut self,
        now: Moment,
        key: VariantKey,
        wrong: Vec<WrongNamesake>,
    ) {
        let known = self.wrong.insert(key, wrong.clone()).unwrap_or_default();
        for one in wrong.into_iter().filter(|one| !known.contains(one)) {
            let reason = EventReason::Condition(ConditionReason::MalformedObject);
            let (action, note) = (ConditionType::TargetResolved.as_str(), one.why.to_string());
            let notice = EventNotice::warning(one.regarding, reason, action, note);
            self.mailboxes.events.throw(now, notice);
        }
    }

    /// One log line, one count and one event per change of a published count.
    pub(super) fn announce(
        &self,
        now: Moment,
        record: &PublishedRecord,
        decision: &Decision,
        action: Action,
    ) {
        let Some(values) = record.values else { return };
        let stage = decision.decisive().map_or(PlanStage::Base, |step| step.stage);
        self.shared.series.count_scaling(&labels(record), action, stage);
        tracing::info!(
            variant = %record.key,
            model = %decision.model,
            desired = values.desired.0,
            current = values.current.0,
            %action,
            stage = stage.as_str(),
            reason = decision.reason(),
            cycle = cycle_of(record),
            "scaling-decision"
        );
        let reason = event_reason(event_action(decision.action(), action), values.desired);
        if let Some((regarding, reason)) = self.shared.regarding(&record.key).zip(reason) {
            let note = format!(
                "Desired replicas {}: {} (cycle {})",
                values.desired,
                decision.reason(),
                cycle_of(record)
            );
            self.mailboxes.events.throw(
                now,
                EventNotice {
                    regarding,
                    severity: EventType::Normal,
                    reason,
                    action: "Scale",
                    note,
                    cycle: record.decided.cycle,
                },
            );
        }
    }

    /// One event for each trouble that begins, changes or ends.
    pub(super) fn report_troubles(
        &self,
        now: Moment,
        record: &PublishedRecord,
        previous: Option<&PublishedRecord>,
    ) {
        let conflict = condition::conflict(&record.standing)
            .filter(|_| previous.is_none_or(|previous| previous.standing != record.standing));
        for condition in record.news(previous).chain(&conflict) {
            let severity = match (condition.kind, condition.status) {
                (ConditionType::ControllerConflict, _) | (_, ConditionStatus::False) => {
                    EventType::Warning
                }
                (_, ConditionStatus::True | ConditionStatus::Unknown) => EventType::Normal,
            };
            // Several objects may claim one name, and each shows why none of them counts.
            let of_all = condition.reason == ConditionReason::MalformedObject;
            let objects = self.shared.mirrors.all_managed(&record.key).into_iter();
            for object in objects.take(if of_all { usize::MAX } else { 1 }) {
                let notice = EventNotice {
                    regarding: object.regarding(),
                    severity,
                    reason: EventReason::Condition(condition.reason),
                    action: condition.kind.as_str(),
                    note: format!("{} (cycle {})", condition.message, cycle_of(record)),
                    cycle: record.decided.cycle,
                };
                self.mailboxes.events.throw(now, notice);
            }
        }
        let conflicted = previous.is_some_and(|previous| previous.standing != Ownership::Alone);
        if conflicted && record.standing == Ownership::Alone {
            self.report_conflict_end(now, record);
        }
    }

    fn report_conflict_end(&self, now: Moment, record: &PublishedRecord) {
        let Some(regarding) = self.shared.regarding(&record.key) else {
            return;
        };
        let notice = EventNotice {
            regarding,
            severity: EventType::Normal,
            reason: EventReason::NoOtherController,
            action: ConditionType::ControllerConflict.as_str(),
            note: format!(
                "No other controller holds or publishes this variant any more (cycle {})",
                cycle_of(record)
            ),
            cycle: record.decided.cycle,
        };
        self.mailboxes.events.throw(now, notice);
    }
}

/// The original's line, once when the safety net takes over.
pub(super) fn log_safety_net(decision: &Decision) {
    let Some((target, source)) = decision.target.zip(safety_net::fallback_source(decision)) else {
        return;
    };
    tracing::warn!(
        variant = %decision.key,
        currentReplicas = decision.current.map(|current| current.0),
        desiredReplicas = target.0,
        accelerator = decision.accelerator.label(),
        fallbackSource = source.as_str(),
        reason = decision.reason(),
        "{}",
        safety_net::LOG_TEXT
    );
}

/// Once, when a variant that is to be started from zero may not.
pub(super) fn log_refused_wake(decision: &Decision) {
    tracing::warn!(
        variant = %decision.key,
        model = %decision.model,
        accelerator = decision.accelerator.label(),
        reason = decision.reason(),
        "wake-refused"
    );
}

/// The cycle that a record rests on; 0 before the first.
fn cycle_of(record: &PublishedRecord) -> u64 {
    record.decided.cycle.map_or(0, |cycle| cycle.0)
}

/// The action that events name: that of the reason, from replicas that exist. Where these stay, the published count
/// has changed.
fn event_action(of_existing: Action, of_published: Action) -> Action {
    match of_existing {
        Action::NoChange => of_published,
        action => action,
    }
}

/// How an action is called in events; a count that stays is no event.
fn event_reason(action: Action, desired: Replicas) -> Option<EventReason> {
    match action {
        Action::ScaleUp => Some(EventReason::ScaledUp),
        Action::ScaleDown if desired == Replicas::ZERO => Some(EventReason::ScaledToZero),
        Action::ScaleDown => Some(EventReason::ScaledDown),
        Action::NoChange => None,
    }
}

/// What is wrong with a variant, in the words of its conditions.
pub(super) fn troubles(record: &PublishedRecord) -> Vec<UnhealthyCondition> {
    let failing =
        record.conditions.iter().filter(|condition| condition.status == ConditionStatus::False);
    let conflict = condition::conflict(&record.standing);
    let all = failing.chain(&conflict).map(|condition| UnhealthyCondition {
        condition: condition.kind.as_str(),
        reason: condition.reason.as_str(),
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::{Action, EventReason, Replicas, event_action, event_reason};

    /// The published count rises from 2 to 3 while 5 exist: the reason speaks of a release, and so does the event.
    #[test]
    fn an_event_goes_the_way_of_its_reason() {
        let event = |of_existing, of_published, desired| {
            event_reason(event_action(of_existing, of_published), Replicas(desired))
        };
        let (up, down, same) = (Action::ScaleUp, Action::ScaleDown, Action::NoChange);
        assert_eq!(event(down, up, 3), Some(EventReason::ScaledDown));
        assert_eq!(event(up, down, 4), Some(EventReason::ScaledUp));
        assert_eq!(event(same, up, 3), Some(EventReason::ScaledUp));
        assert_eq!(event(same, down, 0), Some(EventReason::ScaledToZero));
        assert_eq!(event(same, same, 3), None);
    }
}
