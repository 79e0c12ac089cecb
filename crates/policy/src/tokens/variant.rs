//! Supply and demand of one variant.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bound::{CapacityReason, derived_from, median};
use super::history::EngineKey;
use super::input::{TokenModelInput, TokenVariantInput};
use super::instance::{InstanceFigures, Missing, Surroundings, measure};
use super::learned::{CapacityRecord, LearnedTokens};
use super::workload::MeanWorkload;
use crate::by_name::ByName;
use crate::capacity::{ServingRole, VariantCapacity};
use crate::engine_args::{EngineArgs, KvTokens, StepTokens};
use crate::key::{ModelKey, VariantKey};
use crate::units::Replicas;
use wva_base::moment::Moment;

/// Figures of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenVariantFigures {
    /// The part of a request that it serves.
    pub role: ServingRole,
    /// Its engine and hardware, as its object and its scale target state them.
    pub engine: EngineKey,
    /// The arguments of its engine.
    pub args: Option<EngineArgs>,
    /// Tokens that its engine computes in one step; no capacity by itself.
    pub step_budget: Option<StepTokens>,
    /// Replicas that serve.
    pub ready: Replicas,
    /// Replicas on their way up.
    pub pending: Replicas,
    /// Its instances that report.
    pub instances: ByName<InstanceFigures>,
    /// Instances of ready replicas that do not report.
    pub silent: u32,
    /// Instances that supply: those that report; where none does, those that the ready replicas have.
    pub count: u32,
    /// Instances of one replica.
    pub ranks: u32,
    /// Instances on their way up.
    pub pending_instances: u32,
    /// Capacity of one instance; absent where nothing is known of it.
    pub per_instance: Option<KvTokens>,
    /// Where it comes from.
    pub reason: CapacityReason,
    /// What it cannot be shown to exceed, where signals are missing that were known before.
    pub upper_bound: Option<KvTokens>,
    /// What is known without a report, where there is none.
    pub idle: Option<IdleFigures>,
    /// Whether what is remembered of it is old, or nothing is.
    pub is_stale: bool,
    /// What the instances that supply can hold.
    pub supply: KvTokens,
    /// What all instances can hold, silent and pending ones included.
    pub anticipated: KvTokens,
    /// What the reporting instances are asked to hold.
    pub demand: KvTokens,
    /// Whether that is all of it; otherwise it is at least so much.
    pub is_demand_known: bool,
}

impl TokenVariantFigures {
    pub(super) fn is_capacity_known(&self) -> bool {
        let mut instances = self.instances.values();
        self.silent == 0 && instances.all(|instance| instance.missing.is_empty())
    }

    /// Instances whose demand is not known, with the first signal that each of them does not give.
    pub fn lacking<'a>(
        &'a self,
        input: &'a TokenVariantInput,
    ) -> impl Iterator<Item = (&'a Arc<str>, Missing)> {
        let instances = input.instances.iter();
        instances.filter_map(|(name, said)| {
            let signal = match self.instances.get(name) {
                Some(figures) => figures.lacking(self.role)?,
                // Not measured: it says nothing, or not how large its cache is.
                None if said.kv_usage.is_none() => Missing::KvUsage,
                None if said.waiting.is_none() => Missing::Waiting,
                None => Missing::KvCapacity,
            };
            Some((name, signal))
        })
    }

    /// The supply in replicas. Ready replicas that are silent count as pending; a replica some of
    /// whose ranks are silent does too.
    pub fn capacity(&self) -> Option<VariantCapacity> {
        let per_instance = self.per_instance?;
        let all = self.ready.plus(self.pending);
        let ready = Replicas((self.count / self.ranks.max(1)).min(all.0));
        Some(VariantCapacity {
            role: self.role,
            per_replica: per_instance.times(self.ranks).0,
            ready,
            pending: all.saturating_sub(ready),
        })
    }
}

/// Everything that is known without a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleFigures {
    /// What one instance of the variant could hold when it last reported; final.
    pub own: Option<KvTokens>,
    /// From arguments and the model's mean request.
    pub derived: Option<KvTokens>,
    /// The usable share of a KV cache whose size the arguments fix.
    pub by_size: Option<KvTokens>,
    /// What an engine like it could hold when it last reported.
    pub compatible: Option<KvTokens>,
    /// Instances of one replica, as they were when it or an engine like it last reported, else as its
    /// arguments say.
    pub ranks: u32,
}

impl IdleFigures {
    fn of(around: &Surroundings<'_>, record: Option<&CapacityRecord>) -> Self {
        let args = around.variant.engine.as_ref();
        let request = around.workload.input_tokens.unwrap_or(0.0);
        let answer = around.workload.output_tokens.unwrap_or(0.0);
        let compatible = around.learned.compatible(&around.engine.likeness(args));
        Self {
            own: record.map(|record| record.capacity),
            derived: derived_from(args, request, answer),
            by_size: args
                .and_then(EngineArgs::kv_capacity)
                .map(|size| size.share(around.thresholds.kv_cache_threshold)),
            compatible: compatible.map(|exemplar| exemplar.capacity),
            ranks: record
                .map(|record| record.ranks)
                .or_else(|| compatible.map(|exemplar| exemplar.ranks))
                .or_else(|| args.map(|args| args.data_parallel_size))
                .unwrap_or(1)
                .max(1),
        }
    }

