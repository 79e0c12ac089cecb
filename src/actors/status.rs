//! From a record to the status that is stored.

use std::sync::Arc;

use crate::api::condition;
use crate::api::variant_autoscaling::{Actuation, OptimizedAlloc, VariantAutoscalingStatus};
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::status::StatusPatch;
use crate::policy::moment::WallTime;
use crate::policy::record::Record;

/// The patch that makes an object show a record; `None` if it shows it already. Only replicas,
/// accelerator and a condition's status or reason count as a difference.
pub fn patch(record: &Record, object: &VariantRecord, now: WallTime) -> Option<StatusPatch> {
    let stored = &object.status;
    let conditions = condition::merge(
        &stored.conditions,
        &record.conditions,
        object.object.generation,
        now,
    );
    let allocation = record.values.map(|values| OptimizedAlloc {
        num_replicas: Some(values.desired.to_count()),
        accelerator: Some(record.accelerator.label().to_owned()),
        last_run_time: Some(condition::time(record.decided.at)),
        cycle_id: record
            .decided
            .cycle
            .and_then(|cycle| i64::try_from(cycle.0).ok()),
    });
    let essence = |allocation: Option<&OptimizedAlloc>| {
        allocation.map(|known| (known.num_replicas, known.accelerator.clone()))
    };
    let before = stored
        .desired_optimized_alloc
        .as_ref()
        .filter(|known| known.num_replicas.is_some());
    let same = essence(before) == essence(allocation.as_ref())
        && !condition::differ(&stored.conditions, &conditions);
    if same {
        return None;
    }
    // The replicas that exist are the ones that were published.
    let applied = record
        .values
        .is_some_and(|values| values.desired == values.current);
    Some(StatusPatch {
        key: record.key.clone(),
        uid: Arc::clone(&object.object.uid),
        resource_version: Arc::clone(&object.resource_version),
        status: VariantAutoscalingStatus {
            observed_generation: Some(object.object.generation),
            desired_optimized_alloc: allocation,
            actuation: Some(Actuation { applied }),
            conditions,
        },
    })
}
