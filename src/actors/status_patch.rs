//! From a record to the status that is stored.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::condition;
use crate::api::variant_autoscaling::{OptimizedAlloc, VariantAutoscalingStatus};
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::status::{CountPatch, StatusPatch};
use crate::policy::condition as judged;
use crate::policy::ownership::{Holding, Ownership, StatusOwner};
use crate::policy::record::{AllocationStatus, PublishedRecord};
use wva_base::moment::WallTime;

/// What a status that is stored differs in from the one that should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusDifference {
    /// In replicas, accelerator, a condition's status or reason, or the generation of the object.
    Essence,
    /// In the words of a condition alone: who else claims the target, what is waited for.
    Words,
}

/// The patch that makes an object show a record, and what it changes; `None` if the object shows it
/// already, or the record was made from another one of this name.
pub(crate) fn patch(
    record: &PublishedRecord,
    object: &VariantRecord,
    manager: &str,
    now: WallTime,
) -> Option<(StatusPatch, StatusDifference)> {
    if record.uid != object.object.uid {
        return None;
    }
    let stored = &object.status;
    let conflict = judged::conflict(&record.standing);
    let ours: Vec<_> = match record.standing {
        Ownership::Behind { .. } => conflict.into_iter().collect(),
        Ownership::Alone | Ownership::Shared => {
            // The column Reason shows the first condition that is not True, so what explains Ready comes first.
            let [target, metrics, optimization, actuation, ready] = record.conditions.clone();
            let ordered = [ready, actuation, target, metrics, optimization];
            ordered.into_iter().chain(conflict).collect()
        }
    };
    let conditions = condition::merge(&stored.conditions, &ours, record.generation, now);
    if let Ownership::Behind { .. } = record.standing {
        return report(record, object, conditions);
    }
    let allocation = match record.allocation {
        AllocationStatus::Kept => stored.desired_optimized_alloc.clone(),
        AllocationStatus::Written | AllocationStatus::Cleared => decided(record),
    };
    let essence = |allocation: Option<&OptimizedAlloc>| {
        allocation.map(|known| (known.num_replicas, known.accelerator.clone()))
    };
    let before =
        stored.desired_optimized_alloc.as_ref().filter(|known| known.num_replicas.is_some());
    let after = allocation.as_ref().filter(|known| known.num_replicas.is_some());
    let same = essence(before) == essence(after)
        && stored.observed_generation == Some(record.generation)
        && !condition::differ(&stored.conditions, &conditions)
        && !has_lapsed(record, object, manager)
        && stale_reports(object, manager, now).next().is_none();
    // What an earlier life of the controller decided stays until this one has decided, unless there
    // is nothing to decide on.
    let awaits = record.awaits_decision()
        && record.allocation != AllocationStatus::Cleared
        && !stored.conditions.is_empty();
    let difference = match same {
        false => StatusDifference::Essence,
        true if condition::reworded(&stored.conditions, &conditions) => StatusDifference::Words,
        true => return None,
    };
    if awaits {
        return None;
    }
    let status = VariantAutoscalingStatus {
        observed_generation: Some(record.generation),
        desired_optimized_alloc: allocation,
        // Whether a count is applied changes without a decision, and a status that is written on
        // decisions only would show it wrongly.
        actuation: None,
        conditions,
    };
    Some((stored_as(object, record, status), difference))
}

/// The count that a scaler is to hold that declares its variant, where it holds another one. What cannot be read, and
/// what is not decided yet or was for another object of this name, changes nothing.
pub(crate) fn count(record: &PublishedRecord, object: &VariantRecord) -> Option<CountPatch> {
    let kind = object.declared_by?;
    if record.uid != object.object.uid {
        return None;
    }
    let desired = match record.allocation {
        AllocationStatus::Kept => return None,
        AllocationStatus::Written if record.awaits_decision() => return None,
        AllocationStatus::Written | AllocationStatus::Cleared => {
            record.values.map(|values| values.desired)
        }
    };
    (desired != object.object.stored.desired).then(|| CountPatch {
        kind,
        key: record.key.clone(),
        uid: Arc::clone(&object.object.uid),
        resource_version: Arc::clone(&object.resource_version),
        desired,
    })
}

/// Age of another controller's word that we hold the object, from which it is taken back for it. One
/// that lives says it again.
const REPORT_AGE: Duration = Duration::from_mins(10);

