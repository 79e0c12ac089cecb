//! `ControllerConflict`.

use super::{Condition, ConditionReason, ConditionStatus, ConditionType};
use crate::ownership::Ownership;
use wva_base::text::listed;

/// `ControllerConflict`, where there is one.
pub fn conflict(standing: &Ownership) -> Option<Condition> {
    let (reason, message) = match standing {
        Ownership::Alone => return None,
        Ownership::Shared => (
            ConditionReason::SecondSeries,
            "Prometheus has a second series wva_desired_replicas for this variant; find the other controller by its pod label, and give each its own CONTROLLER_INSTANCE, or uninstall one".to_owned(),
        ),
        Ownership::Behind { managers } => (
            ConditionReason::OtherController,
            format!(
                "Another controller holds this object, so this one publishes nothing for it; give each its own \
                 CONTROLLER_INSTANCE, or uninstall one. It writes as {}",
                listed(managers)
            ),
        ),
    };
    let kind = ConditionType::ControllerConflict;
    Some(Condition::new(kind, ConditionStatus::True, reason, message))
}
