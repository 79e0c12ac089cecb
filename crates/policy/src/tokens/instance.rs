//! Capacity and demand of one engine instance.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::bound::{CapacityReason, derived_from};
use super::history::{EngineKey, HistoryKey};
use super::input::{ABSURD, InstanceInput, TokenVariantInput};
use super::learned::{LearnedTokens, Trust};
use super::workload::MeanWorkload;
use crate::capacity::ServingRole;
use crate::engine_args::{EngineArgs, KvTokens};
use crate::params::SaturationThresholds;
use crate::throughput::shape::OutputClass;

/// A signal that an instance does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Share of the KV cache in use.
    KvUsage,
    /// Size of the KV cache, and its arguments do not fix it; the one that was learned is used.
    KvCapacity,
    /// Waiting requests.
    Waiting,
    /// Tokens of a prompt.
    InputTokens,
    /// Tokens of an answer.
    OutputTokens,
}

/// Who says how large a KV cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeSource {
    /// The instance, now.
    Reported,
    Arguments,
    /// Instances of the variant, when they last reported.
    Remembered,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceFigures {
    /// Size of its KV cache.
    pub total: KvTokens,
    pub total_source: SizeSource,
    pub in_use: KvTokens,
    pub waiting: f64,
    /// What those will hold.
    pub charge: KvTokens,
    /// Both together.
    pub demand: KvTokens,
    /// Mean tokens of an answer: its own, else the model's.
    pub output_tokens: Option<f64>,
    /// Bound by memory.
    pub k1: KvTokens,
    /// Bound by compute.
    pub k2: KvTokens,
    pub k2_source: CapacityReason,
    /// The smaller bound.
    pub capacity: KvTokens,
    /// Whether the demand reaches the capacity.
    pub saturated: bool,
    /// Signals that are missing; those of them that count as zero make a lower bound of the demand.
    pub missing: BTreeSet<Missing>,
}

impl InstanceFigures {
    pub(super) fn is_full(&self, thresholds: &SaturationThresholds) -> bool {
        self.k1.is_some() && self.in_use.0 >= self.k1.0 && is_queued(self.waiting, thresholds)
    }

    /// The first signal that keeps its demand from being known; `None` where that is known, and neither
    /// a part of it nor a share of a cache whose size is only remembered; and where it is known what
    /// bounds it, and others like it. That is not where it is full, or at work while others of the model
    /// report it, and does not report the length of its answers. Prefill has no answers.
    pub(super) fn lacking(&self, role: ServingRole) -> Option<Missing> {
        let writes = role != ServingRole::Prefill;
        let is_waiting = self.waiting > 0.0;
        let is_full = self.k2_source == CapacityReason::Observed;
        let others_report = self.output_tokens.is_some();
        let hides = is_waiting || (self.in_use.is_some() && others_report);
        let needed = [
            (Missing::KvUsage, true),
            (Missing::Waiting, true),
            (Missing::KvCapacity, true),
            (Missing::InputTokens, is_waiting),
            (Missing::OutputTokens, is_full || (writes && hides)),
        ];
        let mut lacked = needed
            .into_iter()
            .filter(|(signal, is_needed)| *is_needed && self.missing.contains(signal));
        lacked.next().map(|(signal, _)| signal)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) variant: &'a TokenVariantInput,
    pub(super) engine: &'a EngineKey,
    pub(super) thresholds: &'a SaturationThresholds,
    pub(super) workload: MeanWorkload,
    pub(super) learned: &'a LearnedTokens,
    /// What engines like it held when their queues were long.
    pub(super) history: &'a BTreeMap<OutputClass, KvTokens>,
    /// Size of the variant's KV caches, as learned.
    pub(super) remembered: Option<KvTokens>,
    /// Whether its queue says anything about itself.
    pub(super) trust: Trust,
}

impl Surroundings<'_> {
    /// The size of a KV cache, and who says so. What the instance reports comes first; then what
    /// instances with the same arguments last reported, since SGLang may find room for less than it
    /// is asked for; then the arguments, which fix the cache of one instance, however many ranks a
    /// replica has. Where the last report and the arguments agree, the size is stated, and as good as
    /// a reported one.
    fn size(&self, reported: Option<KvTokens>) -> Option<(KvTokens, SizeSource)> {
        let args = self.variant.engine.as_ref();
        let stated = args.and_then(EngineArgs::kv_capacity);
        let remembered = self.remembered.filter(|size| stated != Some(*size));
        reported
            .map(|size| (size, SizeSource::Reported))
            .or_else(|| remembered.map(|size| (size, SizeSource::Remembered)))
            .or_else(|| stated.map(|size| (size, SizeSource::Arguments)))
    }
}