    /// The capacity of one instance: its own, else the least of the others; `None` if there is none.
    pub fn capacity(&self) -> Option<KvTokens> {
        let others = [self.derived, self.by_size, self.compatible];
        let least = || others.into_iter().flatten().reduce(KvTokens::min);
        self.own.or_else(least).filter(|tokens| tokens.is_some())
    }
}

pub(super) fn measure_all(
    model: &ModelKey,
    (input, workload): (&TokenModelInput, MeanWorkload),
    learned: &LearnedTokens,
    now: Moment,
) -> BTreeMap<VariantKey, TokenVariantFigures> {
    let figures =
        input.variants.iter().map(|(key, variant)| {
            let engine = EngineKey::of(model, variant);
            let history = learned.history(&engine, variant.role);
            let record = learned.record(model, key, &engine);
            let around = Surroundings {
                variant,
                engine: &engine,
                thresholds: &input.thresholds,
                workload,
                learned,
                history: &history,
                remembered: record.map(|record| record.total),
                trust: learned.trust(model, variant.role, now),
            };
            let mut instances = Vec::with_capacity(variant.instances.len());
            instances.extend(variant.instances.iter().filter_map(|(name, instance)| {
                Some((Arc::clone(name), measure(instance, &around)?))
            }));
            let instances = instances.into_iter().collect();
            let is_stale = record.is_none_or(|record| record.is_stale(now));
            let bound = record.and_then(|record| record.upper_bound(now));
            let idle = || IdleFigures::of(&around, record);
            let figures = figures(variant, engine.clone(), instances, bound, is_stale, idle);
            (key.clone(), figures)
        });
    figures.collect()
}

/// Instances of one replica: as many as its pods have, by their names, and no fewer than report on average. The average
/// alone takes two ranks next to a silent replica for two replicas.
fn ranks(variant: &TokenVariantInput, reporting: u32) -> u32 {
    // Those of one pod follow each other.
    let (mut of_pod, mut run, mut previous) = (1, 0, None);
    for name in variant.instances.keys() {
        let pod = name.split_once(':').map_or(&**name, |(pod, _)| pod);
        run = if previous == Some(pod) { run + 1 } else { 1 };
        (of_pod, previous) = (run.max(of_pod), Some(pod));
    }
    let on_average = reporting.checked_div(variant.ready.0).unwrap_or(1);
    of_pod.max(on_average).max(1)
}

/// Capacity of one instance, what it rests on, and what follows from it.
fn figures(
    variant: &TokenVariantInput,
    engine: EngineKey,
    instances: ByName<InstanceFigures>,
    bound: Option<KvTokens>,
    is_stale: bool,
    idle: impl FnOnce() -> IdleFigures,
) -> TokenVariantFigures {
    let reporting = count(instances.len());
    let ranks = ranks(variant, reporting);
    let named = count(variant.instances.len()).saturating_sub(reporting);
    let ready = variant.ready.0.saturating_mul(ranks);
    let silent = named.max(ready.saturating_sub(reporting));
    let is_known = silent == 0 && instances.values().all(|instance| instance.missing.is_empty());
    let capacities = instances.values();
    let middle = median(capacities.map(|instance| (instance.capacity, instance.k2_source)));
    let idle = middle.is_none().then(idle);
    let upper_bound = bound.filter(|_| middle.is_some() && !is_known);
    let (per_instance, reason) = match (middle, idle.and_then(|idle| idle.capacity())) {
        (Some((middle, reason)), _) => {
            let capacity = upper_bound.map_or(middle, |bound| bound.min(middle));
            (capacity.is_some().then_some(capacity), reason)
        }
        (None, Some(capacity)) => (Some(capacity), CapacityReason::Stored),
        (None, None) => (None, CapacityReason::NoData),
    };
    let ranks = idle.map_or(ranks, |idle| idle.ranks);
    let ready = variant.ready.0.saturating_mul(ranks);
    let supplying = if reporting > 0 { reporting } else { ready };
    let pending_instances = variant.pending.0.saturating_mul(ranks);
    let all = ready.max(supplying).saturating_add(pending_instances);
    let each = per_instance.unwrap_or(KvTokens::ZERO);
    let lacks = |instance: &InstanceFigures| instance.lacking(variant.role).is_some();
    TokenVariantFigures {
        role: variant.role,
        engine,
        args: variant.engine.clone(),
        step_budget: variant.engine.as_ref().map(EngineArgs::step_budget),
        ready: variant.ready,
        pending: variant.pending,
        silent,
        count: supplying,
        ranks,
        pending_instances,
        per_instance,
        reason,
        upper_bound,
        idle,
        is_stale,
        supply: each.times(supplying),
        anticipated: each.times(all),
        demand: instances.values().map(|instance| instance.demand).sum(),
        is_demand_known: silent == 0 && !instances.values().any(lacks),
        instances,
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