/// Controllers that hold nothing but an old report that another one publishes.
pub(crate) fn stale_reports<'a>(
    object: &'a VariantRecord,
    manager: &'a str,
    now: WallTime,
) -> impl Iterator<Item = &'a StatusOwner> {
    object.owners.iter().filter(move |owner| {
        owner.holds == Holding::Nothing
            && &*owner.manager != manager
            && now.since(owner.written) > REPORT_AGE
    })
}

/// Whether we say that there is a conflict, and there is none any more.
fn has_lapsed(record: &PublishedRecord, object: &VariantRecord, manager: &str) -> bool {
    let says = |owner: &StatusOwner| owner.reports && &*owner.manager == manager;
    record.standing == Ownership::Alone && object.owners.iter().any(says)
}

/// All that is written of an object that another controller holds: that it does.
fn report(
    record: &PublishedRecord,
    object: &VariantRecord,
    conditions: Vec<Condition>,
) -> Option<(StatusPatch, StatusDifference)> {
    if !condition::differ(&object.status.conditions, &conditions) {
        return None;
    }
    let status = VariantAutoscalingStatus { conditions, ..VariantAutoscalingStatus::default() };
    Some((stored_as(object, record, status), StatusDifference::Essence))
}

/// The patch of an object as it was last seen.
fn stored_as(
    object: &VariantRecord,
    record: &PublishedRecord,
    status: VariantAutoscalingStatus,
) -> StatusPatch {
    StatusPatch {
        key: record.key.clone(),
        uid: Arc::clone(&object.object.uid),
        resource_version: Arc::clone(&object.resource_version),
        status,
    }
}