/// Measures one instance; `None` if it is silent, or if the size of its KV cache is neither said
/// nor stated nor remembered.
pub(super) fn measure(
    instance: &InstanceInput,
    around: &Surroundings<'_>,
) -> Option<InstanceFigures> {
    let said = instance.sane();
    if said.kv_usage.is_none() && said.waiting.is_none() {
        return None;
    }
    let (total, total_source) = around.size(said.kv_capacity)?;
    let usage = said.kv_usage.unwrap_or(0.0);
    let waiting = said.waiting.unwrap_or(0.0);
    let k1 = memory_bound(total, around.thresholds);
    let (in_use, (k2, k2_source)) = if total_source == SizeSource::Remembered {
        // Of a remembered size, nothing is rounded up. What is known of compute bounds it as well.
        let bound = known_bound(&said, around).map_or(k1, |(tokens, _)| tokens.min(k1));
        (total.share(usage), (bound, CapacityReason::Stored))
    } else {
        let in_use = KvTokens((usage * total.0).round()).min(total);
        (in_use, compute_bound(&said, in_use, k1, around))
    };
    let charge =
        waiting_charge(around.variant.role, waiting, said.input_tokens, said.output_tokens);
    let demand = in_use.plus(charge);
    let capacity = k1.min(k2);
    Some(InstanceFigures {
        total,
        total_source,
        in_use,
        waiting,
        charge,
        demand,
        output_tokens: said.output_tokens.or(around.workload.output_tokens),
        k1,
        k2,
        k2_source,
        capacity,
        saturated: demand.0 >= capacity.0,
        missing: missing(&said, total_source),
    })
}

/// The usable share of memory; at least one token of it, so that a tiny one does not drop the
/// instance.
fn memory_bound(total: KvTokens, thresholds: &SaturationThresholds) -> KvTokens {
    let share = total.share(thresholds.kv_cache_threshold);
    if thresholds.kv_cache_threshold > 0.0 { KvTokens(share.0.max(1.0)) } else { share }
}

fn compute_bound(
    said: &InstanceInput,
    in_use: KvTokens,
    k1: KvTokens,
    around: &Surroundings<'_>,
) -> (KvTokens, CapacityReason) {
    let is_queued = said.waiting.is_some_and(|waiting| is_queued(waiting, around.thresholds));
    if is_queued && in_use.is_some() && around.trust == Trust::Own {
        return (in_use, CapacityReason::Observed);
    }
    known_bound(said, around).unwrap_or((k1, CapacityReason::Memory))
}

/// The bound by compute that does not depend on what the instance holds; `None` where nothing is
/// known of it.
fn known_bound(
    said: &InstanceInput,
    around: &Surroundings<'_>,
) -> Option<(KvTokens, CapacityReason)> {
    let output = said.output_tokens.or(around.workload.output_tokens);
    let remembered =
        output.and_then(|output| around.history.get(&OutputClass::of(output)).copied());
    if let Some(tokens) = remembered {
        return Some((tokens, CapacityReason::History));
    }
    let input = said.input_tokens.or(around.workload.input_tokens);
    let derived =
        derived_from(around.variant.engine.as_ref(), input.unwrap_or(0.0), output.unwrap_or(0.0));
    derived.map(|tokens| (tokens, CapacityReason::Derived))
}

pub(super) fn history_key(engine: &EngineKey, role: ServingRole, output: f64) -> HistoryKey {
    HistoryKey { engine: engine.clone(), role, bucket: OutputClass::of(output) }
}

/// Whether a queue has the length from which an engine is taken for full. The threshold counts in
/// whole requests.
fn is_queued(waiting: f64, thresholds: &SaturationThresholds) -> bool {
    waiting >= thresholds.queue_length_threshold.trunc()
}

fn missing(said: &InstanceInput, size: SizeSource) -> BTreeSet<Missing> {
    [
        (Missing::KvUsage, said.kv_usage.is_none()),
        (Missing::KvCapacity, size == SizeSource::Remembered),
        (Missing::Waiting, said.waiting.is_none()),
        (Missing::InputTokens, said.input_tokens.is_none()),
        (Missing::OutputTokens, said.output_tokens.is_none()),
    ]
    .into_iter()
    .filter_map(|(signal, is_missing)| is_missing.then_some(signal))
    .collect()
}

/// Tokens that the requests waiting in an engine will hold: their prompts, and their answers where
/// the engine writes them. A mean that is not known adds nothing. Rounded down once.
pub(super) fn waiting_charge(
    role: ServingRole,
    waiting: f64,
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
) -> KvTokens {
    let written = match role {
        ServingRole::Prefill => 0.0,
        ServingRole::Decode | ServingRole::Both => output_tokens.unwrap_or(0.0),
    };
    let tokens = waiting * (input_tokens.unwrap_or(0.0) + written);
    if waiting > 0.0 && tokens > 0.0 && tokens < ABSURD {
        KvTokens(tokens.floor())
    } else {
        KvTokens::ZERO
    }
}
