//! What competes for GPUs, and what it would take if nothing else did.

use std::collections::BTreeMap;

use super::candidate::Candidate;
use super::joint;
use crate::accelerator::Accelerator;
use crate::capacity::ServingRole;
use crate::combine::RoleTarget;
use crate::gpu::{GpuCount, GpuPools};
use crate::key::VariantKey;
use crate::reason::Method;
use crate::units::{Gpus, Replicas};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contender {
    pub candidate: Candidate,
    pub accelerator: Accelerator,
    /// GPUs of one replica; none counts as one.
    pub gpus: Gpus,
    /// Whether these are all.
    pub gpu_count: GpuCount,
    /// Replicas beyond those that stand whose GPUs it has already.
    pub reserved: Replicas,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contest {
    pub priority: f64,
    pub contenders: BTreeMap<VariantKey, Contender>,
    pub role_targets: BTreeMap<ServingRole, RoleTarget>,
}

impl Contest {
    /// How many replicas of each variant a model would add at the least cost if all that is free were its own.
    pub(super) fn cheapest(&self, pools: &GpuPools) -> BTreeMap<VariantKey, u32> {
        let standing = |candidate: &Candidate| candidate.standing.max(candidate.count);
        let within = |(key, contender): (&VariantKey, &Contender)| {
            let mut candidate = contender.candidate.clone();
            let (own, more) = contender.affordable(key, candidate.room_above(), 0, pools);
            let most = standing(&candidate).plus(own).plus(more);
            candidate.bounds.max = Some(candidate.bounds.max.map_or(most, |max| max.min(most)));
            (key.clone(), candidate)
        };
        let candidates = self.contenders.iter().map(within).collect();
        let grown = joint::grow(&candidates, &self.role_targets, Method::LeastCost);
        let added = candidates.iter().filter_map(|(key, candidate)| {
            let change = grown.changes.get(key)?;
            Some((key.clone(), change.to.saturating_sub(standing(candidate)).0))
        });
        added.collect()
    }
}

impl Contender {
    /// Of so many further replicas those that have their GPUs, where `added` took of these before, and those that GPUs
    /// are left for.
    pub(super) fn affordable(
        &self,
        key: &VariantKey,
        wanted: u32,
        added: u32,
        pools: &GpuPools,
    ) -> (Replicas, Replicas) {
        let wanted = Replicas(wanted);
        let own = wanted.min(self.reserved.saturating_sub(Replicas(added)));
        let per_replica = self.gpus.at_least_one();
        let more = per_replica.times(wanted.saturating_sub(own));
        let left = (self.gpu_count).within(pools.budget(&key.namespace, &self.accelerator));
        (own, left.grant(more).replicas(per_replica))
    }
}
