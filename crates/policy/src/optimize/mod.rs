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
use super::reason::{Method, WantedAmount};
use super::units::Replicas;

pub(crate) use candidate::Candidate;
pub(crate) use contest::{Contender, Contest};
pub(crate) use fair_share::share;

/// Steps of one search for the least cost; beyond them the best answer so far stands.
pub(crate) const SEARCH_EFFORT: u32 = 20_000;

/// Variants of one role that a search considers, the best ones by what they cost for their capacity.
pub(crate) const SEARCH_WIDTH: usize = 24;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ReplicaAllocation {
    /// One change for every candidate, also where its count stays.
    pub changes: BTreeMap<VariantKey, CountChange>,
    /// What could not be had, by role.
    pub unmet: BTreeMap<ServingRole, Vec<WantedAmount>>,
}

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
