//! From role targets to counts: which variants of a model gain or lose replicas.
//!
//! Every optimizer starts from the counts that the role targets were computed for, that is from the
//! replicas that exist: pending ones are in the claims already.

mod candidate;
mod contest;
mod cover;
mod fair_share;
mod feed;
mod joint;
mod shed;

use std::collections::BTreeMap;

use super::capacity::ServingRole;
use super::change::CountChange;
use super::combine::RoleTarget;
use super::key::VariantKey;
use super::reason::Method;
use super::units::Replicas;

pub(crate) use candidate::Candidate;
pub(crate) use contest::{Contender, Contest};
pub(crate) use fair_share::share;
pub(crate) use joint::ReplicaAllocation;

/// Grows a model where any of its roles needs it, else shrinks the roles that may; never both. GPUs
/// are not looked at: that is what limits are for.
pub(crate) fn cost_aware(
    candidates: &BTreeMap<VariantKey, Candidate>,
    role_targets: &BTreeMap<ServingRole, RoleTarget>,
    method: Method,
) -> ReplicaAllocation {
    let grows = role_targets.values().any(|role_target| matches!(role_target, RoleTarget::Grow(_)));
    let release = || joint::release(candidates, role_targets, method);
    if !grows {
        return release();
    }
    let mut allocation = joint::grow(candidates, role_targets, method);
    let has_waiting = (candidates.values()).any(|one| one.late.max(one.gated) > Replicas::ZERO);
    let is_at_maximum = |role: &ServingRole| {
        let mut own = candidates.values().filter(|one| one.role == *role);
        own.all(|one| one.room_above() == 0)
    };
    let grows_nothing = allocation.changes.values().all(|one| one.to == one.from)
        && allocation.unmet.keys().all(is_at_maximum)
        && (has_waiting || !allocation.unmet.is_empty());
    if grows_nothing {
        // A role that waits for late replicas alone, or is at its maximum, holds no other one back.
        let shrinks = |change: &CountChange| change.to < change.from;
        let released = release().changes.into_iter();
        (allocation.changes).extend(released.filter(|(_, change)| shrinks(change)));
    }
    allocation
}
