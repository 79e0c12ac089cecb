//! What is published about one variant. Gauge, status and conditions are made from one record, so
//! they cannot disagree.

use std::sync::Arc;

use serde::Serialize;

use super::accelerator::Accelerator;
use super::condition::{
    Condition, ConditionReason, ConditionStatus, ConditionType, Conditions, Hints, conditions,
};
use super::key::{TargetKey, VariantKey};
use super::ownership::Ownership;
use super::params::ActuationMode;
use super::plan::{Action, Decision, DecisionOutcome, Plan};
use super::series::VariantGauges;
use super::snapshot::{CycleId, TargetView, VariantView};
use super::units::Replicas;
use wva_base::moment::{Moment, WallTime};

/// What is wrong with the controller's own handling of a variant.
#[derive(Debug, Clone, Default)]
pub struct Troubles<'a> {
    /// Why the variant's own actor keeps failing, if it does: then the record rests on the last view
    /// that it published.
    pub quarantine: Option<&'a str>,
    /// What is known of the causes of other troubles.
    pub hints: Hints<'a>,
    /// How this controller stands towards others.
    pub standing: Ownership,
}

/// The published state of one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRecord {
    /// The variant.
    pub key: VariantKey,
    /// Unique id of the object that it was made from.
    pub uid: Arc<str>,
    /// Its accelerator, the value of the `accelerator_type` label.
    pub accelerator: Accelerator,
    /// Generation of the object that it was made from.
    pub generation: i64,
    /// What its gauges show; `None` if there is nothing to show.
    pub values: Option<GaugeValues>,
    /// What becomes of the stored allocation where there are no values.
    pub allocation: AllocationStatus,
    /// Its conditions.
    pub conditions: Conditions,
    /// How this controller stands towards others that claim the object.
    pub standing: Ownership,
    /// Who writes the count of its target.
    pub actuation: ActuationMode,
    /// How the count came about; `None` before a cycle has decided.
    pub outcome: Option<DecisionOutcome>,
    /// The target that it is for, the last one where that is not resolved now.
    pub target: Option<TargetKey>,
    /// The cycle and time of the last change of anything above that status shows.
    pub decided: Decided,
    /// The cycle that was the newest when the gauges were last taken down. What it and those before
    /// decided was about a target that is gone.
    pub outlived: Option<CycleId>,
}

/// What becomes of the allocation in the status of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum AllocationStatus {
    /// It is written from the values.
    Written,
    /// It stays as it is stored: the target, or the object itself, cannot be read now, and what
    /// cannot be read lowers nothing.
    Kept,
    /// It is removed: there is nothing to scale.
    Cleared,
}

/// Values of the gauges.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GaugeValues {
    /// `wva_desired_replicas`.
    pub desired: Replicas,
    /// `wva_current_replicas`.
    pub current: Replicas,
    /// `wva_desired_ratio`.
    pub ratio: f64,
}

/// When a record last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// The planning cycle; `None` before the first.
    pub cycle: Option<CycleId>,
    /// Wall-clock time.
    pub at: WallTime,
}

impl PublishedRecord {
    /// The record of a variant as it is now. `plan` is the newest plan; a decision that was made on
    /// another state of the target than the view's is not used.
    pub fn of(
        view: &VariantView,
        plan: Option<&Plan>,
        previous: Option<&Self>,
        troubles: Troubles<'_>,
        now: Moment,
    ) -> Self {
        let Troubles { quarantine, hints, standing } = troubles;
        // Of another object with this name nothing goes on.
        let previous = previous.filter(|previous| previous.uid == view.uid);
        let is_resolved = view.target.resolved().is_some();
        let target = view.target.resolved().map(|target| target.key.clone());
        let known = previous.and_then(|previous| previous.target.clone());
        let is_replaced =
            (target.as_ref().zip(known.as_ref())).is_some_and(|(one, other)| one != other);
        let outlived = if view.target.is_unmanaged() || is_replaced {
            plan.map(|plan| plan.cycle)
        } else {
            previous.and_then(|previous| previous.outlived)
        };
        let decision = plan
            .filter(|plan| !is_resolved || outlived.is_none_or(|cycle| plan.cycle > cycle))
            .and_then(|plan| plan.decisions.get(&view.key))
            .filter(|decision| decision.uid == view.uid)
            .filter(|decision| decision.current.is_some() == is_resolved);
        let is_behind = matches!(standing, Ownership::Behind { .. });
        let values = values(view, decision, previous).filter(|_| !is_behind);
        let record = Self {
            key: view.key.clone(),
            uid: Arc::clone(&view.uid),
            accelerator: view.accelerator.clone(),
            generation: view.generation,
            allocation: if is_behind { AllocationStatus::Kept } else { allocation(view, values) },
            values,
            conditions: conditions(view, decision, hints)
                .map(|condition| match quarantine {
                    Some(why) => condition.quarantined(why),
                    None => condition,
                })
                .map(|condition| as_before(condition, previous)),
            standing,
            actuation: decision.map_or_else(ActuationMode::default, |decision| decision.actuation),
            outcome: decision.map(|decision| decision.outcome),
            target: target.or(known),
            decided: Decided { cycle: plan.map(|plan| plan.cycle), at: now.wall },
            outlived,
        };
        match previous {
            Some(previous) if record.shows_the_same_status_as(previous) => {
                Self { decided: previous.decided, ..record }
            }
            _ => record,
        }
    }