fn decided(record: &PublishedRecord) -> Option<OptimizedAlloc> {
    record.values.map(|values| OptimizedAlloc {
        num_replicas: Some(values.desired.to_count()),
        accelerator: Some(record.accelerator.label().to_owned()),
        last_run_time: Some(condition::time(record.decided.at)),
        cycle_id: record.decided.cycle.and_then(|cycle| i64::try_from(cycle.0).ok()),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{StatusDifference, StatusPatch};
    use crate::api::variant_autoscaling::VariantAutoscalingStatus;
    use crate::cluster::project::variant::VariantRecord;
    use crate::policy::accelerator::Accelerator;
    use crate::policy::condition::{Condition, ConditionReason, ConditionStatus, ConditionType};
    use crate::policy::key::VariantKey;
    use crate::policy::object::{Lifecycle, SpecReading, StoredAllocation, VariantObject};
    use crate::policy::ownership::Ownership;
    use crate::policy::params::ActuationMode;
    use crate::policy::record::{AllocationStatus, Decided, GaugeValues, PublishedRecord};
    use crate::policy::snapshot::CycleId;
    use crate::policy::units::Replicas;
    use wva_base::moment::WallTime;

    fn object(status: VariantAutoscalingStatus) -> VariantRecord {
        VariantRecord {
            declared_by: None,
            object: VariantObject {
                key: VariantKey::new("ns", "va"),
                uid: Arc::from("uid"),
                generation: 4,
                lifecycle: Lifecycle::Live,
                accelerator_label: None,
                spec: SpecReading::Malformed { why: Arc::from("not read here") },
                stored: StoredAllocation::default(),
            },
            instance: None,
            resource_version: Arc::from("17"),
            created: WallTime(0),
            owners: Arc::from([]),
            status,
        }
    }

    fn record(desired: Option<u32>, status: ConditionStatus) -> PublishedRecord {
        let condition = |kind| Condition {
            kind,
            status,
            reason: ConditionReason::TargetFound,
            message: "as found".to_owned(),
        };
        PublishedRecord {
            key: VariantKey::new("ns", "va"),
            uid: Arc::from("uid"),
            accelerator: Accelerator::Named(Arc::from("H100")),
            generation: 4,
            actuation: ActuationMode::default(),
            outcome: None,
            target: None,
            allocation: if desired.is_some() {
                AllocationStatus::Written
            } else {
                AllocationStatus::Cleared
            },
            values: desired.map(|desired| GaugeValues {
                desired: Replicas(desired),
                current: Replicas(2),
                ratio: 1.0,
            }),
            conditions: [
                condition(ConditionType::TargetResolved),
                condition(ConditionType::MetricsAvailable),
                condition(ConditionType::OptimizationReady),
                condition(ConditionType::ActuationReady),
                condition(ConditionType::Ready),
            ],
            decided: Decided { cycle: Some(CycleId(9)), at: WallTime(5_000) },
            outlived: None,
            standing: Ownership::Alone,
        }
    }

    fn patch(
        record: &PublishedRecord,
        object: &VariantRecord,
        now: WallTime,
    ) -> Option<StatusPatch> {
        super::patch(record, object, "wva-me", now).map(|(patch, _)| patch)
    }

    const NOW: WallTime = WallTime(60_000);

    #[test]
    fn a_first_record_is_written_with_everything_and_an_equal_one_is_not() {
        let first = patch(
            &record(Some(3), ConditionStatus::True),
            &object(VariantAutoscalingStatus::default()),
            NOW,
        );
        let first = first.unwrap();
        assert_eq!((&*first.uid, &*first.resource_version), ("uid", "17"));
        assert_eq!(first.status.observed_generation, Some(4));
        let allocation = first.status.desired_optimized_alloc.clone().unwrap();
        assert_eq!((allocation.num_replicas, allocation.cycle_id), (Some(3), Some(9)));
        let kinds = first.status.conditions.iter().map(|one| &*one.type_);
        let kinds: Vec<&str> = kinds.collect();
        assert_eq!(
            kinds,
            ["Ready", "ActuationReady", "TargetResolved", "MetricsAvailable", "OptimizationReady"]
        );
        assert_eq!(first.status.actuation, None);

        let stored = object(first.status);
        assert_eq!(patch(&record(Some(3), ConditionStatus::True), &stored, NOW), None);
        let mut reworded = record(Some(3), ConditionStatus::True);
        reworded.conditions[4].message = "in other words".to_owned();
        let (patch, difference) = super::patch(&reworded, &stored, "wva-me", NOW).unwrap();
        assert_eq!(difference, StatusDifference::Words);
        assert_eq!(patch.status.conditions[0].message, "in other words");
        let time = |patch: &StatusPatch| patch.status.conditions[0].last_transition_time.clone();
        assert_eq!(time(&patch).0.as_second(), 60, "the condition did not change");
    }

    #[test]
    fn another_count_accelerator_or_condition_is_a_difference_and_nothing_to_scale_clears() {
        let stored = patch(
            &record(Some(3), ConditionStatus::True),
            &object(VariantAutoscalingStatus::default()),
            NOW,
        );
        let stored = object(stored.unwrap().status);
        let count = patch(&record(Some(2), ConditionStatus::True), &stored, NOW).unwrap();
        assert_eq!(count.status.desired_optimized_alloc.unwrap().num_replicas, Some(2));
        assert!(patch(&record(Some(3), ConditionStatus::False), &stored, NOW).is_some());
        let mut moved = record(Some(3), ConditionStatus::True);
        moved.accelerator = Accelerator::Unresolved;
        assert!(patch(&moved, &stored, NOW).is_some());

        let cleared = patch(&record(None, ConditionStatus::True), &stored, NOW).unwrap();
        assert_eq!(cleared.status.desired_optimized_alloc, None);
        let cleared = object(cleared.status);
        assert_eq!(patch(&record(None, ConditionStatus::True), &cleared, NOW), None);
    }

    #[test]
    fn what_cannot_be_read_keeps_the_stored_allocation() {
        let empty = object(VariantAutoscalingStatus::default());
        let stored = patch(&record(Some(7), ConditionStatus::True), &empty, NOW);
        let stored = object(stored.unwrap().status);
        let unseen = PublishedRecord {
            allocation: AllocationStatus::Kept,
            ..record(None, ConditionStatus::False)
        };
        let written = patch(&unseen, &stored, NOW).unwrap();
        assert_eq!(written.status.desired_optimized_alloc, stored.status.desired_optimized_alloc);
    }

    #[test]
    fn another_generation_is_a_difference_and_a_pending_decision_waits() {
        let empty = object(VariantAutoscalingStatus::default());
        let stored = patch(&record(Some(3), ConditionStatus::True), &empty, NOW);
        let stored = object(stored.unwrap().status);
        let edited = PublishedRecord { generation: 5, ..record(Some(3), ConditionStatus::True) };
        let written = patch(&edited, &stored, NOW).unwrap();
        assert_eq!(written.status.observed_generation, Some(5));

        let mut awaiting = record(Some(3), ConditionStatus::Unknown);
        awaiting.conditions[3].reason = ConditionReason::AwaitingFirstDecision;
        assert_eq!(patch(&awaiting, &stored, NOW), None);
        assert!(patch(&awaiting, &empty, NOW).is_some());
    }
}