    /// Direction of the change from the count published before, if there was one and it changed.
    pub fn change_from(&self, previous: Option<&Self>) -> Option<Action> {
        let before = previous.filter(|previous| previous.uid == self.uid)?;
        let before = before.values?.desired;
        let after = self.values?.desired;
        match after.cmp(&before) {
            std::cmp::Ordering::Greater => Some(Action::ScaleUp),
            std::cmp::Ordering::Less => Some(Action::ScaleDown),
            std::cmp::Ordering::Equal => None,
        }
    }

    /// Conditions that show trouble or its end: those that became false, or false for another
    /// reason, and those that became true again. `OptimizationReady` follows from metrics and target,
    /// and `Ready` from all.
    pub fn news<'a>(&'a self, previous: Option<&'a Self>) -> impl Iterator<Item = &'a Condition> {
        self.conditions.iter().filter(move |condition| {
            let before = previous
                .and_then(|record| record.conditions.iter().find(|one| one.kind == condition.kind));
            let was_false = before.is_some_and(|one| one.status == ConditionStatus::False);
            let is_news = match condition.status {
                ConditionStatus::False => {
                    !was_false || before.is_some_and(|one| one.reason != condition.reason)
                }
                ConditionStatus::True => was_false,
                ConditionStatus::Unknown => false,
            };
            let follows =
                matches!(condition.kind, ConditionType::OptimizationReady | ConditionType::Ready);
            is_news && !follows
        })
    }

    /// Whether no cycle of this process has looked at the variant yet.
    pub fn awaits_decision(&self) -> bool {
        self.conditions
            .iter()
            .any(|condition| condition.reason == ConditionReason::AwaitingFirstDecision)
    }

    /// Whether replicas, accelerator and every condition's status and reason are the same. Messages
    /// are not compared: one that changes alone is not worth a write.
    fn shows_the_same_status_as(&self, other: &Self) -> bool {
        let desired = |record: &Self| record.values.map(|values| values.desired);
        let essence = |record: &Self| {
            record
                .conditions
                .each_ref()
                .map(|condition| (condition.kind, condition.status, condition.reason))
        };
        self.accelerator == other.accelerator
            && self.standing == other.standing
            && desired(self) == desired(other)
            && essence(self) == essence(other)
    }
}

/// In the words of the previous record, where they mean the same.
fn as_before(condition: Condition, previous: Option<&PublishedRecord>) -> Condition {
    let mut known = previous.into_iter().flat_map(|record| &record.conditions);
    match known.find(|known| known.kind == condition.kind) {
        Some(known) => condition.in_words_of(known),
        None => condition,
    }
}

fn allocation(view: &VariantView, values: Option<GaugeValues>) -> AllocationStatus {
    match (&view.target, values) {
        (TargetView::Unknown { .. } | TargetView::Malformed { .. }, _) => AllocationStatus::Kept,
        (_, Some(_)) => AllocationStatus::Written,
        (_, None) => AllocationStatus::Cleared,
    }
}

fn values(
    view: &VariantView,
    decision: Option<&Decision>,
    previous: Option<&PublishedRecord>,
) -> Option<GaugeValues> {
    let series = match (&view.target, decision) {
        (TargetView::Resolved(_), Some(decision)) => VariantGauges::of(decision),
        (TargetView::Resolved(_), None) => VariantGauges::before_first_plan(view),
        // What was shown stays while the target, or the object itself, cannot be read.
        (TargetView::Unknown { .. } | TargetView::Malformed { .. }, _) => {
            return previous.and_then(|previous| previous.values);
        }
        (
            TargetView::NotFound { .. }
            | TargetView::Contested { .. }
            | TargetView::UnsupportedKind { .. },
            _,
        ) => None,
    }?;
    let current = view.target.resolved().map(|target| target.current).or(series.current)?;
    let ratio = VariantGauges { current: Some(current), ..series }.ratio()?;
    Some(GaugeValues { desired: series.desired, current, ratio })
}
